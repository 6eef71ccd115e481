//! `proctor model serve`: a script as a model on the network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use proctor_core::model::Usage;
use proctor_core::printable::printable;
use proctor_core::problem::Problems;
use proctor_core::suite::load_script;
use proctor_models::serve::{ModelServer, ServedReply, ServedRequest};
use proctor_models::wire::WireFormat as Wire;
use serde_json::json;

use super::stops::StopSignals;
use super::{counted, drawn};
use crate::args::{ModelServeArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;
use crate::threads;

/// How much of a text a line shows.
const SHOWN: usize = 80;

/// What was asked so far.
#[derive(Default)]
struct Totals {
    questions: usize,
    side_calls: usize,
    refused: usize,
    usage: Usage,
}

/// Serves until it is told to stop.
pub(crate) fn serve(args: &ModelServeArgs) -> anyhow::Result<Exit> {
    let mut problems = Problems::default();
    let script = load_script(&args.file, &mut problems);
    if problems.errors() + problems.warnings() > 0 {
        output::message(&drawn(&problems))?;
    }
    let Some(script) = script.filter(|_| !problems.has_errors()) else {
        return Ok(Exit::Usage);
    };
    let runtime = threads::many_workers(Some(2))?;
    let totals = Arc::new(Mutex::new(Totals::default()));
    let (watched, verbose) = (totals.clone(), args.verbose);
    runtime.block_on(async {
        let mut stops = StopSignals::listen()?;
        let server = ModelServer::watched(script, args.port, move |served| {
            let mut totals = watched.lock().unwrap_or_else(PoisonError::into_inner);
            totals.add(served);
            if verbose || matches!(served.said, ServedReply::Nothing(_)) {
                // Whether anybody reads it matters to nobody.
                let _ = output::message(&line(served));
            }
        })
        .await
        .map_err(|error| anyhow!("port {} can't be used: {error}", args.port))?;
        announce(args, server.address())?;
        stops.next().await;
        anyhow::Ok(())
    })?;
    let totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
    output::message(&totals.line())?;
    Ok(Exit::Ok)
}

/// The variables that make common agents and packages ask here.
fn variables(address: SocketAddr) -> [(&'static str, String); 3] {
    [
        ("ANTHROPIC_BASE_URL", format!("http://{address}")),
        ("OPENAI_BASE_URL", format!("http://{address}/v1")),
        ("GOOGLE_GEMINI_BASE_URL", format!("http://{address}")),
    ]
}

fn announce(args: &ModelServeArgs, address: SocketAddr) -> anyhow::Result<()> {
    let variables = variables(address);
    if args.output.output == OutputFormat::Json {
        let environment: serde_json::Map<_, _> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        return output::json(&json!({
            "script": args.file,
            "address": format!("http://{address}"),
            "environment": environment,
        }));
    }
    let file = args.file.display().to_string();
    let mut text = format!("{} is served on http://{address}\n\n", printable(&file));
    let words = [
        "Anthropic Messages (any ANTHROPIC_API_KEY)",
        "OpenAI Chat Completions and Responses (any OPENAI_API_KEY)",
        "Gemini (any GEMINI_API_KEY)",
    ];
    for ((name, value), word) in variables.iter().zip(words) {
        text.push_str(&format!("  # {word}\n  {name}={value}\n"));
    }
    text.push_str("\nCtrl-C ends it.\n");
    output::result(&text)
}

impl Totals {
    fn add(&mut self, served: &ServedRequest) {
        match &served.said {
            ServedReply::About(_) => return,
            ServedReply::Nothing(_) => self.refused += 1,
            _ => {}
        }
        self.questions += 1;
        self.side_calls += usize::from(served.is_side_call);
        self.usage.add(&served.usage);
    }

    fn line(&self) -> String {
        format!(
            "{}, {} of them {}, {} without an answer; {} tokens in, {} out\n",
            counted(self.questions, "question"),
            self.side_calls,
            if self.side_calls == 1 {
                "a side call"
            } else {
                "side calls"
            },
            self.refused,
            self.usage.input.unwrap_or(0),
            self.usage.output.unwrap_or(0),
        )
    }
}

/// A question, on one line.
fn line(served: &ServedRequest) -> String {
    let format = match served.format {
        Some(Wire::Chat) => "chat",
        Some(Wire::Responses) => "responses",
        Some(Wire::Messages) => "messages",
        Some(Wire::Gemini) => "gemini",
        None => "-",
    };
    let said = match &served.said {
        ServedReply::Text(text) => format!("says {}", shown(text)),
        ServedReply::Calls(tools) => format!("calls {}", shown(&tools.join(", "))),
        ServedReply::Fault(fault) => format!("fails on purpose: {}", shown(fault)),
        ServedReply::About(what) => (*what).to_owned(),
        // It is the message that somebody has to find the mistake by.
        ServedReply::Nothing(why) => format!("error: {}", printable(why)),
    };
    let side = if served.is_side_call {
        ", side call"
    } else {
        ""
    };
    let results = counted(served.results, "result");
    format!(
        "{format} {}: {results}{side}: {said}\n",
        printable(&served.path)
    )
}

fn shown(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

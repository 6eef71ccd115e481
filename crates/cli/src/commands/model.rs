//! `proctor model serve`: serves a scripted model over HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use proctor_core::printable::printable;
use proctor_core::suite::load_script;
use proctor_models::serve::{ModelServer, ServedReply, ServedRequest};
use proctor_models::wire::WireFormat as Wire;
use proctor_record::model::Usage;
use proctor_record::problem::Problems;
use serde_json::json;

use super::stops::StopSignals;
use super::{counted, drawn};
use crate::args::{ModelServeArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;
use crate::threads;

/// The maximum length of a text in a log line, in characters.
const SHOWN: usize = 80;

/// The number of requests so far, and their token usage.
#[derive(Default)]
struct Totals {
    requests: usize,
    side_calls: usize,
    refused: usize,
    usage: Usage,
}

/// Serves until Ctrl-C or SIGTERM.
pub(crate) fn serve(args: &ModelServeArgs) -> anyhow::Result<Exit> {
    let mut problems = Problems::default();
    let script = load_script(&args.file, &mut problems);
    if problems.errors() + problems.warnings() > 0 {
        output::message(&drawn(&problems))?;
    }
    let Some(script) = script.filter(|_| !problems.has_errors()) else {
        return Ok(Exit::Usage);
    };
    let runtime = threads::many_workers(2)?;
    let totals = Arc::new(Mutex::new(Totals::default()));
    let (watched, verbose) = (totals.clone(), args.verbose);
    runtime.block_on(async {
        let mut stops = StopSignals::listen()?;
        let server = ModelServer::watched(script, args.port, move |served| {
            let mut totals = watched.lock().unwrap_or_else(PoisonError::into_inner);
            totals.add(served);
            if verbose || matches!(served.said, ServedReply::Nothing(_)) {
                // A closed stderr is no reason to fail.
                let _ = output::message(&line(served));
            }
        })
        .await
        .map_err(|error| anyhow!("can't listen on port {}: {error}", args.port))?;
        announce(args, server.address())?;
        stops.next().await;
        anyhow::Ok(())
    })?;
    let totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
    output::message(&totals.line())?;
    Ok(Exit::Ok)
}

/// The variables that point common agents and SDKs to this server.
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
    let mut text = format!("serving {} on http://{address}\n\n", printable(&file));
    let words = [
        "Anthropic Messages (any ANTHROPIC_API_KEY)",
        "OpenAI Chat Completions and Responses (any OPENAI_API_KEY)",
        "Gemini (any GEMINI_API_KEY)",
    ];
    for ((name, value), word) in variables.iter().zip(words) {
        text.push_str(&format!("  # {word}\n  {name}={value}\n"));
    }
    text.push_str("\nStop with Ctrl-C.\n");
    output::result(&text)
}

impl Totals {
    fn add(&mut self, served: &ServedRequest) {
        match &served.said {
            ServedReply::About(_) => return,
            ServedReply::Nothing(_) => self.refused += 1,
            _ => {}
        }
        self.requests += 1;
        self.side_calls += usize::from(served.is_side_call);
        self.usage.add(&served.usage);
    }

    fn line(&self) -> String {
        format!(
            "{}, {} of them {}, {} unanswered; {} tokens in, {} out\n",
            counted(self.requests, "request"),
            self.side_calls,
            if self.side_calls == 1 {
                "a side request"
            } else {
                "side requests"
            },
            self.refused,
            self.usage.input.unwrap_or(0),
            self.usage.output.unwrap_or(0),
        )
    }
}

/// The log line of a request.
fn line(served: &ServedRequest) -> String {
    let format = match served.format {
        Some(Wire::Chat) => "chat",
        Some(Wire::Responses) => "responses",
        Some(Wire::Messages) => "messages",
        Some(Wire::Gemini) => "gemini",
        None => "-",
    };
    let said = match &served.said {
        ServedReply::Text(text) => format!("replies {}", shown(text)),
        ServedReply::Calls(tools) => format!("calls {}", shown(&tools.join(", "))),
        ServedReply::Fault(fault) => format!("fails on purpose: {}", shown(fault)),
        ServedReply::About(what) => (*what).to_owned(),
        // Not shortened: users find their mistake by it.
        ServedReply::Nothing(why) => format!("error: {}", printable(why)),
    };
    let side = if served.is_side_call {
        ", side request"
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

//! `proctor evals init`: writes a first evals file for a server's tools.
//!
//! It calls only tools with `readOnlyHint`, and only with consent.

mod arguments;
mod file;
mod rounds;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use mcp_evals::{Eval, EvalFile, Expected, FindingRule, Input, ListedEval, validate_with_tools};
use proctor_core::evals::file::EvalsFile;
use proctor_core::printable::printable;
use proctor_core::suite::Server;
use proctor_record::problem::{Problems, SourceText};
use proctor_wire::client::{Client, ConnectOptions, ListLimits};
use serde_json::{Map, Value};

use self::rounds::ProbeOutcome;
use super::servers::{Visit, visit};
use crate::args::EvalsInitArgs;
use crate::commands::attended::InteractiveHost;
use crate::commands::counted;
use crate::commands::session::CommandOutcome;
use crate::exit::{Exit, ReportedExit};
use crate::output;
use proctor_run::engine::consent::{ConsentOptions, ConsentPurpose, obtain};
use proctor_run::engine::offers::{Effect, EvalPlan, GatherError, ServerOffer, offer_of_tools};

/// A call that may become an execution eval.
struct EvalDraft {
    tool: String,
    arguments: Map<String, Value>,
}

/// The drafts of execution evals, each with the outcome of its calls.
type DraftedEvals = Vec<(EvalDraft, ProbeOutcome)>;

pub(super) fn run(args: &EvalsInitArgs) -> anyhow::Result<Exit> {
    if args.out.symlink_metadata().is_ok() {
        bail!(
            "`{}` already exists; nothing was written",
            args.out.display()
        );
    }
    visit(&args.server, async |visit| {
        let [server] = visit.servers else {
            bail!("an evals file is for one server; choose it with `--server`");
        };
        let offer = match look(server, visit.options).await {
            Ok(offer) => offer,
            Err(error) => {
                return Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                ));
            }
        };
        if offer.tools.is_empty() {
            bail!("the server has no tools to write evals for");
        }
        let (trials, mut notes) = trials(&offer);
        let answered = agree_and_call(args, &visit, &offer, trials).await?;
        let mut kept = Vec::new();
        for (trial, answer) in answered {
            match answer {
                ProbeOutcome::Steady(content) => kept.push((trial, content)),
                ProbeOutcome::Unfit(why) => {
                    notes.push(format!("no execution eval for `{}`: {why}", trial.tool));
                }
            }
        }
        let text = file::render(&offer, &kept);
        let (evals, warnings) = checked(&text, &offer)?;
        let is_json = args
            .out
            .extension()
            .is_some_and(|extension| extension == "json");
        let text = if is_json { json_text(evals)? } else { text };
        write_new(&args.out, &text)
            .with_context(|| format!("can't write `{}`", args.out.display()))?;
        notes.extend(warnings);
        tell(args, kept.len(), &offer, &notes, &visit)
    })
}

/// The tools of a server.
async fn look(server: &Server, options: &ConnectOptions) -> Result<ServerOffer, GatherError> {
    let client = Client::connect(server, options)
        .await
        .map_err(|error| GatherError::StartFailed(error.naming(&server.name)))?;
    let offer = offer_of_tools(server, &client, &ListLimits::default()).await;
    client.close().await;
    offer
}

/// The calls to make, and a note for each tool without one.
fn trials(offer: &ServerOffer) -> (Vec<EvalDraft>, Vec<String>) {
    let (mut trials, mut notes) = (Vec::new(), Vec::new());
    let effects = offer.effects();
    for name in file::names(offer) {
        if effects.get(name) != Some(&Effect::ReadOnly) {
            notes.push(format!(
                "no execution eval for `{name}`: it has no `readOnlyHint`"
            ));
            continue;
        }
        let schema = offer.tool(name).and_then(|tool| tool.get("inputSchema"));
        match arguments::make(schema.unwrap_or(&Value::Null)) {
            Ok(arguments) => trials.push(EvalDraft {
                tool: name.to_owned(),
                arguments,
            }),
            Err(why) => notes.push(format!("no execution eval for `{name}`: {why}")),
        }
    }
    (trials, notes)
}

/// Shows the calls, asks for consent, and makes them.
async fn agree_and_call(
    args: &EvalsInitArgs,
    visit: &Visit<'_>,
    offer: &ServerOffer,
    trials: Vec<EvalDraft>,
) -> anyhow::Result<DraftedEvals> {
    if trials.is_empty() {
        return Ok(Vec::new());
    }
    let shown: Vec<Eval> = trials
        .iter()
        .map(|trial| {
            let input = Input::execution(&trial.tool, Value::Object(trial.arguments.clone()));
            let id = file::execution_id(&trial.tool);
            Eval::new(
                id,
                trial.tool.as_str(),
                input,
                Expected::content(Value::Null),
            )
        })
        .collect();
    let planned = EvalPlan {
        offer,
        evals: shown.iter().collect(),
    };
    let options = ConsentOptions {
        purpose: ConsentPurpose::Write,
        yes: args.yes,
        file: None,
        model: None,
        judge: None,
        runs: 1,
        max_turns: None,
        redactor: visit.redactor,
    };
    let host = InteractiveHost::new(visit.redactor.clone());
    let granted = match obtain(&[planned], &options, &host, std::future::pending()).await {
        Ok(granted) => granted,
        Err(error) => return Err(ReportedExit(host.refuse(error, None)?).into()),
    };
    let answers = rounds::answers(&offer.server, visit, &granted, &trials).await;
    match answers {
        Ok(answers) => Ok(trials.into_iter().zip(answers).collect()),
        Err(error) => {
            let reason = visit.redactor.text(&error.to_string()).into_owned();
            output::message(&format!("error: {}\n", output::printable_lines(&reason)))?;
            Err(ReportedExit(Exit::Inconclusive).into())
        }
    }
}

/// Parses and validates the text, and returns the warnings.
fn checked(text: &str, offer: &ServerOffer) -> anyhow::Result<(Vec<ListedEval>, Vec<String>)> {
    let mut problems = Problems::default();
    let source = SourceText::new("evals.yaml", text.to_owned());
    let file = EvalsFile::parse(source, &mut problems)
        .context("the server's answers don't fit into an evals file")?;
    let report = validate_with_tools(&file.evals, &offer.tools);
    if !report.is_valid() {
        bail!("the server's answers don't make valid evals:\n{report}");
    }
    let secrets = report
        .findings
        .iter()
        .filter(|finding| finding.rule == FindingRule::Secret);
    let warnings = secrets.map(|finding| format!("warning: {finding}"));
    let warnings = warnings.collect();
    Ok((file.evals, warnings))
}

/// The file as JSON, without comments.
fn json_text(evals: Vec<ListedEval>) -> anyhow::Result<String> {
    let extra = serde_json::Map::new();
    let file = EvalFile { evals, extra }.to_value();
    Ok(format!("{}\n", serde_json::to_string_pretty(&file)?))
}

/// Writes a new file; fails if the file exists, also if another process just created it.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn tell(
    args: &EvalsInitArgs,
    executions: usize,
    offer: &ServerOffer,
    notes: &[String],
    visit: &Visit<'_>,
) -> anyhow::Result<CommandOutcome> {
    let mut said = String::new();
    for note in notes {
        said.push_str(&format!("{}\n", printable(&visit.redactor.text(note))));
    }
    output::message(&output::printable_lines(&said))?;
    let path = args.out.display().to_string();
    let path = printable(&path);
    let invocations = file::names(offer).len();
    output::result(&format!(
        "wrote {path}: {}; {} and a scenario eval to complete\nnext: complete the lines marked TODO, then run `proctor evals validate {path}`\n",
        counted(executions, "execution eval"),
        counted(invocations, "invocation eval"),
    ))?;
    Ok(CommandOutcome::ok())
}

//! `proctor call`: one call of one tool.

use std::time::Instant;

use proctor_core::duration;
use proctor_core::hint::{listed, nearest};
use proctor_core::redact::Redactor;
use proctor_run::client::{CallError, CallResult, Caps, Client, Era};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::session::{Done, with_client};
use crate::args::{CallArgs, Format};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &CallArgs) -> anyhow::Result<Exit> {
    with_client(&args.server, &args.tool, async |client, redactor| {
        // What the stateless era repeats in headers stands in the list.
        if client.identity().era == Era::Stateless {
            let _ = client.list_tools(&Caps::default()).await;
        }
        let started = Instant::now();
        let result = client.call_tool(&args.tool, args.args.clone()).await;
        let taken = duration::brief(started.elapsed());
        match result {
            Ok(result) => {
                show(&result, args.output.output, redactor)?;
                output::message(&format!("answered in {taken}\n"))?;
                if !result.is_error {
                    return Ok(Done::ok());
                }
                let reason = format!("the tool `{}` says that it failed", args.tool);
                Ok(explain(client, &args.tool, reason).await)
            }
            Err(error @ CallError::Rpc(_)) => {
                Ok(explain(client, &args.tool, error.to_string()).await)
            }
            Err(error) => Ok(Done::because(Exit::Inconclusive, error.to_string())),
        }
    })
}

/// Adds, where that is so, that the server has no such tool: that explains most refusals.
async fn explain(client: &Client, tool: &str, reason: String) -> Done {
    let Ok(tools) = client.list_tools(&Caps::default()).await else {
        return Done::because(Exit::Failed, reason);
    };
    let names: Vec<String> = tools
        .items
        .iter()
        .filter_map(|raw| {
            serde_json::from_str::<Value>(raw.get())
                .ok()?
                .get("name")?
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    if names.iter().any(|name| name == tool) {
        return Done::because(Exit::Failed, reason);
    }
    let known = || names.iter().map(String::as_str);
    let hint = match nearest(tool, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its tools: {}", listed(known())),
    };
    Done::because(
        Exit::Failed,
        format!("{reason}; the server has no tool `{tool}`: {hint}"),
    )
}

fn show(result: &CallResult, format: Format, redactor: &Redactor) -> anyhow::Result<()> {
    // Redacted first: what is made printable may no longer look like the secret that it is.
    match format {
        Format::Json => output::result(&redactor.text(&format!("{}\n", result.raw.get()))),
        Format::Text => output::result(&output::printable_lines(&redactor.text(&plain(result)))),
    }
}

/// What is shown of a result.
#[derive(Deserialize)]
struct Shown<'a> {
    #[serde(default, borrow)]
    content: Vec<&'a RawValue>,
    #[serde(default, borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

/// The texts of a result, or what else it is made of. Blocks are looked into one at a time: there
/// may be a million of them.
fn plain(result: &CallResult) -> String {
    let Ok(shown) = serde_json::from_str::<Shown<'_>>(result.raw.get()) else {
        return format!("{}\n", result.raw.get());
    };
    let mut out = String::new();
    for raw in shown.content {
        let block: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match (text("type"), text("text")) {
            (Some("text"), Some(text)) => out.push_str(text),
            (Some(kind), _) => out.push_str(&format!("[{kind}, {} bytes]", raw.get().len())),
            (None, _) => out.push_str(raw.get()),
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    if let Some(structured) = shown.structured {
        out.push_str(&format!("structured: {}\n", structured.get()));
    }
    if out.is_empty() {
        out = format!("{}\n", result.raw.get());
    }
    out
}

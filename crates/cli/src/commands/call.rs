//! `proctor call`: calls one tool.

mod arguments;

use std::time::Instant;

use proctor_core::typed_arguments::required;
use proctor_record::duration;
use proctor_record::hint::{listed, nearest};
use proctor_record::json;
use proctor_record::redact::Redactor;
use proctor_wire::client::{CallError, CallResult, Client, Era, ListLimits};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use self::arguments::CallInput;
use super::session::{CommandOutcome, with_client};
use crate::args::{CallArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &CallArgs) -> anyhow::Result<Exit> {
    let typed = CallInput::read(args)?;
    with_client(&args.server, &args.tool, async |client, redactor| {
        let mut schema = None;
        // The tool list has the schema, which stateless headers and typed values need.
        if client.identity().era == Era::Stateless || matches!(typed, CallInput::Typed(_)) {
            // A server that does not list its tools may still have them.
            let tools = listed_tools(client).await.unwrap_or_default();
            schema = schema_of(&tools, &args.tool).cloned();
        }
        let typed = match typed.resolve(schema.as_ref()) {
            Ok(typed) => typed,
            Err(error) => return Ok(CommandOutcome::because(Exit::Usage, error.to_string())),
        };
        for unfit in &typed.unfit {
            let warning = format!(
                "warning: sent as text, but the tool's schema expects another type: {unfit}\n"
            );
            output::message(&output::printable_lines(&redactor.text(&warning)))?;
        }
        let given = typed.arguments;
        let is_bare = given.is_empty();
        let started = Instant::now();
        let result = client.call_tool(&args.tool, given).await;
        let taken = duration::brief(started.elapsed());
        match result {
            Ok(result) => {
                show(&result, args.output.output, redactor)?;
                output::message(&format!("answered in {taken}\n"))?;
                if !result.is_error {
                    return Ok(CommandOutcome::ok());
                }
                let reason = format!("the tool `{}` returned an error", args.tool);
                Ok(explain(client, &args.tool, is_bare, reason).await)
            }
            Err(error @ CallError::Rpc(_)) => {
                Ok(explain(client, &args.tool, is_bare, error.to_string()).await)
            }
            Err(error) => Ok(CommandOutcome::because(
                Exit::Inconclusive,
                error.to_string(),
            )),
        }
    })
}

/// The tools that a server lists.
async fn listed_tools(client: &Client) -> Option<Vec<Value>> {
    let listed = client.list_tools(&ListLimits::default()).await.ok()?;
    let tools = listed.items.iter();
    Some(
        tools
            .filter_map(|raw| json::from_str(raw.get()).ok())
            .collect(),
    )
}

fn name(tool: &Value) -> Option<&str> {
    tool.get("name")?.as_str()
}

fn schema_of<'a>(tools: &'a [Value], wanted: &str) -> Option<&'a Value> {
    let tool = tools.iter().find(|tool| name(tool) == Some(wanted))?;
    tool.get("inputSchema")
}

/// Adds a hint for the most common mistakes: the server has no such tool, or required arguments are
/// missing.
async fn explain(client: &Client, tool: &str, is_bare: bool, reason: String) -> CommandOutcome {
    let Some(tools) = listed_tools(client).await else {
        return CommandOutcome::because(Exit::Failed, reason);
    };
    let known = || tools.iter().filter_map(name);
    if known().any(|name| name == tool) {
        let wanted = schema_of(&tools, tool).map(required).unwrap_or_default();
        if !is_bare || wanted.is_empty() {
            return CommandOutcome::because(Exit::Failed, reason);
        }
        let shown: Vec<String> = wanted.into_iter().map(|(_, shown)| shown).collect();
        let wanted = shown.join(", ");
        let hint = format!("`{tool}` requires {wanted}; write them as NAME=VALUE");
        return CommandOutcome::because(Exit::Failed, format!("{reason}; {hint}"));
    }
    let hint = match nearest(tool, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its tools: {}", listed(known())),
    };
    CommandOutcome::because(
        Exit::Failed,
        format!("{reason}; the server has no tool `{tool}`: {hint}"),
    )
}

fn show(result: &CallResult, format: OutputFormat, redactor: &Redactor) -> anyhow::Result<()> {
    // Redacted first: escaping could change a secret so that it is no longer found.
    match format {
        OutputFormat::Json => output::result(&redactor.text(&format!("{}\n", result.raw.get()))),
        OutputFormat::Text => {
            output::result(&output::printable_lines(&redactor.text(&plain(result))))
        }
    }
}

/// The parts of a tool result that the text output shows.
#[derive(Deserialize)]
struct ResultOutput<'a> {
    #[serde(default, borrow)]
    content: Vec<&'a RawValue>,
    #[serde(default, borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

/// The text output of a result. Blocks are parsed one at a time: there may be a million of them.
fn plain(result: &CallResult) -> String {
    let Ok(shown) = json::from_str::<ResultOutput<'_>>(result.raw.get()) else {
        return format!("{}\n", result.raw.get());
    };
    let mut out = String::new();
    for raw in shown.content {
        let block: Value = json::from_str(raw.get()).unwrap_or_default();
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

//! The arguments of `proctor call`, and those of the tool: `NAME=VALUE`, or all of them as JSON.

use std::path::PathBuf;

use clap::Args;
use proctor_record::json;
use serde_json::{Map, Value};

use super::{OutputArgs, ServerArgs};

/// Call one tool of a server and show its result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor call get-sum a=2 b=40 -- npx -y @modelcontextprotocol/server-everything
  proctor call echo message='hello there' --url http://localhost:8080/mcp
  proctor call write_file path=notes.txt content=@draft.txt --config mcp.yaml --server files
  proctor call get-sum --args '{\"a\": 2, \"b\": 40}' --record .proctor/runs/sum --config mcp.yaml
  jq .input call.json | proctor call get-sum - --config mcp.yaml

A VALUE is sent as JSON if it parses and matches the tool's schema, otherwise as text. Example:
`a=2` is the number 2 if the schema says number, and the text \"2\" if it says string.

Exit codes: 0 success, 1 the tool returned an error, 2 usage error, 3 the call or the recording
failed.")]
pub(crate) struct CallArgs {
    /// Name of the tool
    pub(crate) tool: String,

    /// Arguments of the tool: NAME=VALUE, or NAME=@FILE for the content of a file (@- for stdin). Or
    /// all arguments as one JSON object, from a file (@FILE) or from stdin (-)
    #[arg(value_name = "NAME=VALUE", value_parser = tool_argument)]
    pub(crate) arguments: Vec<ToolArgument>,

    /// All arguments as a JSON object; @FILE reads it from a file, - from stdin
    #[arg(long, value_name = "JSON", value_parser = json_arguments)]
    pub(crate) args: Option<JsonArguments>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The place that an argument is read from, instead of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextSource {
    /// Written as `-` or `@-`.
    Stdin,
    /// Written as `@FILE`.
    File(PathBuf),
}

/// One positional argument after the name of the tool.
#[derive(Debug, Clone)]
pub(crate) enum ToolArgument {
    /// Written as `NAME=VALUE`.
    Typed { name: String, value: String },
    /// Written as `NAME=@FILE`.
    Read { name: String, from: TextSource },
    /// Written as `@FILE` or `-`: a JSON object with all arguments.
    All(TextSource),
}

/// The value of `--args`.
#[derive(Debug, Clone)]
pub(crate) enum JsonArguments {
    Given(Map<String, Value>),
    Read(TextSource),
}

/// Parses one positional argument after the name of the tool.
pub(super) fn tool_argument(word: &str) -> Result<ToolArgument, String> {
    if let Some(from) = source(word)? {
        return Ok(ToolArgument::All(from));
    }
    let (name, value) = match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => (name.to_owned(), value),
        _ => {
            let hint = "write arguments as NAME=VALUE, and `--` before the server's command";
            return Err(hint.to_owned());
        }
    };
    // A dash alone is a value that tools may want.
    let from = if value == "-" { None } else { source(value)? };
    Ok(match from {
        Some(from) => ToolArgument::Read { name, from },
        None => ToolArgument::Typed {
            name,
            value: value.to_owned(),
        },
    })
}

/// Parses the value of `--args`.
pub(super) fn json_arguments(text: &str) -> Result<JsonArguments, String> {
    match source(text)? {
        Some(from) => Ok(JsonArguments::Read(from)),
        None => json_object(text).map(JsonArguments::Given),
    }
}

pub(crate) fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    match json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => {
            Err("write the arguments as a JSON object, such as {\"path\": \"/tmp\"}".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn source(text: &str) -> Result<Option<TextSource>, String> {
    match text.strip_prefix('@') {
        _ if text == "-" => Ok(Some(TextSource::Stdin)),
        None => Ok(None),
        Some("-") => Ok(Some(TextSource::Stdin)),
        Some("") => Err("name a file after `@`, such as @args.json".to_owned()),
        Some(path) => Ok(Some(TextSource::File(path.into()))),
    }
}

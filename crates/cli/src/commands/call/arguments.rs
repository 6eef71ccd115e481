//! Reads the arguments of a call from the command line, files and stdin.

use std::fs::File;
use std::io::{Read, stdin};

use anyhow::{Context, bail};
use proctor_core::typed_arguments::{self, ArgumentError, TypedArguments};
use serde_json::{Map, Value};

use crate::args::{CallArgs, JsonArguments, TextSource, ToolArgument, json_object};

/// The maximum size of an argument file: no request may be larger.
const MAX_BYTES: u64 = 32 << 20;

/// The arguments of a call.
pub(super) enum CallInput {
    /// One JSON object with all arguments.
    Json(Map<String, Value>),
    /// Names and texts, whose meaning depends on the tool's schema.
    Typed(Vec<(String, String)>),
}

impl CallInput {
    /// Reads all arguments, with the files that the command line names.
    pub(super) fn read(args: &CallArgs) -> anyhow::Result<Self> {
        let mut typed = Vec::new();
        let mut whole = None;
        let mut reader = ArgumentReader::default();
        for argument in &args.arguments {
            match argument {
                ToolArgument::Typed { name, value } => typed.push((name.clone(), value.clone())),
                ToolArgument::Read { name, from } => typed.push((name.clone(), reader.read(from)?)),
                ToolArgument::All(from) if whole.is_none() => whole = Some(reader.object(from)?),
                ToolArgument::All(_) => bail!("pass only one `@FILE` or `-` with all arguments"),
            }
        }
        match &args.args {
            None => {}
            Some(_) if whole.is_some() => bail!("pass either `--args` or `@FILE`, not both"),
            Some(JsonArguments::Given(map)) => whole = Some(map.clone()),
            Some(JsonArguments::Read(from)) => whole = Some(reader.object(from)?),
        }
        match (whole, typed.is_empty()) {
            (Some(whole), true) => Ok(Self::Json(whole)),
            (None, false) => Ok(Self::Typed(typed)),
            (None, true) => Ok(Self::Json(Map::new())),
            (Some(_), false) => {
                bail!("pass either `NAME=VALUE` or all arguments as JSON, not both")
            }
        }
    }

    /// The arguments for a tool, typed by its schema if that is known.
    pub(super) fn resolve(&self, schema: Option<&Value>) -> Result<TypedArguments, ArgumentError> {
        match self {
            Self::Json(map) => Ok(TypedArguments {
                arguments: map.clone(),
                unfit: Vec::new(),
            }),
            Self::Typed(typed) => typed_arguments::resolve(typed, schema),
        }
    }
}

/// Reads files, and stdin once.
#[derive(Default)]
struct ArgumentReader {
    has_read_stdin: bool,
}

impl ArgumentReader {
    fn read(&mut self, from: &TextSource) -> anyhow::Result<String> {
        match from {
            TextSource::Stdin if self.has_read_stdin => bail!("stdin can be read only once"),
            TextSource::Stdin => {
                self.has_read_stdin = true;
                text(stdin().lock()).context("can't read arguments from stdin")
            }
            TextSource::File(path) => {
                let file = File::open(path).map_err(anyhow::Error::new).and_then(text);
                file.with_context(|| {
                    let path = path.display();
                    format!("can't read the file `{path}`; to send text that starts with `@`, write '\"@…\"'")
                })
            }
        }
    }

    fn object(&mut self, from: &TextSource) -> anyhow::Result<Map<String, Value>> {
        let name = match from {
            TextSource::Stdin => "stdin".to_owned(),
            TextSource::File(path) => format!("`{}`", path.display()),
        };
        let text = self.read(from)?;
        json_object(&text).map_err(|error| anyhow::anyhow!("{name}: {error}"))
    }
}

fn text(from: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("larger than {} MiB", MAX_BYTES >> 20);
    }
    String::from_utf8(bytes).context("not UTF-8 text")
}

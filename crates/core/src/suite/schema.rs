//! JSON Schemas of the file formats, for editors.
//!
//! They come from the same declarations as the decoders, so that an editor accepts what the
//! loader accepts.

use serde_json::{Value, json};

use super::agent_file::AgentFile;
use super::eval_file::SuiteFile;
use super::mcp_file::McpFile;
use super::selection_file::SelectionFile;
use super::task_file::TaskFile;
use crate::decode::{Decode, Definitions};
use crate::script::script_file::ScriptFile;

/// A kind of file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Eval,
    Task,
    Agent,
    McpConfig,
    /// A script: the rules of a scripted model.
    Script,
    /// A selection file: prompts, and the tools to choose for them.
    Selection,
}

/// The JSON Schema (draft 2020-12) of a kind of file.
pub fn schema(kind: FileKind) -> Value {
    let mut definitions = Definitions::new();
    let (title, root) = match kind {
        FileKind::Eval => ("Proctor eval file", SuiteFile::schema(&mut definitions)),
        FileKind::Task => ("Proctor task file", TaskFile::schema(&mut definitions)),
        FileKind::Agent => ("Proctor agent file", AgentFile::schema(&mut definitions)),
        FileKind::McpConfig => ("MCP config", McpFile::schema(&mut definitions)),
        FileKind::Script => ("Proctor script", ScriptFile::schema(&mut definitions)),
        FileKind::Selection => {
            let root = SelectionFile::schema(&mut definitions);
            ("Proctor selection file", root)
        }
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$ref": root["$ref"],
        "$defs": definitions,
    })
}

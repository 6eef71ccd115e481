//! `proctor schema`: prints JSON Schemas for editors.

use proctor_core::suite::schema::{FileKind, schema};

use crate::args::{SchemaArgs, SchemaKind};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    output::json(&match args.kind {
        SchemaKind::Eval => schema(FileKind::Eval),
        SchemaKind::Task => schema(FileKind::Task),
        SchemaKind::Agent => schema(FileKind::Agent),
        SchemaKind::McpConfig => schema(FileKind::McpConfig),
        SchemaKind::Selection => schema(FileKind::Selection),
        SchemaKind::Scripted => schema(FileKind::Script),
        SchemaKind::Profiles => proctor_core::profile::schema(),
        SchemaKind::Evals => mcp_evals::schema(),
    })?;
    Ok(Exit::Ok)
}

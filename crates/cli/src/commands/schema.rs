//! `proctor schema`: JSON Schemas for editors.

use proctor_core::suite::schema::schema;

use crate::args::SchemaArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    output::json(&schema(args.kind.into()))?;
    Ok(Exit::Ok)
}

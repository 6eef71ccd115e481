//! `proctor result coverage`: what a run used of its servers.

use proctor_core::coverage::Coverage;
use proctor_report::coverage::{document, render};

use super::{sheet_style, source};
use crate::args::{CoverageArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &CoverageArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let run = source.run();
    let (summary, coverage) = Coverage::load(run)?;
    match args.output.output {
        OutputFormat::Json => output::json(&document(&coverage))?,
        OutputFormat::Text => output::result(&render(&summary.servers, &coverage, sheet_style()))?,
    }
    Ok(Exit::Ok)
}

//! `proctor result coverage`: what a run used of its servers.

use proctor_core::coverage::Coverage;
use proctor_core::record::RunReader;
use proctor_report::coverage::{document, render};

use super::run_folder;
use super::summary::style;
use crate::args::{CoverageArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &CoverageArgs) -> anyhow::Result<Exit> {
    let run = RunReader::open(&run_folder(&args.run)?)?;
    let (summary, coverage) = Coverage::load(&run)?;
    match args.output.output {
        OutputFormat::Json => output::json(&document(&coverage))?,
        OutputFormat::Text => output::result(&render(&summary.servers, &coverage, style()))?,
    }
    Ok(Exit::Ok)
}

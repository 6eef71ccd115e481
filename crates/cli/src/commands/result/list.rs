//! `proctor result list`: the runs here, newest first.
//!
//! `proctor view` shows the same rows.

mod table;

use std::path::Path;

use proctor_core::history::{self, RunRow};
use proctor_core::runs;
use proctor_run::engine::runs::RUNS;
use serde::Serialize;

use crate::args::{OutputFormat, RunsArgs};
use crate::exit::Exit;
use crate::output;

#[derive(Serialize)]
struct RunsDocument {
    folder: &'static str,
    runs: Vec<RunRow>,
}

pub(crate) fn run(args: &RunsArgs) -> anyhow::Result<Exit> {
    let runs = history::rows(runs::list(Path::new(RUNS))?);
    match args.output.output {
        OutputFormat::Json => output::json(&RunsDocument { folder: RUNS, runs })?,
        OutputFormat::Text if runs.is_empty() => {
            output::message(&format!(
                "`{RUNS}` contains no runs; `proctor check` creates one\n"
            ))?;
        }
        OutputFormat::Text => output::report(&table::render(&runs, jiff::Timestamp::now()))?,
    }
    Ok(Exit::Ok)
}

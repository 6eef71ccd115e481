//! `proctor result diff`: whether one run is worse than another.

use anyhow::bail;
use proctor_core::compare::{Comparison, RunFacts};
use proctor_core::record::RunReader;
use proctor_report::compare::{CompareReport, json, markdown, text};
use proctor_report::terminal::TerminalStyle;

use super::run_folder;
use crate::args::{DiffArgs, DiffFormat};
use crate::exit::Exit;
use crate::output;

/// The width if the output is not a terminal.
const WIDTH: usize = 100;

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    let base = RunReader::open(&run_folder(&args.base)?)?;
    let new = RunReader::open(&run_folder(&args.new)?)?;
    // A run is never worse than itself, so a slip of the pen would always be green.
    if base.folder().canonicalize().ok() == new.folder().canonicalize().ok() {
        bail!(
            "BASE and NEW are the same run: `{}`",
            new.folder().display()
        );
    }
    let suite = new.started().name.clone();
    // One after the other: only what is compared stays in memory.
    let base = RunFacts::load(&base)?;
    let new = RunFacts::load(&new)?;
    let comparison = Comparison::of(&base.tally, &new.tally);
    let report = CompareReport::new(&comparison, &suite, &base, &new);
    let rendered = match args.output {
        DiffFormat::Text => {
            let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
            let style = TerminalStyle {
                width,
                colour: true,
            };
            text::render(&report, style)
        }
        DiffFormat::Markdown => markdown::render(&report),
        DiffFormat::Json => format!("{:#}\n", json::value(&report)),
    };
    output::result(&rendered)?;
    Ok(Exit::from_code(comparison.exit()))
}

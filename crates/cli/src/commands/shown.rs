//! Writes a report to stdout and to files, for `check` and for `result show`.

use std::io::{self, BufWriter, Write};

use proctor_core::event::RunKind;
use proctor_report::terminal::{self, TerminalStyle};
use proctor_report::{Report, ReportError, evals, json, junit};

use super::target::Targets;
use crate::args::OutputFormat;
use crate::output;

/// The width of a report if stdout is not a terminal.
const WIDTH: usize = 100;

/// Writes the report to stdout.
pub(super) fn show(report: &Report<'_>, format: OutputFormat) -> anyhow::Result<()> {
    match format {
        OutputFormat::Json => {
            let mut out = BufWriter::new(io::stdout().lock());
            write_json(report, &mut out).map_err(flattened)?;
            out.flush()?;
        }
        OutputFormat::Text => {
            let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
            let look = TerminalStyle {
                width,
                colour: true,
            };
            output::result(&terminal::render(report, look)?)?;
        }
    }
    Ok(())
}

/// Writes the result as one JSON document.
pub(super) fn write_json(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    match report.summary.plan.kind {
        RunKind::Evals => evals::write(report, out),
        RunKind::Suite | RunKind::Imported => json::write(report, out),
    }
}

/// Writes the files of `--out` and `--junit`, and returns the errors.
pub(super) fn write_files(targets: &Targets, report: &Report<'_>) -> Vec<anyhow::Error> {
    let out = targets.out.as_ref();
    let out = out.map(|target| target.write(|out| write_json(report, out)));
    let junit = targets.junit.as_ref();
    let junit = junit.map(|target| target.write(|out| junit::write(report, out)));
    [out, junit]
        .into_iter()
        .flatten()
        .filter_map(Result::err)
        .collect()
}

/// The error without its wrapper, so that [`output::is_broken_pipe`] recognizes it.
pub(super) fn flattened(error: ReportError) -> anyhow::Error {
    match error {
        ReportError::Write(error) => error.into(),
        ReportError::Record(error) => error.into(),
    }
}

//! The tables of selection rows: the scores of each tool, and the confusion matrix.

use std::io::Write;

use proctor_core::selection::{Choice, SelectionReport};
use proctor_core::summary::Summary;

use super::cells::Cells;
use crate::ReportError;

/// Writes one row per tool: hits, false hits, misses, precision and recall.
pub(super) fn write_tools(
    summary: &Summary,
    run: &str,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let mut cells = Cells::default();
    for column in [
        "run",
        "agent",
        "server",
        "tool",
        "hits",
        "false_hits",
        "misses",
        "precision",
        "recall",
    ] {
        cells.text(column);
    }
    cells.end(out)?;
    for report in SelectionReport::of(summary) {
        for score in &report.tools {
            cells.text(run);
            cells.text(&report.agent);
            let (server, tool) = columns(&score.choice);
            cells.text(server);
            cells.text(tool);
            for count in [score.hits, score.false_hits, score.misses] {
                cells.text(&count.to_string());
            }
            for share in [score.precision(), score.recall()] {
                cells.text(&share.map_or(String::new(), |share| share.to_string()));
            }
            cells.end(out)?;
        }
    }
    Ok(())
}

/// Writes the confusion matrix: one row per pair of an expected and a chosen tool.
pub(super) fn write_confusion(
    summary: &Summary,
    run: &str,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let mut cells = Cells::default();
    for column in [
        "run",
        "agent",
        "expected_server",
        "expected",
        "chosen_server",
        "chosen",
        "count",
    ] {
        cells.text(column);
    }
    cells.end(out)?;
    for report in SelectionReport::of(summary) {
        for ((expected, chosen), count) in &report.confusion {
            cells.text(run);
            cells.text(&report.agent);
            for choice in [expected, chosen] {
                let (server, tool) = columns(choice);
                cells.text(server);
                cells.text(tool);
            }
            cells.text(&count.to_string());
            cells.end(out)?;
        }
    }
    Ok(())
}

fn columns(choice: &Choice) -> (&str, &str) {
    match choice {
        Choice::Tool(name) => (&name.server, &name.tool),
        Choice::Invented => ("", "(invented name)"),
        Choice::NoCall => ("", "(no call)"),
    }
}

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
    let columns = [
        "server",
        "tool",
        "hits",
        "false_hits",
        "misses",
        "precision",
        "recall",
    ];
    write_table(summary, run, &columns, out, |report| {
        let rows = report.tools.iter().map(|score| {
            let counts = [score.hits, score.false_hits, score.misses];
            let shares = [score.precision(), score.recall()];
            let mut row = server_and_tool(&score.choice).to_vec();
            row.extend(counts.map(|count| count.to_string()));
            row.extend(shares.map(|share| share.map_or(String::new(), |share| share.to_string())));
            row
        });
        rows.collect()
    })
}

/// Writes the confusion matrix: one row per pair of an expected and a chosen tool.
pub(super) fn write_confusion(
    summary: &Summary,
    run: &str,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let columns = [
        "expected_server",
        "expected",
        "chosen_server",
        "chosen",
        "count",
    ];
    write_table(summary, run, &columns, out, |report| {
        let rows = report.confusion.iter().map(|((expected, chosen), count)| {
            let mut row = server_and_tool(expected).to_vec();
            row.extend(server_and_tool(chosen));
            row.push(count.to_string());
            row
        });
        rows.collect()
    })
}

/// Writes the rows of each agent behind the columns that name the run and the agent.
fn write_table(
    summary: &Summary,
    run: &str,
    columns: &[&str],
    out: &mut dyn Write,
    rows: impl Fn(&SelectionReport) -> Vec<Vec<String>>,
) -> Result<(), ReportError> {
    let mut cells = Cells::default();
    for column in ["run", "agent"].iter().chain(columns) {
        cells.text(column);
    }
    cells.end(out)?;
    for report in SelectionReport::of(summary) {
        for row in rows(&report) {
            cells.text(run);
            cells.text(&report.agent);
            for cell in &row {
                cells.text(cell);
            }
            cells.end(out)?;
        }
    }
    Ok(())
}

fn server_and_tool(choice: &Choice) -> [String; 2] {
    let (server, tool) = match choice {
        Choice::Tool(name) => (name.server.as_str(), name.tool.as_str()),
        Choice::Invented => ("", "(invented name)"),
        Choice::NoCall => ("", "(no call)"),
    };
    [server, tool].map(str::to_owned)
}

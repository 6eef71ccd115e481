//! A comparison as Markdown, for a pull-request comment or a job summary.
//!
//! Every text from outside is inline code, so that it can't become markup, a mention or a link.

use proctor_core::compare::sentence::{self, passed};
use proctor_core::compare::{CellPair, ComparisonAnswer, UnpairedCase};

use super::{CompareReport, tool_change};
use crate::markdown::COMMENT;
use crate::markdown::code::{code, reason};
use crate::words;

/// The rows that are shown before the rest is folded.
const ROWS: usize = 10;

/// Renders the comparison in at most 60,000 bytes; rows that don't fit are counted.
pub fn render(report: &CompareReport<'_>) -> String {
    let comparison = report.comparison;
    let title = match comparison.answer {
        ComparisonAnswer::Regression => "regression",
        ComparisonAnswer::NoRegressionShown => "no regression shown",
        ComparisonAnswer::Inconclusive { .. } => "inconclusive",
    };
    let mut out = format!(
        "<!-- proctor:{} -->\n### Proctor: {title} in {}\n\n{}\n",
        marker(report.suite),
        code(report.suite),
        sentence::answer(comparison, &code)
    );
    let mut rows: Vec<String> = Vec::new();
    for (word, cells) in [
        ("worse", comparison.worse()),
        ("better", comparison.better()),
    ] {
        rows.extend(cells.into_iter().map(|cell| row(report, word, cell)));
    }
    let foot = foot(report);
    let head = "| | case | base | new | why |\n|---|---|---|---|---|\n";
    let room = COMMENT.saturating_sub(out.len() + foot.len() + 3 * head.len());
    let fitting = fitting(&rows, room);
    let (shown, rest) = rows[..fitting].split_at(fitting.min(ROWS));
    if !shown.is_empty() {
        out.push_str(&format!("\n{head}{}", shown.concat()));
    }
    if !rest.is_empty() {
        out.push_str(&format!(
            "\n<details><summary>{} more</summary>\n\n{head}{}\n</details>\n",
            rest.len(),
            rest.concat()
        ));
    }
    if fitting < rows.len() {
        out.push_str(&format!("\n… and {} more\n", rows.len() - fitting));
    }
    out.push_str(&foot);
    out
}

fn row(report: &CompareReport<'_>, word: &str, cell: &CellPair) -> String {
    let found = report.reason(cell).filter(|_| cell.change() < 0.0);
    let mut why = found.map_or(String::new(), reason);
    if report.comparison.is_regressed(cell)
        && let Some(test) = cell.test
    {
        why = format!("{} {why}", sentence::p_value(test.adjusted));
    }
    let (base, new) = (passed(cell.base), passed(cell.new));
    let name = code(&report.name(cell));
    format!("| {word} | {name} | {base} | {new} | {} |\n", why.trim())
}

/// The cases that were not compared, the spending and the tools.
fn foot(report: &CompareReport<'_>) -> String {
    let pairing = &report.comparison.pairing;
    let mut out = String::new();
    let names = |cases: &[UnpairedCase]| {
        let names: Vec<String> = cases
            .iter()
            .take(ROWS)
            .map(|case| code(&case.name))
            .collect();
        let more = match cases.len().saturating_sub(ROWS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", names.join(", "))
    };
    for (cases, note) in [
        (&pairing.changed, "changed and not compared"),
        (&pairing.added, "new"),
        (&pairing.removed, "removed"),
    ] {
        if !cases.is_empty() {
            let count = words::count(cases.len() as u64, "case");
            out.push_str(&format!("\n{count} {note}: {}\n", names(cases)));
        }
    }
    let others = report.tools.unclassified().map(|change| {
        let name = code(&format!("{}.{}", change.server, change.tool));
        format!("{name} {}", tool_change(change))
    });
    let classified = report.tools.lines().map(|line| reason(&line));
    let tools: Vec<String> = classified.chain(others).collect();
    if !tools.is_empty() {
        let more = match tools.len().saturating_sub(ROWS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = &tools[..tools.len().min(ROWS)];
        out.push_str(&format!("\nTools: {}{more}\n", shown.join(", ")));
    }
    let changes = report.changes();
    if !changes.is_empty() {
        let facts: Vec<String> = changes
            .iter()
            .map(|(label, text)| format!("{label} {text}"))
            .collect();
        out.push_str(&format!("\n{}\n", facts.join(" · ")));
    }
    let (base, new) = (code(&report.comparison.base), code(&report.comparison.new));
    out.push_str(&format!("\nBase {base}, new {new}\n"));
    out
}

/// How many rows fit into this many bytes.
fn fitting(rows: &[String], room: usize) -> usize {
    let mut used = 0;
    rows.iter()
        .take_while(|row| {
            used += row.len();
            used <= room
        })
        .count()
}

/// A name in an HTML comment: only characters that can't end it.
fn marker(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/');
    name.chars()
        .map(|c| if safe(c) { c } else { '_' })
        .take(80)
        .collect()
}

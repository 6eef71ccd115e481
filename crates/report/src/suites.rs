//! The report of several suites that one command ran: their reports, then a table.
//!
//! Its main type is [`SuitesReport`].

use std::io::Write;

use proctor_core::gate::Gate;
use proctor_core::printable::printable;
use proctor_record::duration;
use proctor_record::event::RunKind;
use proctor_record::record::RecordError;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::markdown::code::code;
use crate::terminal::{self, TerminalStyle};
use crate::{Report, ReportError, evals, json as documents, junit, markdown};

/// The results of several suites.
pub struct SuitesReport<'a> {
    /// The suites that ran, in order.
    pub reports: Vec<Report<'a>>,
    pub skipped: Vec<SkippedSuite<'a>>,
    /// Why the records of other suites can't be read.
    pub unreadable: Vec<String>,
    /// The exit code of the command.
    pub exit: u8,
}

/// A suite of which no case ran.
#[derive(Debug, Clone, Copy)]
pub struct SkippedSuite<'a> {
    pub name: &'a str,
    pub reason: &'a str,
}

/// The titles of the table's columns.
const TITLES: [&str; 6] = ["SUITE", "PASSED", "GATE", "EXIT", "TIME", "RECORD"];

/// Renders the report of each suite below its name, and the table.
pub fn render(report: &SuitesReport<'_>, style: TerminalStyle) -> Result<String, RecordError> {
    let mut out = String::new();
    for one in &report.reports {
        let heading = format!("{} ({})", one.summary.started.name, one.summary.plan.suite);
        out.push_str(&format!("== {}\n\n", printable(&heading)));
        out.push_str(&terminal::render(one, style)?);
        out.push('\n');
    }
    out.push_str(&table(report));
    Ok(out)
}

/// One line for each suite, and the totals.
pub fn table(report: &SuitesReport<'_>) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(report.reports.iter().map(row));
    rows.extend(report.skipped.iter().map(|skipped| {
        let none = || "–".to_owned();
        let name = printable(skipped.name).into_owned();
        [
            name,
            none(),
            "not selected".to_owned(),
            none(),
            none(),
            none(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max();
    let widths: Vec<usize> = (0..TITLES.len()).filter_map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let gap = " ".repeat(width.saturating_sub(cell.width()));
            format!("{cell}{gap}")
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push_str(&format!("\n{}\n", totals(report)));
    out
}

fn row(report: &Report<'_>) -> [String; 6] {
    let counts = report.summary.counts();
    [
        printable(&report.summary.started.name).into_owned(),
        format!("{}/{}", counts.passed, counts.total()),
        answer(report).to_owned(),
        report.exit.to_string(),
        duration::brief(report.summary.duration),
        printable(&report.folder.display().to_string()).into_owned(),
    ]
}

/// The answer of the gate, in a word. A run that stopped early has no final answer.
fn answer(report: &Report<'_>) -> &'static str {
    match (report.exit, report.gate) {
        (130, _) => "interrupted",
        (_, Gate::Met) => "met",
        (_, Gate::Missed { .. }) => "missed",
        (_, Gate::Open { .. }) => "inconclusive",
    }
}

/// `3 suites: 1 met, 1 missed, 1 not selected; exit code 1`.
fn totals(report: &SuitesReport<'_>) -> String {
    let all = report.reports.len() + report.skipped.len() + report.unreadable.len();
    let words = ["met", "missed", "inconclusive", "interrupted"];
    let counted = words.map(|word| {
        let meant = report.reports.iter().filter(|one| answer(one) == word);
        (meant.count(), word)
    });
    let others = [
        (report.skipped.len(), "not selected"),
        (report.unreadable.len(), "unreadable"),
    ];
    let counted = counted.into_iter().chain(others);
    let parts = counted.filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let suites = crate::words::count(all as u64, "suite");
    format!("{suites}: {}; exit code {}", parts.join(", "), report.exit)
}

/// Renders the reports as Markdown, each in its share of `limit` bytes, and the totals.
pub fn markdown(report: &SuitesReport<'_>, limit: usize) -> String {
    let share = limit / report.reports.len().max(1);
    let mut out = String::new();
    for one in &report.reports {
        out.push_str(&markdown::render(one, share));
        out.push('\n');
    }
    for skipped in &report.skipped {
        let (name, reason) = (code(skipped.name), code(skipped.reason));
        out.push_str(&format!("{name} did not run: {reason}\n\n"));
    }
    for reason in &report.unreadable {
        out.push_str(&format!("A record can't be read: {}\n\n", code(reason)));
    }
    out.push_str(&format!("**{}**\n", totals(report)));
    out
}

/// Writes one JSON document: `proctor` with the exit code, and in `suites` the document of each suite.
pub fn write_json(report: &SuitesReport<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|one| json!({ "suite": one.name, "reason": one.reason }));
    let ours = json!({
        "exit": { "code": report.exit, "note": totals(report) },
        "skipped": skipped.collect::<Vec<Value>>(),
        "unreadable": report.unreadable,
    });
    write!(out, "{{\"proctor\":{ours},\n\"suites\":[")?;
    for (index, one) in report.reports.iter().enumerate() {
        let separator: &[u8] = if index == 0 { b"\n" } else { b"," };
        out.write_all(separator)?;
        match one.summary.plan.kind {
            RunKind::Evals => evals::write(one, out)?,
            RunKind::Suite | RunKind::Imported => documents::write(one, out)?,
        }
    }
    out.write_all(b"]}\n")?;
    Ok(())
}

/// Writes one JUnit document with the test suites of all suites.
pub fn write_junit(report: &SuitesReport<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    junit::write_all("proctor", &report.reports, &report.unreadable, out)
}

//! A comparison for a terminal: the answer, then regressions, then the rest.

use anstyle::{AnsiColor, Style};
use proctor_core::causes::one_line;
use proctor_core::compare::sentence::{self, passed};
use proctor_core::compare::{CellPair, ComparisonAnswer, UnpairedCase};
use proctor_core::printable::printable;

use super::{CompareReport, tool_change};
use crate::sheet::{RowReason, Sheet, SheetStyle, width};
use crate::words;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();

/// The maximum number of rows of each kind.
const ROWS: usize = 20;

/// The maximum number of names of cases that were not compared.
const NAMES: usize = 5;

/// Renders the comparison.
pub fn render(report: &CompareReport<'_>, style: SheetStyle) -> String {
    let mut sheet = Sheet::new(style);
    let comparison = report.comparison;
    let quote = |name: &str| format!("`{}`", printable(name));
    let colour = match comparison.answer {
        ComparisonAnswer::Regression => BAD,
        ComparisonAnswer::NoRegressionShown => GOOD,
        ComparisonAnswer::Inconclusive { .. } => DOUBTFUL,
    };
    sheet.answer(&sentence::answer(comparison, &quote), colour);
    cells(&mut sheet, report, ("WORSE", BAD), &comparison.worse());
    cells(&mut sheet, report, ("BETTER", GOOD), &comparison.better());
    unpaired(&mut sheet, report);
    sheet.blank();
    for (label, text) in report.changes() {
        sheet.fact(label, &text);
    }
    tools(&mut sheet, report);
    sheet.fact("Base", &comparison.base);
    sheet.fact("New", &comparison.new);
    sheet.into_text()
}

fn cells(sheet: &mut Sheet, report: &CompareReport<'_>, label: (&str, Style), cells: &[&CellPair]) {
    let shown = &cells[..cells.len().min(ROWS)];
    let columns: Vec<_> = shown.iter().map(|cell| columns(report, cell)).collect();
    let beside = columns.iter().map(|columns| sheet.room_beside(columns));
    // A longer name has a line of its own.
    let most = beside.min().unwrap_or(0).min(sheet.room(0) / 3);
    let names = shown.iter().map(|cell| width(&report.name(cell)));
    let room = names.filter(|width| *width <= most).max().unwrap_or(0);
    for (cell, columns) in shown.iter().zip(columns) {
        let reason = report.reason(cell).filter(|_| cell.change() < 0.0);
        let reason = reason.map(one_line);
        let reason = reason.as_deref().map_or(RowReason::Absent, RowReason::Text);
        sheet.row(label, (&report.name(cell), room), &columns, reason);
    }
    if cells.len() > ROWS {
        sheet.line(2, &format!("… and {} more", cells.len() - ROWS));
    }
}

/// The change of a case, and how surely it is worse.
fn columns(report: &CompareReport<'_>, cell: &CellPair) -> Vec<(String, usize)> {
    let mut columns = vec![(format!("{} → {}", passed(cell.base), passed(cell.new)), 0)];
    if report.comparison.is_regressed(cell)
        && let Some(test) = cell.test
    {
        columns.push((sentence::p_value(test.adjusted), 0));
    }
    columns
}

/// The cases and agents that were not compared.
fn unpaired(sheet: &mut Sheet, report: &CompareReport<'_>) {
    let pairing = &report.comparison.pairing;
    let cases = |sheet: &mut Sheet, label: &str, cases: &[UnpairedCase], note: &str| {
        if cases.is_empty() {
            return;
        }
        let names = cases.iter().take(NAMES).map(|case| case.name.as_str());
        let names: Vec<&str> = names.collect();
        let more = match cases.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = words::count(cases.len() as u64, "case");
        let text = format!("{count} {note}: {}{more}", names.join(", "));
        sheet.entry((label, DOUBTFUL), &text);
    };
    let changed = "with other content, not compared";
    cases(sheet, "CHANGED", &pairing.changed, changed);
    cases(sheet, "NEW", &pairing.added, "not in the base");
    cases(sheet, "REMOVED", &pairing.removed, "not in the new run");
    let known = "with a known failure, not compared";
    cases(sheet, "KNOWN", &pairing.known_failures, known);
    for (label, agents, note) in [
        ("NEW", &pairing.added_agents, "not in the base"),
        ("REMOVED", &pairing.removed_agents, "not in the new run"),
    ] {
        for agent in agents {
            sheet.entry((label, DOUBTFUL), &format!("agent {agent}, {note}"));
        }
    }
    if let [(base, new)] = &pairing.agents[..]
        && base != new
    {
        sheet.entry(("CHANGED", DOUBTFUL), &format!("agent {base} → {new}"));
    }
}

fn tools(sheet: &mut Sheet, report: &CompareReport<'_>) {
    let others = report.tools.unclassified().map(|change| {
        let (server, tool) = (&change.server, &change.tool);
        format!("{server}.{tool}: {}", tool_change(change))
    });
    let lines: Vec<String> = report.tools.lines().chain(others).collect();
    for line in lines.iter().take(ROWS) {
        sheet.more(line);
    }
    if lines.len() > ROWS {
        let left = lines.len() - ROWS;
        sheet.more(&format!("… and {left} more changes of servers"));
    }
}

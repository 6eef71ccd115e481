//! A comparison for a terminal: the answer, then regressions, then the rest.

use anstyle::{AnsiColor, Style};
use proctor_core::compare::sentence::{self, passed};
use proctor_core::compare::{CellPair, ComparisonAnswer, UnpairedCase};
use proctor_core::printable::printable;
use unicode_width::UnicodeWidthStr;

use super::{CompareReport, tool_change};
use crate::terminal::TerminalStyle;
use crate::terminal::lines::{cut, defused};
use crate::words;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();

/// The width of the label column.
const LABEL: usize = 10;

/// The maximum number of rows of each kind.
const ROWS: usize = 20;

/// The widest name of a case.
const NAME: usize = 40;

/// Renders the comparison.
pub fn render(report: &CompareReport<'_>, style: TerminalStyle) -> String {
    let mut page = Page {
        out: String::new(),
        width: style.width.max(40),
        colour: style.colour,
    };
    let comparison = report.comparison;
    let quote = |name: &str| format!("`{}`", printable(name));
    let colour = match comparison.answer {
        ComparisonAnswer::Regression => BAD,
        ComparisonAnswer::NoRegressionShown => GOOD,
        ComparisonAnswer::Inconclusive { .. } => DOUBTFUL,
    };
    page.answer(&sentence::answer(comparison, &quote), colour);
    cells(&mut page, report, "WORSE", BAD, &comparison.worse());
    cells(&mut page, report, "BETTER", GOOD, &comparison.better());
    unpaired(&mut page, report);
    let mut is_first = true;
    for (label, text) in report.changes() {
        if std::mem::take(&mut is_first) {
            page.blank();
        }
        page.row(label, Style::new().bold(), &text);
    }
    tools(&mut page, report);
    page.row("Base", Style::new().bold(), &printable(&comparison.base));
    page.row("New", Style::new().bold(), &printable(&comparison.new));
    page.out
}

fn cells(
    page: &mut Page,
    report: &CompareReport<'_>,
    label: &str,
    style: Style,
    cells: &[&CellPair],
) {
    let name = |cell: &CellPair| cut(&printable(&report.name(cell)), NAME);
    let shown = &cells[..cells.len().min(ROWS)];
    let room = shown.iter().map(|cell| name(cell).width()).max();
    let room = room.unwrap_or(0);
    for cell in shown {
        let name = name(cell);
        let gap = " ".repeat(room - name.width().min(room));
        let mut text = format!("{name}{gap}  {} → {}", passed(cell.base), passed(cell.new));
        if report.comparison.is_regressed(cell)
            && let Some(test) = cell.test
        {
            text.push_str(&format!("  {}", sentence::p_value(test.adjusted)));
        }
        if cell.change() < 0.0
            && let Some(reason) = report.reason(cell)
        {
            text.push_str(&format!("  {}", printable(reason)));
        }
        page.row(label, style, &text);
    }
    if cells.len() > ROWS {
        page.row("", style, &format!("… and {} more", cells.len() - ROWS));
    }
}

/// The cases and agents that were not compared.
fn unpaired(page: &mut Page, report: &CompareReport<'_>) {
    let pairing = &report.comparison.pairing;
    let cases = |page: &mut Page, label: &str, cases: &[UnpairedCase], note: &str| {
        if cases.is_empty() {
            return;
        }
        let names = cases
            .iter()
            .take(5)
            .map(|case| printable(&case.name).into_owned());
        let names: Vec<String> = names.collect();
        let more = match cases.len().saturating_sub(5) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = words::count(cases.len() as u64, "case");
        let text = format!("{count} {note}: {}{more}", names.join(", "));
        page.row(label, DOUBTFUL, &text);
    };
    let changed = "with other content, not compared";
    cases(page, "CHANGED", &pairing.changed, changed);
    cases(page, "NEW", &pairing.added, "not in the base");
    cases(page, "REMOVED", &pairing.removed, "not in the new run");
    let known = "with a known failure, not compared";
    cases(page, "KNOWN", &pairing.known_failures, known);
    for (label, agents, note) in [
        ("NEW", &pairing.added_agents, "not in the base"),
        ("REMOVED", &pairing.removed_agents, "not in the new run"),
    ] {
        for agent in agents {
            page.row(
                label,
                DOUBTFUL,
                &format!("agent {}, {note}", printable(agent)),
            );
        }
    }
    if let [(base, new)] = &pairing.agents[..]
        && base != new
    {
        let text = format!("agent {} → {}", printable(base), printable(new));
        page.row("CHANGED", DOUBTFUL, &text);
    }
}

fn tools(page: &mut Page, report: &CompareReport<'_>) {
    let changes = &report.tools.changes;
    for change in changes.iter().take(ROWS) {
        let (server, tool) = (printable(&change.server), printable(&change.tool));
        page.row(
            "",
            DOUBTFUL,
            &format!("{server}.{tool}: {}", tool_change(change)),
        );
    }
    if changes.len() > ROWS {
        page.row(
            "",
            DOUBTFUL,
            &format!("… and {} more tools", changes.len() - ROWS),
        );
    }
}

struct Page {
    out: String,
    width: usize,
    colour: bool,
}

impl Page {
    /// The first sentence, wrapped: it must be read to its end.
    fn answer(&mut self, text: &str, style: Style) {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut line = String::new();
        let mut lines = Vec::new();
        for part in format!("{word}:{rest}").split(' ') {
            if !line.is_empty() && line.width() + 1 + part.width() > self.width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(part);
        }
        lines.push(line);
        for (index, line) in lines.iter().enumerate() {
            let line = cut(&defused(line), self.width);
            let line = match line
                .strip_prefix(word)
                .filter(|_| index == 0 && self.colour)
            {
                Some(rest) => format!("{style}{word}{style:#}{rest}"),
                None => line,
            };
            self.out.push_str(&format!("{line}\n"));
        }
    }

    fn row(&mut self, label: &str, style: Style, text: &str) {
        let gap = " ".repeat(LABEL - label.width().min(LABEL));
        let text = cut(text, self.width - LABEL);
        let label = if self.colour && !label.is_empty() {
            format!("{style}{label}{style:#}")
        } else {
            label.to_owned()
        };
        self.out.push_str(format!("{label}{gap}{text}").trim_end());
        self.out.push('\n');
    }

    fn blank(&mut self) {
        self.out.push('\n');
    }
}

//! Runs as a table for people. On narrow terminals the last columns shrink; names never do, because users
//! copy them.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use proctor_core::history::{RunContent, RunResultRow, RunRow};
use proctor_core::overview::Answer;
use proctor_core::printable::printable;
use unicode_width::UnicodeWidthStr;

use crate::output;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();

const COLUMNS: [&str; 7] = ["RUN", "AGE", "PASSED", "GATE", "SUITE", "AGENT", "MODEL"];
const GATE: usize = 3;
const SUITE: usize = 4;

/// The columns that shrink, and the narrowest that they get.
const SHRINKING: std::ops::Range<usize> = 5..7;
const NARROWEST: usize = 6;

const GAP: usize = 2;

type Cells = [String; 7];

/// Renders the runs for the terminal's width.
pub(super) fn render(runs: &[RunRow], now: Timestamp) -> String {
    render_for(runs, now, output::width().max(40))
}

fn render_for(runs: &[RunRow], now: Timestamp, width: usize) -> String {
    let rows: Vec<(&RunRow, Cells)> = runs.iter().map(|run| (run, cells(run, now))).collect();
    let header = COLUMNS.map(str::to_owned);
    let tables = || rows.iter().filter(|(run, _)| !is_unreadable(run));
    let mut widths = std::array::from_fn(|column| {
        let cells = tables().map(|(_, cells)| cells[column].width());
        cells.max().unwrap_or(0).max(header[column].width())
    });
    shrink(&mut widths, width);
    let mut out = line(&header, &widths, None);
    for (run, cells) in &rows {
        match &run.content {
            RunContent::Unreadable { reason } => {
                let reason = printable(reason);
                out.push_str(&format!(
                    "{}  {DOUBTFUL}unreadable{DOUBTFUL:#}: {reason}\n",
                    cells[0]
                ));
            }
            RunContent::Ended(_) | RunContent::Unfinished(_) | RunContent::Recording { .. } => {
                out.push_str(&line(cells, &widths, gate_style(&run.content)));
            }
        }
    }
    out
}

fn is_unreadable(run: &RunRow) -> bool {
    matches!(run.content, RunContent::Unreadable { .. })
}

/// Makes a line fit: drops the suite, which most names contain, then shortens the widest cells.
fn shrink(widths: &mut [usize; 7], room: usize) {
    let all = |widths: &[usize; 7]| widths.iter().map(|width| width + GAP).sum::<usize>() - GAP;
    if all(widths) > room {
        widths[SUITE] = 0;
    }
    // A column that is dropped has no gap either.
    while all(widths) - GAP > room {
        match SHRINKING.max_by_key(|column| widths[*column]) {
            Some(widest) if widths[widest] > NARROWEST => widths[widest] -= 1,
            _ => return,
        }
    }
}

fn line(cells: &Cells, widths: &[usize; 7], gate: Option<Style>) -> String {
    let mut out = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if *width == 0 {
            continue;
        }
        let cell = cut(cell, *width);
        let gap = " ".repeat(width - cell.width() + GAP);
        match gate.filter(|_| column == GATE) {
            Some(style) => out.push_str(&format!("{style}{cell}{style:#}{gap}")),
            None => out.push_str(&format!("{cell}{gap}")),
        }
    }
    format!("{}\n", out.trim_end())
}

/// The text, or its beginning with an ellipsis.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if out.width() >= room {
            out.pop();
            break;
        }
    }
    format!("{out}…")
}

fn cells(run: &RunRow, now: Timestamp) -> Cells {
    let name = printable(&run.name).into_owned();
    let none = || "–".to_owned();
    match &run.content {
        RunContent::Unreadable { .. } => [name, none(), none(), none(), none(), none(), none()],
        RunContent::Recording { started, suite } => [
            name,
            age(started, now),
            none(),
            "recording".to_owned(),
            printable(suite).into_owned(),
            none(),
            none(),
        ],
        RunContent::Ended(row) => result_cells(name, row, gate(row.gate), now),
        RunContent::Unfinished(row) => result_cells(name, row, "unfinished", now),
    }
}

fn result_cells(name: String, row: &RunResultRow, gate: &str, now: Timestamp) -> Cells {
    let agents = row.agents.iter().map(|agent| agent.name.as_str());
    let models = row.agents.iter().filter_map(|agent| agent.model.as_deref());
    let rate = row.rate.as_ref();
    [
        name,
        age(&row.started, now),
        rate.map_or("–".to_owned(), |rate| {
            format!("{}/{}", rate.passed, rate.counted)
        }),
        gate.to_owned(),
        printable(&row.suite).into_owned(),
        joined(agents),
        joined(models),
    ]
}

/// Each word once, in order.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for word in words {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    if seen.is_empty() {
        return "–".to_owned();
    }
    printable(&seen.join(", ")).into_owned()
}

fn gate(answer: Answer) -> &'static str {
    match answer {
        Answer::Met => "met",
        Answer::Missed => "missed",
        Answer::Inconclusive => "inconclusive",
    }
}

fn gate_style(content: &RunContent) -> Option<Style> {
    match content {
        RunContent::Ended(row) => Some(match row.gate {
            Answer::Met => GOOD,
            Answer::Missed => BAD,
            Answer::Inconclusive => DOUBTFUL,
        }),
        RunContent::Unfinished(_) => Some(DOUBTFUL),
        RunContent::Recording { .. } | RunContent::Unreadable { .. } => None,
    }
}

/// How long ago a time was: `42s`, `3m`, `5h`, `12d`.
fn age(started: &str, now: Timestamp) -> String {
    let Ok(started) = started.parse::<Timestamp>() else {
        return "?".to_owned();
    };
    let seconds = (now.as_second() - started.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;

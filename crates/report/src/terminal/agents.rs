//! The table that compares the agents of a run.

use proctor_core::printable::printable;
use proctor_core::summary::{AgentSummary, Summary};
use unicode_width::UnicodeWidthStr;

use super::lines::Page;
use crate::{sentences, words};

/// The maximum number of cases named in a line of differences.
const NAMED: usize = 5;

/// The columns after the name, with their widths.
const COLUMNS: [(&str, usize); 7] = [
    ("passed", 10),
    ("95% CI", 8),
    ("errors", 6),
    ("turns", 5),
    ("tokens", 10),
    ("cost", 8),
    ("median", 7),
];

/// The column that is skipped if long names need its space.
const TURNS: usize = 3;

/// Renders the table, unless there is only one agent.
pub(super) fn render(page: &mut Page, summary: &Summary) {
    if summary.plan.agents.len() > 1 {
        table(page, summary);
    }
}

/// Renders a table with a line for each agent, and the cases in which they differ.
pub(crate) fn table(page: &mut Page, summary: &Summary) {
    let agents = summary.by_agent();
    let width_of = |columns: &[usize]| -> usize {
        let widths = columns.iter().map(|column| COLUMNS[*column].1 + 2);
        widths.sum()
    };
    let planned = summary.plan.agents.iter().map(sentences::agent);
    let names: Vec<String> = planned.map(|name| printable(&name).into_owned()).collect();
    let longest = names.iter().map(|name| name.width());
    let longest = longest.max().unwrap_or(0).max(8);
    let mut columns: Vec<usize> = (0..COLUMNS.len()).collect();
    if longest + width_of(&columns) > page.width() {
        columns.retain(|column| *column != TURNS);
    }
    let room = page.width().saturating_sub(width_of(&columns)).max(8);
    let room = room.min(longest);
    let line = |page: &mut Page, name: &str, cells: [String; 7]| {
        let mut name = name;
        if name.width() > room {
            // Shortened names of two agents could look the same.
            page.cut(0, name, None);
            name = "";
        }
        let gap = " ".repeat(room - name.width().min(room));
        let cells = columns.iter().map(|column| {
            let (cell, width) = (&cells[*column], COLUMNS[*column].1);
            format!("  {}{cell}", " ".repeat(width - cell.width().min(width)))
        });
        let cells: String = cells.collect();
        page.cut(0, &format!("{name}{gap}{cells}"), None);
    };
    line(page, "agent", COLUMNS.map(|(title, _)| title.to_owned()));
    for (name, agent) in names.iter().zip(&agents) {
        line(page, name, cells(agent));
    }
    // A single agent has no differences to list.
    for agent in agents.iter().filter(|_| agents.len() > 1) {
        apart(page, agent, "passed", &agent.alone);
        // With two agents, this would repeat the line above.
        if agents.len() > 2 {
            apart(page, agent, "failed", &agent.missed_alone);
        }
    }
    page.blank();
}

fn cells(agent: &AgentSummary<'_>) -> [String; 7] {
    let none = || "–".to_owned();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let (passed, interval) = match &agent.rate {
        Some(rate) => (
            format!("{}/{}", rate.tally.passed, rate.tally.counted),
            format!(
                "{}–{}%",
                percent(rate.interval.low),
                percent(rate.interval.high)
            ),
        ),
        None => (none(), none()),
    };
    [
        passed,
        interval,
        agent.counts.errored.to_string(),
        agent.turns.to_string(),
        match agent.unmetered {
            0 => words::thousands(agent.usage.total()),
            _ if agent.usage.total() == 0 => "unknown".to_owned(),
            _ => format!("≥{}", words::thousands(agent.usage.total())),
        },
        words::cost(agent.cost_usd).replace("under ", "<"),
        agent.median.and_then(words::time).unwrap_or_else(none),
    ]
}

/// Lists the cases in which only this agent passed or failed.
fn apart(page: &mut Page, agent: &AgentSummary<'_>, verb: &str, cases: &[&str]) {
    if cases.is_empty() {
        return;
    }
    let shown = cases.iter().take(NAMED);
    let mut names: Vec<String> = shown.map(|name| printable(name).into()).collect();
    if cases.len() > NAMED {
        names.push(format!("and {} more", cases.len() - NAMED));
    }
    let (name, names) = (printable(agent.name), names.join(", "));
    page.wrapped(0, &format!("only {name} {verb}: {names}"));
}

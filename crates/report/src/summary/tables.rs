//! The tables of a summary: causes with all their trials, every case, every agent.

use std::time::Duration;

use anstyle::Style;
use proctor_core::causes::{Cause, TrialRef, group};
use proctor_core::summary::{Summary, TrialResult};
use proctor_record::event::Outcome;

use super::cells::{CaseStatus, Cell};
use super::{BAD, DOUBTFUL, GOOD, RunSummary, WITH_REASONS, WITH_STRIPS, short_name, strip};
use crate::sheet::{RowReason, Sheet, SheetStyle, width};
use crate::terminal::{self, Page, TerminalStyle};
use crate::{sentences, words};

/// Each cause: its trials, its reason, and the command that shows the first of them.
pub(super) fn failures(sheet: &mut Sheet, run: &RunSummary<'_>) {
    let causes = group(run.summary.trials());
    if causes.is_empty() {
        sheet.line(2, "No trial failed, timed out or errored.");
    }
    for cause in &causes {
        failure(sheet, run, cause);
    }
}

fn failure(sheet: &mut Sheet, run: &RunSummary<'_>, cause: &Cause<'_>) {
    let label = match cause.outcome {
        Outcome::Failed | Outcome::Passed | Outcome::Cancelled => ("FAILED", BAD),
        Outcome::TimedOut => ("TIMEOUT", BAD),
        Outcome::Errored => ("ERRORED", DOUBTFUL),
    };
    let trials = words::count(cause.trials.len() as u64, "trial");
    let names = names(run.summary, &cause.trials);
    let blame = match cause.blame {
        Some(blame) => format!(" (blame: {})", words::blame(blame)),
        None => String::new(),
    };
    sheet.entry(label, &format!("{trials}{blame}: {}", names.join("; ")));
    sheet.text(10, &sentences::cause(cause));
    let first = cause.trials.first().map(|trial| named(run.summary, trial));
    if let Some(command) = first.and_then(|first| run.view(&first)) {
        sheet.command("", &command);
    }
}

/// The trials by case: `list-pods 2, 4`, `codex/list-pods 1`.
fn names(summary: &Summary, trials: &[TrialRef<'_>]) -> Vec<String> {
    let mut cells: Vec<(String, Vec<String>)> = Vec::new();
    for trial in trials {
        let name = cell(summary, trial);
        let number = (trial.0.case.runs > 1).then(|| trial.2.repeat.to_string());
        match cells.iter_mut().find(|(known, _)| *known == name) {
            Some((_, numbers)) => numbers.extend(number),
            None => cells.push((name, Vec::from_iter(number))),
        }
    }
    let names = cells.into_iter().map(|(name, numbers)| {
        let numbers = numbers.join(", ");
        format!("{name} {numbers}").trim_end().to_owned()
    });
    names.collect()
}

/// The name of a trial, as `result view` takes it.
fn named(summary: &Summary, trial: &TrialRef<'_>) -> String {
    match trial.0.case.runs {
        1 => cell(summary, trial),
        _ => format!("{} {}", cell(summary, trial), trial.2.repeat),
    }
}

fn cell(summary: &Summary, (case, trials, _): &TrialRef<'_>) -> String {
    let agents = &summary.plan.agents;
    let agent = agents.iter().find(|agent| agent.name == trials.agent);
    match agent.filter(|_| agents.len() > 1) {
        Some(agent) => format!("{}/{}", short_name(agent), case.case.name),
        None => case.case.name.clone(),
    }
}

/// The titles of the columns behind the name of a case.
const TITLES: [&str; 5] = ["passed", "median", "tokens", "cost", "trials"];

/// Every case, worst first, with what it took.
pub(super) fn cases(sheet: &mut Sheet, cells: &[Cell<'_>], style: SheetStyle) {
    let shown = match style.width {
        WITH_STRIPS.. => 5,
        WITH_REASONS.. => 4,
        _ => 2,
    };
    let columns = |cell: &Cell<'_>| -> Vec<String> {
        let strip = strip::strip(cell.trials, style.utf8).unwrap_or_default();
        let mut columns = vec![cell.rate()];
        columns.extend(spent(cell));
        columns.push(strip);
        columns.truncate(shown);
        columns
    };
    let rows: Vec<Vec<String>> = cells.iter().map(columns).collect();
    let rooms: Vec<usize> = (0..shown)
        .map(|column| {
            let cells = rows.iter().map(|row| width(&row[column]));
            cells.max().unwrap_or(0).max(TITLES[column].len())
        })
        .collect();
    // The marks of trials begin below each other.
    let room = |column: usize| if column < 4 { rooms[column] } else { 0 };
    let names = cells.iter().map(|cell| width(&cell.name()));
    let fitting = names.filter(|width| *width <= style.width / 3);
    let name_room = fitting.max().unwrap_or(0).max(4);
    let placed = |row: Vec<String>| -> Vec<(String, usize)> {
        let columns = row.into_iter().enumerate();
        columns.map(|(at, text)| (text, room(at))).collect()
    };
    let titles = TITLES[..shown].iter().map(|title| (*title).to_owned());
    let titles = placed(titles.collect());
    sheet.row(
        ("", Style::new()),
        ("case", name_room),
        &titles,
        RowReason::Absent,
    );
    for (cell, row) in cells.iter().zip(rows) {
        let label = label(cell.standing);
        let (name, columns) = (cell.name(), placed(row));
        sheet.row(label, (&name, name_room), &columns, RowReason::Absent);
    }
}

/// The word for how a case stands.
pub(super) fn label(standing: CaseStatus) -> (&'static str, Style) {
    match standing {
        CaseStatus::Missed => ("MISSED", BAD),
        CaseStatus::Inconclusive => ("INCONCL", DOUBTFUL),
        CaseStatus::KnownFailure => ("KNOWN", DOUBTFUL),
        CaseStatus::Flaky => ("FLAKY", DOUBTFUL),
        CaseStatus::Passed => ("PASSED", GOOD),
    }
}

/// The median duration, and the tokens and the cost of all trials.
fn spent(cell: &Cell<'_>) -> [String; 3] {
    let results: Vec<&TrialResult> = cell
        .trials
        .trials
        .iter()
        .filter_map(|trial| trial.result.as_ref())
        .collect();
    let mut times: Vec<Duration> = results.iter().map(|result| result.duration()).collect();
    times.sort();
    let median = times.get(times.len() / 2).copied().and_then(words::time);
    let tokens = results.iter().map(|result| result.agent().usage.total());
    let tokens: u64 = tokens.sum();
    let is_unmetered = results.iter().any(|result| result.agent().unmetered > 0);
    let tokens = match (tokens, is_unmetered) {
        (0, true) => "unknown".to_owned(),
        (tokens, true) => format!("≥{}", words::thousands(tokens)),
        (tokens, false) => words::thousands(tokens),
    };
    let costs = results.iter().map(|result| result.agent().cost_usd);
    let cost: Option<f64> = costs.sum();
    [
        median.unwrap_or_else(|| "–".to_owned()),
        tokens,
        words::cost(cost).replace("under ", "<"),
    ]
}

/// Every agent, also a single one.
pub(super) fn agents(sheet: &mut Sheet, summary: &Summary, style: SheetStyle) {
    let mut page = Page::new(TerminalStyle {
        width: style.width,
        colour: style.colour,
    });
    terminal::agents::table(&mut page, summary);
    for line in page.into_text().trim_end().lines() {
        sheet.raw(line);
    }
}

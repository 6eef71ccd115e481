//! The summary of a run: the cases that missed their pass rule first, then the totals.
//!
//! Its main type is [`RunSummary`]. It needs only the index of a run, so it is quick for any number of trials. The text
//! is for people, [`document`] for scripts, [`github_output`] for the steps of a job.

pub(crate) mod cells;
mod document;
mod outputs;
mod strip;
mod tables;
mod totals;

use std::path::Path;

use anstyle::{AnsiColor, Style};
use proctor_core::causes::group;
use proctor_core::coverage::Coverage;
use proctor_core::gate::{CaseVerdict, Gate};
use proctor_core::printable::is_hidden;
use proctor_core::summary::{AgentTrials, AssertionCounter, Summary};
use proctor_record::event::PlannedAgent;

pub use self::document::document;
pub use self::outputs::github_output;

use self::cells::{CaseStatus, Cell, worst_first};
use crate::sheet::{RowReason, Sheet, SheetStyle, width};
use crate::{ReportPart, selection, sentences, words};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();

/// The maximum number of cases that are listed, unless all are requested.
const CASES: usize = 20;

/// The maximum number of agents that are named.
const AGENTS: usize = 3;

/// The narrowest text with strips, and the narrowest one with reasons.
const WITH_STRIPS: usize = 80;
const WITH_REASONS: usize = 60;

/// A run, for a summary.
#[derive(Debug, Clone, Copy)]
pub struct RunSummary<'a> {
    /// The path of the run's folder, as the summary shows it.
    pub folder: &'a Path,
    /// The shortest name by which a command in the working directory finds the run.
    pub name: &'a str,
    pub summary: &'a Summary,
    /// The gate of the whole run.
    pub gate: &'a Gate,
    pub coverage: &'a Coverage,
    pub assertions: &'a AssertionCounter,
    /// The filter, if the summary is only a part of the run.
    pub part: Option<ReportPart<'a>>,
}

/// What the text of a summary shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryOptions<'a> {
    /// Whether every case and cause is listed.
    pub all: bool,
    /// The tables to show instead of what needs attention.
    pub tables: &'a [SummaryTable],
}

/// A table of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryTable {
    /// The causes of failures, with all their trials.
    Failures,
    /// Every case.
    Cases,
    /// Every agent.
    Agents,
}

/// Renders the summary as text.
pub fn render(run: &RunSummary<'_>, style: SheetStyle, options: SummaryOptions<'_>) -> String {
    let mut sheet = Sheet::new(style);
    let cells = worst_first(run.summary);
    header(&mut sheet, run.summary);
    if let Some(part) = &run.part {
        sheet.line(2, &sentences::part(run.summary, part));
    }
    sheet.blank();
    if options.tables.is_empty() {
        attention(&mut sheet, run, &cells, (style, options.all));
        return sheet.into_text();
    }
    for table in options.tables {
        match table {
            SummaryTable::Failures => tables::failures(&mut sheet, run),
            SummaryTable::Cases => tables::cases(&mut sheet, &cells, style),
            SummaryTable::Agents => tables::agents(&mut sheet, run.summary, style),
        }
        sheet.blank();
    }
    totals::trials(&mut sheet, run.summary);
    totals::gate(&mut sheet, run);
    sheet.into_text()
}

/// What needs attention, then the totals.
fn attention(
    sheet: &mut Sheet,
    run: &RunSummary<'_>,
    cells: &[Cell<'_>],
    (style, all): (SheetStyle, bool),
) {
    let causes = group(run.summary.trials());
    let are_shared = causes.iter().any(totals::spans_cells);
    listed(sheet, cells, style, (all, are_shared));
    met(sheet, cells);
    sheet.blank();
    totals::trials(sheet, run.summary);
    totals::agents(sheet, run.summary);
    totals::stable(sheet, cells);
    let chosen = selection::lines(run.summary);
    if !chosen.is_empty() {
        sheet.blank();
    }
    for line in chosen {
        sheet.line(0, &line);
    }
    // Otherwise each cause is already shown with its case.
    if are_shared || cells.iter().filter(|cell| cell.is_listed()).count() > CASES {
        totals::causes(sheet, &causes, all);
    }
    totals::coverage(sheet, run.coverage);
    totals::gate(sheet, run);
    next(sheet, run, cells);
}

/// What was run, by whom and when.
fn header(sheet: &mut Sheet, summary: &Summary) {
    let mut facts = vec![planned(summary)];
    facts.push(match summary.plan.agents.as_slice() {
        agents if agents.len() > AGENTS => format!("{} agents", agents.len()),
        agents => {
            let names: Vec<String> = agents.iter().map(|a| agent(a, summary)).collect();
            names.join(", ")
        }
    });
    for seen in &summary.servers {
        let version = seen.version.as_deref().unwrap_or_default();
        facts.push(
            format!("server {} {version}", seen.server)
                .trim_end()
                .to_owned(),
        );
    }
    facts.push(started(&summary.started.started));
    facts.extend(words::time(summary.duration));
    if summary.ended.is_none() {
        facts.push("not finished".to_owned());
    }
    sheet.title(&summary.started.name, &facts.join(" · "));
}

/// `40 cases × 5 trials`, or the total if cases have different numbers of trials.
pub(crate) fn planned(summary: &Summary) -> String {
    let cases = words::count(summary.cases.len() as u64, "case");
    let runs: Vec<u32> = summary.cases.iter().map(|case| case.case.runs).collect();
    match runs.split_first() {
        Some((first, rest)) if rest.iter().all(|runs| runs == first) => {
            format!("{cases} × {}", words::count(u64::from(*first), "trial"))
        }
        _ => {
            let trials = summary.trials().count() as u64;
            format!("{cases}, {}", words::count(trials, "trial"))
        }
    }
}

/// An agent with its model. An external agent may choose its own, which the record of its requests names.
fn agent(agent: &PlannedAgent, summary: &Summary) -> String {
    let name = short_name(agent);
    let models: Vec<&str> = summary.agent.models.iter().map(String::as_str).collect();
    match (&agent.model, models.as_slice()) {
        (Some(model), _) => format!("{name} with {model}"),
        (None, [_, ..]) if summary.plan.agents.len() == 1 => {
            format!("{name} with {}", models.join(", "))
        }
        (None, _) => format!("{name} (model unknown)"),
    }
}

/// The name of an agent without the model behind it.
pub(crate) fn short_name(agent: &PlannedAgent) -> &str {
    let model = agent.model.as_deref().unwrap_or_default();
    let short = agent.name.strip_suffix(&format!(" ({model})"));
    short.unwrap_or(&agent.name)
}

/// The start of a run: `15 Nov 2026 13:36 UTC`.
pub(crate) fn started(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%-d %b %Y %H:%M UTC").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// The cases that are not simply fine, worst first.
fn listed(
    sheet: &mut Sheet,
    cells: &[Cell<'_>],
    style: SheetStyle,
    (all, are_shared): (bool, bool),
) {
    let limit = if all { usize::MAX } else { CASES };
    let wanted = cells
        .iter()
        .filter(|cell| cell.standing != CaseStatus::Passed);
    let wanted: Vec<&Cell> = wanted.collect();
    let shown = &wanted[..wanted.len().min(limit)];
    // A longer name has a line of its own.
    let names = shown.iter().map(|cell| width(&cell.name()));
    let name_room = names
        .filter(|width| *width <= style.width / 3)
        .max()
        .unwrap_or(0);
    let rates = shown.iter().map(|cell| width(&cell.rate()));
    let rate_room = rates.max().unwrap_or(0);
    for cell in shown {
        let label = tables::label(cell.standing);
        let mut columns = vec![(cell.rate(), rate_room)];
        if style.width >= WITH_STRIPS {
            columns.extend(strip::strip(cell.trials, style.utf8).map(|strip| (strip, 0)));
        }
        let reason = cell.reason();
        let reason = match are_shared {
            _ if style.width < WITH_REASONS => RowReason::Absent,
            true => RowReason::Line(&reason),
            false => RowReason::Text(&reason),
        };
        sheet.row(label, (&cell.name(), name_room), &columns, reason);
    }
    if wanted.len() > shown.len() {
        let more = words::count((wanted.len() - shown.len()) as u64, "more case");
        sheet.line(2, &format!("… and {more}; `--all` lists them"));
    }
}

/// How many cases are fine.
fn met(sheet: &mut Sheet, cells: &[Cell<'_>]) {
    let count = |wanted: &[CaseStatus]| {
        let found = cells.iter().filter(|cell| wanted.contains(&cell.standing));
        found.count() as u64
    };
    let (met, flaky) = (
        count(&[CaseStatus::Passed, CaseStatus::Flaky]),
        count(&[CaseStatus::Flaky]),
    );
    let of = cells.len() as u64;
    let pairs = if cells.iter().any(|cell| cell.agent.is_some()) {
        "case × agent pair"
    } else {
        "case"
    };
    let flaky = match flaky {
        0 => String::new(),
        flaky => format!(", {} of them flaky", words::thousands(flaky)),
    };
    let of = words::count(of, pairs);
    sheet.line(
        2,
        &format!("{} of {of} met the pass rule{flaky}", words::thousands(met)),
    );
}

/// The command that shows the first trial that did not pass, or the run.
fn next(sheet: &mut Sheet, run: &RunSummary<'_>, cells: &[Cell<'_>]) {
    let failures = cells.iter().filter_map(Cell::first_failure);
    let mut commands = failures.filter_map(|trial| run.view(&trial));
    if let Some(command) = commands.next().or_else(|| run.view("")) {
        sheet.command("View", &command);
    }
}

impl RunSummary<'_> {
    /// The command that shows a trial of the run; `None` if a name would not stay one word in a shell.
    fn view(&self, trial: &str) -> Option<String> {
        let (run, trial) = (shell_word(self.name)?, shell_word(trial)?);
        Some(
            format!("proctor result view {run} {trial}")
                .trim_end()
                .to_owned(),
        )
    }
}

/// A name from outside as one word of a shell; `None` if quotes can't make it one.
fn shell_word(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if name.chars().all(is_plain) {
        Some(name.to_owned())
    } else if name.contains(|c: char| c == '\'' || is_hidden(c)) {
        None
    } else {
        Some(format!("'{name}'"))
    }
}

/// Whether some trials of a case did not pass although it meets its pass rule.
fn is_flaky(trials: &AgentTrials, verdict: CaseVerdict) -> bool {
    verdict == CaseVerdict::Met && trials.standing().not_passed > 0
}

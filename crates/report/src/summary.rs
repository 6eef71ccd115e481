//! The summary of a run: the cases that missed their pass rule first, then the totals.
//!
//! Its main type is [`RunSummary`]. It needs only the index of a run, so it is quick for any number of trials. The text
//! is for people, [`document`] for scripts.

mod cells;
mod document;
mod strip;

use std::path::Path;

use anstyle::{AnsiColor, Style};
use proctor_core::causes::{Cause, group};
use proctor_core::coverage::{Coverage, ServerCoverage};
use proctor_core::duration;
use proctor_core::event::PlannedAgent;
use proctor_core::gate::{CaseVerdict, Gate};
use proctor_core::printable::is_hidden;
use proctor_core::statistics::failures_allowed;
use proctor_core::summary::{AgentTrials, Summary};

pub use self::document::document;

use self::cells::{CaseStatus, Cell, worst_first};
use crate::sheet::{RowReason, Sheet, SheetStyle, width};
use crate::words;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();

/// The maximum number of cases and of causes that are listed, unless all are requested.
const CASES: usize = 20;
const CAUSES: usize = 5;

/// The maximum number of reasons and agents that are named.
const REASONS: usize = 3;
const AGENTS: usize = 3;

/// The narrowest text with strips, and the narrowest one with reasons.
const WITH_STRIPS: usize = 80;
const WITH_REASONS: usize = 60;

/// A run, for a summary.
#[derive(Debug, Clone, Copy)]
pub struct RunSummary<'a> {
    /// The path of the run's folder, as the summary shows it.
    pub folder: &'a Path,
    pub summary: &'a Summary,
    pub gate: &'a Gate,
    pub coverage: &'a Coverage,
}

/// Renders the summary as text. `all` lists every case and cause.
pub fn render(run: &RunSummary<'_>, style: SheetStyle, all: bool) -> String {
    let mut sheet = Sheet::new(style);
    let cells = worst_first(run.summary);
    let causes = group(run.summary.trials());
    let are_shared = causes.iter().any(|cause| spans_cells(cause));
    header(&mut sheet, run.summary);
    sheet.blank();
    listed(&mut sheet, &cells, style, (all, are_shared));
    met(&mut sheet, &cells);
    sheet.blank();
    trials(&mut sheet, run.summary);
    stable(&mut sheet, &cells);
    // Otherwise each cause is already shown with its case.
    if are_shared || cells.iter().filter(|cell| cell.is_listed()).count() > CASES {
        grouped(&mut sheet, &causes, all);
    }
    coverage(&mut sheet, run.coverage);
    gate(&mut sheet, run.gate);
    next(&mut sheet, run, &cells);
    sheet.into_text()
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
    facts.push(duration::brief(summary.duration));
    if summary.ended.is_none() {
        facts.push("not finished".to_owned());
    }
    sheet.title(&summary.started.name, &facts.join(" · "));
}

/// `40 cases × 5 trials`, or the total if cases have different numbers of trials.
fn planned(summary: &Summary) -> String {
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
fn started(text: &str) -> String {
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
        let (label, colour) = match cell.standing {
            CaseStatus::Missed => ("MISSED", BAD),
            CaseStatus::Inconclusive => ("INCONCL", DOUBTFUL),
            CaseStatus::KnownFailure => ("KNOWN", DOUBTFUL),
            CaseStatus::Flaky => ("FLAKY", DOUBTFUL),
            CaseStatus::Passed => ("PASSED", GOOD),
        };
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
        sheet.row((label, colour), (&cell.name(), name_room), &columns, reason);
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

fn trials(sheet: &mut Sheet, summary: &Summary) {
    let counts = summary.counts();
    let mut text = match summary.rate(None) {
        Some(rate) => format!(
            "{}/{} passed ({})",
            words::thousands(u64::from(rate.tally.passed)),
            words::thousands(u64::from(rate.tally.counted)),
            words::rate(&rate)
        ),
        None => "no trial has a verdict".to_owned(),
    };
    for (count, word) in [
        (counts.timed_out, "timed out"),
        (counts.errored, "errored"),
        (counts.cancelled, "cancelled"),
        (counts.not_run, "not run"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {} {word}", words::thousands(u64::from(count))));
        }
    }
    sheet.fact("Trials", &text);
    if summary.plan.agents.len() < 2 {
        return;
    }
    for (planned, found) in summary.plan.agents.iter().zip(summary.by_agent()) {
        let rate = match &found.rate {
            Some(rate) => format!(
                "{}/{} passed ({})",
                words::thousands(u64::from(rate.tally.passed)),
                words::thousands(u64::from(rate.tally.counted)),
                words::rate(rate)
            ),
            None => "no trial has a verdict".to_owned(),
        };
        sheet.more(&format!("{}: {rate}", agent(planned, summary)));
    }
}

/// What the cases without a failure prove.
fn stable(sheet: &mut Sheet, cells: &[Cell<'_>]) {
    let clean = cells
        .iter()
        .filter(|cell| cell.standing == CaseStatus::Passed);
    let passes: Vec<u32> = clean.map(|cell| cell.counts.passed).collect();
    let Some(fewest) = passes.iter().min() else {
        return;
    };
    let cases = words::count(passes.len() as u64, "case");
    let bound = failures_allowed(*fewest) * 100.0;
    let trials = words::count(u64::from(*fewest), "passed trial");
    let still = if *fewest == 1 { "allows" } else { "allow" };
    sheet.fact(
        "Stable",
        &format!("{cases} without a failure. {trials} still {still} up to {bound:.0}% failures (95% confidence)"),
    );
}

/// Whether trials of several cases or agents have the cause.
fn spans_cells(cause: &Cause<'_>) -> bool {
    let mut trials = cause.trials.iter();
    let first = trials.next();
    trials.any(|(case, agent, _)| {
        first.is_some_and(|(c, a, _)| c.case.id != case.case.id || a.agent != agent.agent)
    })
}

fn grouped(sheet: &mut Sheet, causes: &[Cause<'_>], all: bool) {
    let limit = if all { usize::MAX } else { CAUSES };
    for (index, cause) in causes.iter().take(limit).enumerate() {
        let text = format!("{}  {}", counted(cause), cause.text());
        if index == 0 {
            sheet.fact("Causes", &text);
        } else {
            sheet.more(&text);
        }
    }
    if causes.len() > limit {
        let more = words::count((causes.len() - limit) as u64, "more cause");
        sheet.more(&format!("… and {more}; `--all` lists them"));
    }
}

/// `11× failed in 5 cases, blame: agent`.
fn counted(cause: &Cause<'_>) -> String {
    let cases = match cause.cases() {
        1 => String::new(),
        cases => format!(" in {}", words::count(cases as u64, "case")),
    };
    let blame = match cause.blame {
        Some(blame) => format!(", blame: {}", words::blame(blame)),
        None => String::new(),
    };
    let trials = words::thousands(cause.trials.len() as u64);
    let outcome = words::outcome(Some(cause.outcome));
    format!("{trials}× {outcome}{cases}{blame}")
}

fn coverage(sheet: &mut Sheet, coverage: &Coverage) {
    let (listed, unknown): (Vec<_>, Vec<_>) = coverage.servers.iter().partition(|s| s.is_listed);
    let mut facts: Vec<String> = Vec::new();
    let sum = |count: fn(&ServerCoverage) -> usize| -> usize {
        listed.iter().map(|server| count(server)).sum()
    };
    for (used, all, deed) in [
        (
            sum(ServerCoverage::tools_called),
            sum(|s| s.tools.len()),
            "tools called",
        ),
        (
            sum(ServerCoverage::resources_read),
            sum(|s| s.resources.len() + s.templates.len()),
            "resources read",
        ),
        (
            sum(ServerCoverage::prompts_used),
            sum(|s| s.prompts.len()),
            "prompts used",
        ),
    ] {
        if all > 0 {
            facts.push(format!("{used} of {all} {deed}"));
        }
    }
    for server in unknown {
        facts.push(format!(
            "unknown for {}: the record does not list its tools",
            server.server
        ));
    }
    if !facts.is_empty() {
        sheet.fact("Coverage", &facts.join(", "));
    }
}

fn gate(sheet: &mut Sheet, gate: &Gate) {
    let reasons = gate.reasons();
    let (word, style) = match gate {
        Gate::Met => ("met", GOOD),
        Gate::Missed { .. } => ("missed", BAD),
        Gate::Open { .. } => ("inconclusive", DOUBTFUL),
    };
    sheet.fact_in("Gate", word, style);
    for reason in reasons.iter().take(REASONS) {
        sheet.more(reason);
    }
    if reasons.len() > REASONS {
        let more = words::count((reasons.len() - REASONS) as u64, "more case");
        sheet.more(&format!("… and {more}"));
    }
}

/// The command that shows the first trial that did not pass, or the run.
fn next(sheet: &mut Sheet, run: &RunSummary<'_>, cells: &[Cell<'_>]) {
    let folder = run.folder.display();
    // A name from outside must stay one word for a shell.
    let is_inert = |name: &String| !name.contains(|c: char| c == '\'' || is_hidden(c));
    let mut failures = cells.iter().filter_map(Cell::first_failure);
    let first = failures.find(is_inert);
    sheet.command(
        "View",
        &match first {
            Some(trial) => format!("proctor result view {folder} '{trial}'"),
            None => format!("proctor result view {folder}"),
        },
    );
}

/// Whether some trials of a case did not pass although it meets its pass rule.
fn is_flaky(trials: &AgentTrials, verdict: CaseVerdict) -> bool {
    verdict == CaseVerdict::Met && trials.standing().not_passed > 0
}

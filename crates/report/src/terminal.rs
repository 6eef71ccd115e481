//! A run at its end, for people at a terminal: what did not pass, with its evidence, then the rest.
//!
//! No line is wider than it may be, nothing from outside reaches the terminal as it is, and what
//! colours say is said in words too.

mod agents;
pub(crate) mod lines;
mod totals;

use anstyle::{AnsiColor, Style};
use proctor_core::duration;
use proctor_core::event::NotRunOutcome;
use proctor_core::event::Outcome;
use proctor_core::gate::{CaseVerdict, TrialCounts};
use proctor_core::printable::printable;
use proctor_core::record::RecordError;
use proctor_core::summary::{AgentTrials, CaseSummary, TrialSummary};

use self::lines::Page;
use crate::{Report, evidence, words};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// How many trials that did not pass are shown with their evidence.
const FAILED: usize = 20;

/// How many trials of which we could not tell are shown with their evidence.
const ERRORED: usize = 10;

/// How many cases that passed are named.
const PASSED: usize = 20;

/// How many evals that are not run are named.
const LISTED: usize = 50;

/// How wide the column of what came of a trial is.
const LABEL: usize = 10;

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// How many columns there are; less than 40 are taken for 40.
    pub width: usize,
    /// Whether to use colours.
    pub colour: bool,
}

/// One trial, with where it belongs.
type TrialRow<'a> = (&'a CaseSummary, &'a AgentTrials, &'a TrialSummary);

/// Renders what a run came to. Reads again the trials that did not pass, as many as are shown.
pub fn render(report: &Report<'_>, look: TerminalStyle) -> Result<String, RecordError> {
    let mut page = Page::new(look);
    let is_bad = |o| matches!(o, Some(Outcome::Failed | Outcome::TimedOut));
    section(&mut page, report, FAILED, "failed", is_bad)?;
    let is_open = |o| o == Some(Outcome::Errored);
    section(&mut page, report, ERRORED, "errored", is_open)?;
    stopped(&mut page, report);
    passed(&mut page, report);
    listed(&mut page, report);
    agents::render(&mut page, report.summary);
    totals::render(&mut page, report);
    Ok(page.into_text())
}

/// The trials that ended in one way, with their evidence. Those whose case missed its rule first.
fn section(
    page: &mut Page,
    report: &Report<'_>,
    limit: usize,
    word: &str,
    wanted: impl Fn(Option<Outcome>) -> bool,
) -> Result<(), RecordError> {
    let mut trials: Vec<TrialRow> = report
        .summary
        .trials()
        .filter(|(_, _, trial)| wanted(trial.outcome()))
        .collect();
    trials.sort_by_key(|(case, agent, _)| match agent.verdict(&case.case) {
        CaseVerdict::Missed => 0,
        CaseVerdict::Open => 1,
        CaseVerdict::Met => 2,
    });
    for trial in trials.iter().take(limit) {
        detail(page, report, trial)?;
    }
    if trials.len() > limit {
        let more = words::count((trials.len() - limit) as u64, "trial");
        page.cut(0, &format!("… and {more} more that {word}"), None);
        page.blank();
    }
    Ok(())
}

fn detail(page: &mut Page, report: &Report<'_>, shown: &TrialRow<'_>) -> Result<(), RecordError> {
    let (case, agent, trial) = shown;
    let Some(result) = &trial.result else {
        return Ok(());
    };
    let (label, style) = match result.outcome {
        Outcome::Errored => ("ERROR", DOUBTFUL),
        Outcome::TimedOut => ("TIMED OUT", BAD),
        Outcome::Failed | Outcome::Passed | Outcome::Cancelled => ("FAIL", BAD),
    };
    let mut facts = Vec::new();
    facts.extend(agent_fact(report, agent));
    if case.case.runs > 1 {
        facts.push(format!("trial {} of {}", trial.repeat, case.case.runs));
    }
    if trial.attempts > 1 {
        facts.push(format!("attempt {}", result.attempt));
    }
    match (result.blame, result.outcome) {
        (Some(blame), _) => facts.push(format!("blame: {}", words::blame(blame))),
        (None, Outcome::Failed | Outcome::Errored) => facts.push("cause unclear".to_owned()),
        (None, _) => {}
    }
    facts.push(duration::brief(result.duration));
    if agent.verdict(&case.case) == CaseVerdict::Met {
        facts.push("the case keeps its rule".to_owned());
    }
    page.labelled(label, style, &name(case), &facts.join(", "));
    let lines = if report.brief {
        Some(evidence::brief(result))
    } else {
        let folded = report.fold(result)?;
        folded.map(|folded| evidence::lines(result, &folded))
    };
    if let Some(lines) = lines {
        for line in lines {
            let indent = line.depth * 2;
            if line.wraps {
                page.wrapped(indent, &line.text);
            } else {
                page.cut(indent, &line.text, Some(FAINT));
            }
        }
    }
    page.blank();
    Ok(())
}

/// What was cancelled or never ended, in short.
fn stopped(page: &mut Page, report: &Report<'_>) {
    for (label, outcome) in [("CANCELLED", Some(Outcome::Cancelled)), ("NOT RUN", None)] {
        let is_meant = |trial: &&TrialSummary| trial.outcome() == outcome;
        let cells: Vec<(&CaseSummary, &AgentTrials)> = report
            .summary
            .cells()
            .filter(|(_, agent)| agent.trials.iter().any(|trial| is_meant(&trial)))
            .collect();
        for (case, agent) in cells.iter().take(ERRORED) {
            let count = agent.trials.iter().filter(is_meant).count();
            let mut facts = Vec::from_iter(agent_fact(report, agent));
            facts.push(words::count(count as u64, "trial"));
            page.labelled(label, DOUBTFUL, &name(case), &facts.join(", "));
        }
        rest(page, cells.len(), ERRORED);
    }
}

/// The cases that keep their rule: their names, or how many they are.
fn passed(page: &mut Page, report: &Report<'_>) {
    let cells: Vec<(&CaseSummary, &AgentTrials)> = report
        .summary
        .cells()
        .filter(|(case, agent)| agent.verdict(&case.case) == CaseVerdict::Met)
        .collect();
    if cells.len() > PASSED {
        let count = words::count(cells.len() as u64, "case");
        let judged = cells
            .iter()
            .filter_map(|(case, _)| according_to(report, case));
        let judged: Vec<String> = judged.collect();
        let fact = match judged.first() {
            Some(by) => format!("{} of them {by}", judged.len()),
            None => String::new(),
        };
        page.labelled("PASS", GOOD, &count, &fact);
    } else {
        for (case, agent) in &cells {
            let trials = &agent.trials;
            let results = trials.iter().filter_map(|trial| trial.result.as_ref());
            let time = duration::brief(results.map(|result| result.duration).sum());
            let mut facts = Vec::from_iter(agent_fact(report, agent));
            if trials.len() > 1 {
                facts.push(format!(
                    "{}/{}",
                    TrialCounts::of(trials.iter().map(TrialSummary::outcome)).passed,
                    trials.len()
                ));
            }
            facts.push(time);
            facts.extend(according_to(report, case));
            page.labelled("PASS", GOOD, &name(case), &facts.join(", "));
        }
    }
    page.blank();
}

/// By whose word an eval passed. A judge's word is never more than that.
fn according_to(report: &Report<'_>, case: &CaseSummary) -> Option<String> {
    case.case.eval.as_ref().filter(|eval| eval.judged)?;
    let judge = report.summary.plan.judge.as_deref().unwrap_or("the judge");
    Some(format!("according to {}", printable(judge)))
}

/// What servers list and is not run.
fn listed(page: &mut Page, report: &Report<'_>) {
    for not_run in report.listed.iter().take(LISTED) {
        let (label, style) = match not_run.outcome {
            NotRunOutcome::Invalid => ("INVALID", BAD),
            NotRunOutcome::Skipped => ("SKIP", DOUBTFUL),
        };
        let id = not_run.eval_id.as_deref().unwrap_or("(no id)");
        page.labelled(label, style, &printable(id), &printable(&not_run.server));
        page.wrapped(2, &printable(&not_run.reason));
    }
    if report.listed.len() > LISTED {
        let more = words::count((report.listed.len() - LISTED) as u64, "eval");
        page.cut(LABEL, &format!("… and {more} more that are not run"), None);
    }
    page.blank();
}

fn rest(page: &mut Page, all: usize, shown: usize) {
    if all > shown {
        let more = words::count((all - shown) as u64, "case");
        page.cut(LABEL, &format!("… and {more} more"), None);
    }
}

fn name(case: &CaseSummary) -> String {
    printable(&case.case.name).into_owned()
}

/// The agent, where there are several.
fn agent_fact(report: &Report<'_>, agent: &AgentTrials) -> Option<String> {
    let several = report.summary.plan.agents.len() > 1;
    several.then(|| format!("agent {}", printable(&agent.agent)))
}

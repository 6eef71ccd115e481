//! The report for a terminal: first the trials that did not pass, with their evidence, then the rest.
//!
//! Lines fit the width of the terminal, all text from outside is escaped, and no meaning depends on colour.

pub(crate) mod agents;
pub(crate) mod lines;
mod totals;

use anstyle::{AnsiColor, Style};
use proctor_core::causes::{self, TrialRef};
use proctor_core::gate::CaseVerdict;
use proctor_core::printable::printable;
use proctor_core::summary::{AgentTrials, CaseSummary, TrialResult, TrialSummary};
use proctor_record::event::NotRunOutcome;
use proctor_record::event::Outcome;
use proctor_record::record::RecordError;

pub(crate) use self::lines::Page;
use crate::evidence::{self, EvidenceLine, Layout};
use crate::{Report, selection, sentences, words};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::BrightRed.on_default().bold();
const DOUBTFUL: Style = AnsiColor::BrightYellow.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// The maximum number of causes of failed trials, each shown with the evidence of a trial.
const FAILED: usize = 20;

/// The same for errored trials.
const ERRORED: usize = 10;

/// The maximum number of cases that are named for a cause.
const SAME: usize = 12;

/// The maximum number of passed cases that are named.
const PASSED: usize = 20;

/// The maximum number of evals that are named although they did not run.
const LISTED: usize = 50;

/// The width of the label column.
const LABEL: usize = 10;

/// The width of the terminal, and whether it shows colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// The number of columns, at least 40.
    pub width: usize,
    pub colour: bool,
}

/// Renders the report. Reads the trials that it shows with evidence from the record.
pub fn render(report: &Report<'_>, style: TerminalStyle) -> Result<String, RecordError> {
    let mut page = Page::new(style);
    let is_bad = |o| matches!(o, Some(Outcome::Failed | Outcome::TimedOut));
    section(&mut page, report, FAILED, "failed", is_bad)?;
    let is_errored = |o| o == Some(Outcome::Errored);
    section(&mut page, report, ERRORED, "errored", is_errored)?;
    known(&mut page, report);
    stopped(&mut page, report);
    passed(&mut page, report);
    listed(&mut page, report);
    if !report.part.is_some_and(|part| part.by_outcome) {
        agents::render(&mut page, report.summary);
        for line in selection::lines(report.summary) {
            page.cut(0, &line, None);
        }
    }
    totals::render(&mut page, report);
    Ok(page.into_text())
}

/// Shows the causes of trials with some outcomes, first those of cases that missed their pass rule. Of the
/// trials with the same cause, one has its evidence and the others are named.
fn section(
    page: &mut Page,
    report: &Report<'_>,
    limit: usize,
    word: &str,
    wanted: impl Fn(Option<Outcome>) -> bool,
) -> Result<(), RecordError> {
    let mut trials: Vec<TrialRef> = report
        .summary
        .trials()
        .filter(|(case, agent, trial)| {
            let is_known = agent.verdict(&case.case) == CaseVerdict::KnownFailure;
            wanted(trial.outcome()) && (trial.outcome() == Some(Outcome::Errored) || !is_known)
        })
        .collect();
    let rank = |(case, agent, _): &TrialRef| match agent.verdict(&case.case) {
        CaseVerdict::Missed => 0,
        CaseVerdict::Open => 1,
        CaseVerdict::Met => 2,
        CaseVerdict::KnownFailure => 3,
    };
    trials.sort_by_key(rank);
    let mut causes = causes::group(trials);
    // The first trial of a cause has the lowest rank. The sort keeps frequent causes first.
    causes.sort_by_key(|cause| cause.trials.first().map(rank));
    for cause in causes.iter().take(limit) {
        if let [first, others @ ..] = &cause.trials[..] {
            detail(page, report, first)?;
            same_cause(page, report, others);
            page.blank();
        }
    }
    let more = causes.iter().skip(limit).map(|cause| cause.trials.len());
    match more.sum() {
        0 => {}
        more => {
            let more = words::count(more as u64, &format!("more {word} trial"));
            page.cut(0, &format!("… and {more}"), None);
            page.blank();
        }
    }
    Ok(())
}

/// Names the other trials with the cause that was just shown: `list-pods 2, 4; fix-crash-loop 1`.
fn same_cause(page: &mut Page, report: &Report<'_>, trials: &[TrialRef<'_>]) {
    if trials.is_empty() {
        return;
    }
    let mut cells: Vec<(String, Vec<String>)> = Vec::new();
    for (case, agent, trial) in trials {
        let mut cell = name(case);
        if let Some(agent) = agent_fact(report, agent) {
            cell.push_str(&format!(" ({agent})"));
        }
        let number = (case.case.runs > 1).then(|| trial.repeat.to_string());
        match cells.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, numbers)) => numbers.extend(number),
            None => cells.push((cell, Vec::from_iter(number))),
        }
    }
    let shown = cells
        .iter()
        .take(SAME)
        .map(|(cell, numbers)| match numbers[..] {
            [] => cell.clone(),
            [..] => format!("{cell} {}", numbers.join(", ")),
        });
    let mut shown: Vec<String> = shown.collect();
    if cells.len() > SAME {
        let more = words::count((cells.len() - SAME) as u64, "more case");
        shown.push(format!("and {more}"));
    }
    let count = words::count(trials.len() as u64, "more trial");
    page.wrapped(2, &format!("same cause in {count}: {}", shown.join("; ")));
}

fn detail(page: &mut Page, report: &Report<'_>, shown: &TrialRef<'_>) -> Result<(), RecordError> {
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
    facts.extend(words::time(result.duration()));
    if agent.verdict(&case.case) == CaseVerdict::Met {
        facts.push(format!("FLAKY {}", sentences::passed(agent)));
        facts.push("meets its pass rule".to_owned());
    } else if agent.standing().passed > 0 {
        facts.push(format!("{} passed", sentences::passed(agent)));
    }
    page.labelled(label, style, &name(case), &facts.join(", "));
    let lines = if report.brief {
        Some(evidence::brief(result))
    } else {
        let folded = report.fold(trial)?;
        folded.map(|folded| evidence::lines(&case.case, result, &folded))
    };
    for line in lines.unwrap_or_default() {
        evidence_line(page, &line);
    }
    Ok(())
}

fn evidence_line(page: &mut Page, line: &EvidenceLine) {
    let (indent, text) = (line.depth * 2, &line.text);
    match line.layout {
        Layout::Wrap => page.wrapped(indent, text),
        Layout::Cut => page.cut(indent, text, Some(FAINT)),
        Layout::Call { .. } if page.fits(indent, text) => page.cut(indent, text, Some(FAINT)),
        Layout::Call { answer, is_error } => {
            let (request, answer) = text.split_at(text.floor_char_boundary(answer));
            page.cut(indent, request, Some(FAINT));
            if is_error {
                page.wrapped(indent + 2, answer);
            } else {
                page.cut(indent + 2, answer, Some(FAINT));
            }
        }
    }
}

/// Shows the known failures, each with the reason for which it is listed.
fn known(page: &mut Page, report: &Report<'_>) {
    let cells: Vec<(&CaseSummary, &AgentTrials)> = report
        .summary
        .cells()
        .filter(|(case, agent)| agent.verdict(&case.case) == CaseVerdict::KnownFailure)
        .collect();
    for (case, agent) in cells.iter().take(FAILED) {
        let mut facts = Vec::from_iter(agent_fact(report, agent));
        facts.push(format!("{} passed", sentences::passed(agent)));
        page.labelled("KNOWN", DOUBTFUL, &name(case), &facts.join(", "));
        let reason = agent.known_failure.as_deref().unwrap_or_default();
        page.wrapped(2, &format!("known failure: {}", printable(reason)));
    }
    rest(page, cells.len(), FAILED);
    if !cells.is_empty() {
        page.blank();
    }
}

/// Shows the cases with cancelled or missing trials.
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
            if outcome.is_none() && sentences::is_decided(report, case, agent) {
                facts.push("not needed: decided without".to_owned());
                page.labelled("DECIDED", FAINT, &name(case), &facts.join(", "));
                continue;
            }
            page.labelled(label, DOUBTFUL, &name(case), &facts.join(", "));
        }
        rest(page, cells.len(), ERRORED);
    }
}

/// Shows the cases that meet their pass rule: their names, or their number. Those with failed trials are
/// flaky.
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
        let mut facts = Vec::new();
        match cells.iter().filter(|(_, agent)| is_flaky(agent)).count() {
            0 => {}
            flaky => facts.push(format!("{flaky} flaky")),
        }
        if let Some(by) = judged.first() {
            facts.push(format!("{} of them {by}", judged.len()));
        }
        page.labelled("PASS", GOOD, &count, &facts.join(", "));
    } else {
        for (case, agent) in &cells {
            let trials = &agent.trials;
            let results = trials.iter().filter_map(|trial| trial.result.as_ref());
            let time = words::time(results.map(TrialResult::duration).sum());
            let mut facts = Vec::from_iter(agent_fact(report, agent));
            let passed = sentences::passed(agent);
            let (label, style) = if is_flaky(agent) {
                facts.push("meets its pass rule".to_owned());
                (format!("FLAKY {passed}"), DOUBTFUL)
            } else {
                facts.extend((trials.len() > 1).then_some(passed));
                ("PASS".to_owned(), GOOD)
            };
            facts.extend(time);
            facts.extend(according_to(report, case));
            page.labelled(&label, style, &name(case), &facts.join(", "));
        }
    }
    page.blank();
}

/// Whether some trials of a case failed. A case that meets its pass rule all the same is flaky.
fn is_flaky(agent: &AgentTrials) -> bool {
    agent.standing().not_passed > 0
}

/// The judge that passed an eval. Its verdict is an opinion, so the report names it.
fn according_to(report: &Report<'_>, case: &CaseSummary) -> Option<String> {
    case.case.eval.as_ref().filter(|eval| eval.judged)?;
    let judge = report.summary.plan.judge.as_deref().unwrap_or("the judge");
    Some(format!("according to {}", printable(judge)))
}

/// Shows the shipped evals that did not run.
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
        let more = words::count((report.listed.len() - LISTED) as u64, "more eval");
        page.cut(LABEL, &format!("… and {more} that did not run"), None);
    }
    page.blank();
}

fn rest(page: &mut Page, all: usize, shown: usize) {
    if all > shown {
        let more = words::count((all - shown) as u64, "more case");
        page.cut(LABEL, &format!("… and {more}"), None);
    }
}

fn name(case: &CaseSummary) -> String {
    printable(&case.case.name).into_owned()
}

/// The agent, if the run has several.
fn agent_fact(report: &Report<'_>, agent: &AgentTrials) -> Option<String> {
    let several = report.summary.plan.agents.len() > 1;
    several.then(|| format!("agent {}", printable(&agent.agent)))
}

//! The tables: agents, cases that did not pass cleanly, and cases that did.

use proctor_core::causes::{Cause, group};
use proctor_core::gate::CaseVerdict;
use proctor_core::summary::{AgentTrials, CaseSummary, Summary, TrialResult};
use proctor_record::event::Outcome;

use super::code::{code, reason};
use super::document::Section;
use crate::{Report, sentences, words};

/// Compares the agents; nothing for a single one.
pub(super) fn agents(summary: &Summary) -> Section {
    let agents = summary.by_agent();
    let mut rows = Vec::new();
    if agents.len() > 1 {
        for (planned, agent) in summary.plan.agents.iter().zip(&agents) {
            let rate = agent.rate.as_ref();
            let passed = rate.map_or_else(
                || "–".to_owned(),
                |rate| {
                    let (tally, rate) = (rate.tally, words::rate(rate));
                    format!("{}/{} ({rate})", tally.passed, tally.counted)
                },
            );
            let median = agent.median.and_then(words::time);
            let median = median.unwrap_or_else(|| "–".to_owned());
            let errored = agent.counts.errored;
            let (name, cost) = (
                code(&sentences::agent(planned)),
                words::cost(agent.cost_usd),
            );
            rows.push(format!(
                "| {name} | {passed} | {errored} | {} | {cost} | {median} |\n",
                words::thousands(agent.usage.total())
            ));
        }
    }
    Section {
        before: "| agent | trials passed | errored | tokens | cost | median time |\n\
                 |---|---|---|---|---|---|\n"
            .to_owned(),
        rows,
        noun: "agent",
        after: "\n",
    }
}

/// The cases that missed their pass rule, are inconclusive or flaky, in this order.
pub(super) fn unmet(report: &Report<'_>) -> Section {
    let summary = report.summary;
    let mut cells: Vec<(u8, &str, &CaseSummary, &AgentTrials)> = summary
        .cells()
        .filter_map(|(case, trials)| {
            let (order, word) = standing(case, trials)?;
            Some((order, word, case, trials))
        })
        .collect();
    cells.sort_by_key(|(order, ..)| *order);
    let rows = cells.into_iter().map(|(_, word, case, trials)| {
        let (name, passed) = (named(report, case, trials), sentences::passed(trials));
        let why = explained(case, trials);
        format!("| {word} | {name} | {passed} | {why} |\n")
    });
    Section {
        before: format!(
            "| | {} | passed | why |\n|---|---|---|---|\n",
            heading(report)
        ),
        rows: rows.collect(),
        noun: "case",
        after: "\n",
    }
}

/// The cases whose every trial passed, folded up.
pub(super) fn met(report: &Report<'_>) -> Section {
    let cells = report.summary.cells();
    let clean = cells.filter(|(case, trials)| standing(case, trials).is_none());
    let rows: Vec<String> = clean
        .map(|(case, trials)| {
            let results = trials.trials.iter().filter_map(|t| t.result.as_ref());
            let time = words::time(results.map(TrialResult::duration).sum());
            let time = time.unwrap_or_else(|| "–".to_owned());
            let name = named(report, case, trials);
            format!("| {name} | {} | {time} |\n", sentences::passed(trials))
        })
        .collect();
    let count = words::count(rows.len() as u64, "case");
    Section {
        before: format!(
            "<details><summary>{count} passed</summary>\n\n| {} | passed | time |\n|---|---|---|\n",
            heading(report)
        ),
        rows,
        noun: "case",
        after: "\n</details>\n\n",
    }
}

/// How a case stands, and its place in the table; `None` if every trial passed.
fn standing(case: &CaseSummary, trials: &AgentTrials) -> Option<(u8, &'static str)> {
    match trials.verdict(&case.case) {
        CaseVerdict::Missed => Some((0, "**missed**")),
        CaseVerdict::Open => Some((1, "**inconclusive**")),
        CaseVerdict::Met if trials.standing().not_passed > 0 => Some((2, "flaky")),
        // Trials that errored or did not run have to be seen too.
        CaseVerdict::Met if trials.standing().open > 0 => Some((3, "passed")),
        CaseVerdict::Met => None,
        CaseVerdict::KnownFailure => Some((4, "known failure")),
    }
}

/// Why a case is listed: the reason of a known failure, and the reasons of its trials.
fn explained(case: &CaseSummary, trials: &AgentTrials) -> String {
    let found = why(case, trials);
    match &trials.known_failure {
        None => found,
        Some(known) if trials.unexpected_pass(&case.case).is_some() => {
            format!("unexpected pass; known failure: {}", reason(known))
        }
        Some(known) => format!("known failure: {}; {found}", reason(known)),
    }
}

fn heading(report: &Report<'_>) -> &'static str {
    if report.summary.plan.agents.len() > 1 {
        "case, agent"
    } else {
        "case"
    }
}

/// The case, the agent if there are several, and the judge whose opinion a verdict is.
fn named(report: &Report<'_>, case: &CaseSummary, trials: &AgentTrials) -> String {
    let mut name = code(&case.case.name);
    if report.summary.plan.agents.len() > 1 {
        name.push_str(&format!(", {}", code(&trials.agent)));
    }
    if case.case.eval.as_ref().is_some_and(|eval| eval.judged) {
        let judge = report.summary.plan.judge.as_deref().unwrap_or("the judge");
        name.push_str(&format!(", according to {}", code(judge)));
    }
    name
}

/// The most frequent cause, how many others there are, and the trials that did not run to their end.
fn why(case: &CaseSummary, trials: &AgentTrials) -> String {
    let causes = group(trials.trials.iter().map(|trial| (case, trials, trial)));
    let mut parts = Vec::new();
    if let [first, others @ ..] = &causes[..] {
        let others = match others.len() {
            0 => String::new(),
            more => format!(", {}", words::count(more as u64, "other reason")),
        };
        parts.push(format!("{}{others}", cause(first)));
    }
    for (outcome, word) in [(Some(Outcome::Cancelled), "cancelled"), (None, "not run")] {
        let found = trials.trials.iter().filter(|t| t.outcome() == outcome);
        match found.count() {
            0 => {}
            1 => parts.push(word.to_owned()),
            count => parts.push(format!("{count} {word}")),
        }
    }
    parts.extend(kept(trials));
    parts.join("; ")
}

/// The first kept folder, and how many others there are.
fn kept(trials: &AgentTrials) -> Option<String> {
    let results = trials.trials.iter().filter_map(|t| t.result.as_ref());
    let mut folders = results.filter_map(|result| result.kept_folder.as_deref());
    let first = code(folders.next()?);
    Some(match folders.count() {
        0 => format!("folder kept: {first}"),
        more => format!("folders kept: {first} and {more} more"),
    })
}

/// The outcome, the blame and the reason of a cause, and the number of its trials.
fn cause(cause: &Cause<'_>) -> String {
    let word = words::outcome(Some(cause.outcome));
    let blame = cause.blame.map_or(String::new(), |blame| {
        format!(", blame: {}", words::blame(blame))
    });
    let times = match cause.trials.len() {
        1 => String::new(),
        count => format!(" ({count}×)"),
    };
    format!("{word}{blame}: {}{times}", reason(&sentences::cause(cause)))
}

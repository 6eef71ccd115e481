//! The last lines of a summary: rates, what they prove, causes, coverage, and the gate.

use proctor_core::causes::Cause;
use proctor_core::coverage::{Coverage, ServerCoverage};
use proctor_core::gate::Gate;
use proctor_core::statistics::failures_allowed;
use proctor_core::summary::{Counts, Summary};

use super::cells::{CaseStatus, Cell};
use super::{BAD, DOUBTFUL, GOOD, RunSummary};
use crate::sheet::Sheet;
use crate::{sentences, words};

/// The maximum number of causes that are listed, unless all are requested.
const CAUSES: usize = 5;

/// The maximum number of reasons of the gate.
const REASONS: usize = 3;

/// The pass rate, and the trials that it does not include.
pub(super) fn trials(sheet: &mut Sheet, summary: &Summary) {
    let counts = summary.counts();
    let mut text = match summary.rate(None) {
        Some(rate) => format!(
            "{}/{} passed ({})",
            words::thousands(u64::from(rate.tally.passed)),
            words::thousands(u64::from(rate.tally.counted)),
            words::rate(&rate)
        ),
        None => without_rate(summary, counts),
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
}

/// What stands in place of a rate where there is none.
fn without_rate(summary: &Summary, counts: Counts) -> String {
    if summary.is_curtailed() {
        let (passed, counted) = (counts.passed, counts.counted());
        format!("{passed} of {counted} passed, curtailed: not a pass rate")
    } else {
        "no trial has a verdict".to_owned()
    }
}

/// The pass rates of several agents.
pub(super) fn agents(sheet: &mut Sheet, summary: &Summary) {
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
            None => without_rate(summary, found.counts),
        };
        sheet.more(&format!("{}: {rate}", super::agent(planned, summary)));
    }
}

/// What the cases without a failure prove.
pub(super) fn stable(sheet: &mut Sheet, cells: &[Cell<'_>]) {
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
pub(super) fn spans_cells(cause: &Cause<'_>) -> bool {
    let mut trials = cause.trials.iter();
    let first = trials.next();
    trials.any(|(case, agent, _)| {
        first.is_some_and(|(c, a, _)| c.case.id != case.case.id || a.agent != agent.agent)
    })
}

/// The most frequent causes.
pub(super) fn causes(sheet: &mut Sheet, causes: &[Cause<'_>], all: bool) {
    let limit = if all { usize::MAX } else { CAUSES };
    for (index, cause) in causes.iter().take(limit).enumerate() {
        let text = format!("{}  {}", counted(cause), sentences::cause(cause));
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
pub(super) fn counted(cause: &Cause<'_>) -> String {
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

pub(super) fn coverage(sheet: &mut Sheet, coverage: &Coverage) {
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

pub(super) fn gate(sheet: &mut Sheet, run: &RunSummary<'_>) {
    if run.part.is_some() {
        return sheet.fact("Gate", &sentences::gate_of_part(run.gate));
    }
    let reasons = run.gate.reasons();
    let (word, style) = match run.gate {
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

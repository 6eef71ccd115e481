//! A comparison as JSON, for scripts. The fields are documented in `docs/results.md`.

use proctor_core::compare::sentence;
use proctor_core::compare::{
    CellPair, Change, ComparisonAnswer, InconclusiveCause, ToolChange, UnpairedCase,
};
use proctor_core::pass_rule::TrialCounts;
use proctor_core::statistics::{Difference, DifferenceMethod, RegressionTest};
use serde_json::{Value, json};

use super::{CompareReport, tool_change};

/// The version of the document.
const VERSION: u32 = 1;

/// The comparison as one document.
pub fn value(report: &CompareReport<'_>) -> Value {
    let comparison = report.comparison;
    let pairing = &comparison.pairing;
    let quote = |name: &str| format!("`{name}`");
    let cell = |cell: &CellPair| {
        json!({
            "case": cell.id,
            "name": cell.name,
            "agent": cell.agent,
            "base": counts(cell.base),
            "new": counts(cell.new),
            "p": cell.test.map(|test| test.p),
            "pAdjusted": cell.test.map(|test| test.adjusted),
            "isRegression": comparison.is_regressed(cell),
            "reason": report.reason(cell),
        })
    };
    let cells = |cells: Vec<&CellPair>| cells.into_iter().map(cell).collect::<Vec<_>>();
    json!({
        "version": VERSION,
        "answer": answer(&comparison.answer),
        "sentence": sentence::answer(comparison, &quote),
        "cause": cause(&comparison.answer),
        "more": more(&comparison.answer),
        "exit": comparison.exit(),
        "suite": report.suite,
        "base": comparison.base,
        "new": comparison.new,
        "p": comparison.test.as_ref().map(|test| test.suite.two_sided),
        "alpha": comparison.test.as_ref().map(RegressionTest::suite_alpha),
        "rate": comparison.difference.as_ref().map(difference),
        "compared": comparison.compared().count(),
        "worse": cells(comparison.worse()),
        "better": cells(comparison.better()),
        "changed": unpaired(&pairing.changed),
        "added": unpaired(&pairing.added),
        "removed": unpaired(&pairing.removed),
        "knownFailures": unpaired(&pairing.known_failures),
        "agents": pairing.agents.iter().map(|(base, new)| json!({ "base": base, "new": new }))
            .collect::<Vec<_>>(),
        "addedAgents": pairing.added_agents,
        "removedAgents": pairing.removed_agents,
        "tokensPerTrial": change(report.spending.tokens),
        "costUsdPerTrial": change(report.spending.cost_usd),
        "medianSeconds": change(report.spending.median),
        "toolTokens": { "base": report.tools.weight.base, "new": report.tools.weight.new },
        "tools": report.tools.changes.iter().map(tool).collect::<Vec<_>>(),
        "surfaces": report.tools.surfaces,
    })
}

fn answer(answer: &ComparisonAnswer) -> &'static str {
    match answer {
        ComparisonAnswer::Regression => "regression",
        ComparisonAnswer::NoRegressionShown => "no-regression-shown",
        ComparisonAnswer::Inconclusive { .. } => "inconclusive",
    }
}

fn cause(answer: &ComparisonAnswer) -> Option<&'static str> {
    match answer {
        ComparisonAnswer::Regression | ComparisonAnswer::NoRegressionShown => None,
        ComparisonAnswer::Inconclusive { cause, .. } => Some(match cause {
            InconclusiveCause::Curtailed { .. } => "curtailed",
            InconclusiveCause::ChangedRecord { .. } => "changed-record",
            InconclusiveCause::NothingPaired => "nothing-paired",
            InconclusiveCause::NoVerdicts => "no-verdicts",
            InconclusiveCause::OpenTrials { .. } => "trials-without-verdict",
            InconclusiveCause::TooFewTrials => "too-few-trials",
            InconclusiveCause::Unfinished { .. } => "unfinished-run",
            InconclusiveCause::Collapsed { .. } => "collapsed-case",
        }),
    }
}

fn more(answer: &ComparisonAnswer) -> Option<Value> {
    match answer {
        ComparisonAnswer::Regression | ComparisonAnswer::NoRegressionShown => None,
        ComparisonAnswer::Inconclusive { more, .. } => {
            more.map(|more| json!({ "cases": more.cases, "runsOfEachCase": more.runs }))
        }
    }
}

fn counts(counts: TrialCounts) -> Value {
    json!({ "passed": counts.passed, "counted": counts.counted(), "noVerdict": counts.open })
}

fn difference(difference: &Difference) -> Value {
    let method = match difference.method {
        DifferenceMethod::NewcombePaired => "newcombe-paired",
        DifferenceMethod::Clustered => "clustered",
        DifferenceMethod::Independent => "newcombe-independent",
    };
    json!({
        "base": difference.base,
        "new": difference.new,
        "difference": difference.value(),
        "low95": difference.interval.low,
        "high95": difference.interval.high,
        "method": method,
    })
}

fn change(change: Change) -> Value {
    json!({ "base": change.base, "new": change.new })
}

fn unpaired(cases: &[UnpairedCase]) -> Vec<Value> {
    let one = |case: &UnpairedCase| json!({ "case": case.id, "name": case.name });
    cases.iter().map(one).collect()
}

fn tool(change: &ToolChange) -> Value {
    let (base, new) = &change.descriptions;
    json!({
        "server": change.server,
        "tool": change.tool,
        "change": tool_change(change),
        "description": { "base": base, "new": new },
    })
}

//! The numbers of a run under the names that mcpchecker gives them: as outputs of a step on GitHub Actions, and as JSON.

use proctor_core::coverage::ServerCoverage;
use proctor_core::gate::Gate;
use proctor_core::summary::{CaseSummary, TrialSummary};
use proctor_record::event::Outcome;
use proctor_record::model::Usage;
use serde_json::{Value, json};

use super::RunSummary;
use super::cells::{CaseStatus, worst_first};

/// One line for each output: `key=value`. The first keys are those of mcpchecker, where a task is a trial. An
/// unknown value is empty.
pub fn github_output(run: &RunSummary<'_>) -> String {
    let summary = run.summary;
    let assertions = run.assertions.finish(summary);
    let counts = summary.counts();
    let cells = worst_first(summary);
    let is_met = |standing| matches!(standing, CaseStatus::Passed | CaseStatus::Flaky);
    let met = cells.iter().filter(|cell| is_met(cell.standing)).count();
    let (agent, judge) = (&summary.agent, &summary.judge);
    let known = |value: Option<u64>, unmetered: u32| match value {
        Some(value) if unmetered == 0 => value.to_string(),
        None if unmetered == 0 => "0".to_owned(),
        Some(_) | None => String::new(),
    };
    let sum = |usage: Usage| match (usage.input, usage.output) {
        (Some(input), Some(output)) => Some(input + output),
        (Some(_), None) | (None, _) => None,
    };
    let servers = &run.coverage.servers;
    let schema_tokens = if servers.iter().all(|server| server.is_listed) {
        let tokens: u64 = servers.iter().map(ServerCoverage::schema_tokens).sum();
        tokens.to_string()
    } else {
        String::new()
    };
    let (passed, total) = (u64::from(counts.passed), u64::from(counts.total()));
    // A part of a run has no gate.
    let gate = match (run.gate, run.part) {
        (_, Some(_)) => "",
        (Gate::Met, None) => "met",
        (Gate::Missed { .. }, None) => "missed",
        (Gate::Open { .. }, None) => "inconclusive",
    };
    let outputs = [
        ("results-file", run.folder.display().to_string()),
        ("tasks-total", total.to_string()),
        ("tasks-passed", passed.to_string()),
        ("task-pass-rate", share(passed, total)),
        ("assertions-total", assertions.total.to_string()),
        ("assertions-passed", assertions.passed.to_string()),
        (
            "assertion-pass-rate",
            share(assertions.passed, assertions.total),
        ),
        ("tokens-estimated", known(sum(agent.usage), agent.unmetered)),
        ("mcp-schema-tokens", schema_tokens),
        (
            "agent-input-tokens",
            known(agent.usage.input, agent.unmetered),
        ),
        (
            "agent-output-tokens",
            known(agent.usage.output, agent.unmetered),
        ),
        (
            "judge-input-tokens",
            known(judge.usage.input, judge.unmetered),
        ),
        (
            "judge-output-tokens",
            known(judge.usage.output, judge.unmetered),
        ),
        ("gate", gate.to_owned()),
        ("cases-total", cells.len().to_string()),
        ("cases-passed", met.to_string()),
        ("trials-errored", counts.errored.to_string()),
    ];
    let lines = outputs.iter().map(|(key, value)| output(key, value));
    lines.collect()
}

/// The keys of mcpchecker's JSON summary, where a task is a trial.
pub(super) fn tasks(run: &RunSummary<'_>) -> Value {
    let (summary, counts) = (run.summary, run.summary.counts());
    let assertions = run.assertions.finish(summary);
    let (passed, total) = (u64::from(counts.passed), u64::from(counts.total()));
    let tokens = Some(summary.agent.usage.total()).filter(|_| summary.agent.unmetered == 0);
    json!({
        "resultsFile": run.folder.to_string_lossy(),
        "tasks": summary.trials().map(|(case, _, trial)| task(run, case, trial)).collect::<Vec<_>>(),
        "tasksTotal": total,
        "tasksPassed": passed,
        "taskPassRate": ratio(passed, total),
        "assertionsTotal": assertions.total,
        "assertionsPassed": assertions.passed,
        "assertionPassRate": ratio(assertions.passed, assertions.total),
        "totalTokensEstimate": tokens,
    })
}

fn task(run: &RunSummary<'_>, case: &CaseSummary, trial: &TrialSummary) -> Value {
    let result = trial.result.as_ref();
    let assertions = trial.file().and_then(|file| run.assertions.of(&file));
    let failed = assertions.map_or(&[][..], |found| &found.failed);
    let mut task = json!({
        "name": case.case.name,
        "taskPassed": trial.outcome() == Some(Outcome::Passed),
        // Without a result, no assertion was evaluated.
        "assertionsPassed": result.is_some() && failed.is_empty(),
    });
    if let Some(reason) = result.and_then(|result| result.reason.as_ref()) {
        task["taskError"] = json!(reason);
    }
    if !failed.is_empty() {
        task["failedAssertions"] = json!(failed);
    }
    task
}

/// A share with four digits.
fn share(part: u64, all: u64) -> String {
    format!("{:.4}", ratio(part, all))
}

/// A share, rounded down to four digits: 0.99999 must not look like 1. Without any, it is 0: that is not a pass.
fn ratio(part: u64, all: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far fewer trials than 2^52")]
    let share = part as f64 / all.max(1) as f64;
    (share * 10_000.0).floor() / 10_000.0
}

/// One output. A value of several lines stands between delimiters that it does not contain, so that it can't add
/// an output of its own.
fn output(key: &str, value: &str) -> String {
    if !value.contains(['\n', '\r']) {
        return format!("{key}={value}\n");
    }
    let mut delimiter = "PROCTOR".to_owned();
    while value.contains(&delimiter) {
        delimiter.push('_');
    }
    format!("{key}<<{delimiter}\n{value}\n{delimiter}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_can_not_add_an_output() {
        assert_eq!(output("a", "b=c"), "a=b=c\n");
        assert_eq!(
            output("a", "x\nPROCTOR\ngate=met"),
            "a<<PROCTOR_\nx\nPROCTOR\ngate=met\nPROCTOR_\n"
        );
        assert_eq!(
            output("a", "x\rgate=met"),
            "a<<PROCTOR\nx\rgate=met\nPROCTOR\n"
        );
    }

    #[test]
    fn a_share_is_rounded_down_and_is_zero_without_any() {
        assert_eq!(share(0, 0), "0.0000");
        assert_eq!(share(99_999, 100_000), "0.9999");
        assert_eq!(share(5, 5), "1.0000");
    }
}

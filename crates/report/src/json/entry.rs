//! The entry of one trial in the JSON document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_core::import::ASSERTIONS_PASSED;
use proctor_core::summary::{AgentTrials, CaseSummary, TrialResult, TrialSummary};
use proctor_record::decision;
use proctor_record::event::{Blame, CheckEvaluated, CheckId, Outcome, Phase, PlannedCase};
use proctor_record::fold::{FoldedTrial, StepDone, TrialWork};
use proctor_record::model::Usage;
use proctor_record::transcript::CallRequest;
use proctor_record::verdict::Verdict;
use serde_json::{Map, Value, json};

use super::tokens::Tokens;
use super::{activity, agent_output, history, millis};
use crate::evidence;
use crate::words;

/// The facts about a run that its entries need.
pub(super) struct RunEntry<'a> {
    /// The start time of the run.
    pub(super) started: &'a str,
    /// The folder of relative paths, if it is known.
    pub(super) folder: Option<&'a str>,
    /// The estimated number of tokens of all tool schemas.
    pub(super) schema_tokens: u64,
    /// Whether the run was imported from a result file, which says itself whether a task passed.
    pub(super) is_imported: bool,
}

/// Removes what is not part of mcpchecker's format.
pub(super) fn strip(entry: &mut Value) {
    let Some(fields) = entry.as_object_mut() else {
        return;
    };
    fields.remove("proctor");
    let history = fields.get_mut("callHistory").and_then(Value::as_object_mut);
    let lists = history.into_iter().flat_map(|history| history.values_mut());
    for call in lists.filter_map(Value::as_array_mut).flatten() {
        call.as_object_mut().map(|call| call.remove("proctor"));
    }
}

pub(super) fn value(
    case: &CaseSummary,
    agent: &AgentTrials,
    trial: &TrialSummary,
    folded: Option<&FoldedTrial>,
    run: &RunEntry<'_>,
) -> Value {
    let planned = &case.case;
    let none = TrialWork::default();
    let work = folded.map_or(&none, |folded| &folded.work);
    let parts = EntryParts::of(trial.outcome(), planned.verify_steps, work, run.is_imported);
    let mut out = json!({
        "taskName": planned.name,
        "taskPath": task_path(planned, run.folder),
        "taskPassed": parts.task_passed,
        "taskOutput": work.answer.as_ref().map_or(String::new(), ToString::to_string),
        "difficulty": planned.difficulty.as_deref().unwrap_or_default(),
        "parallel": planned.parallel,
        "runIndex": trial.repeat.saturating_sub(1),
        "totalRuns": planned.runs,
        "assertionResults": parts.assertions,
        "allAssertionsPassed": parts.assertions_passed,
        "callHistory": folded.map_or_else(history::empty, |f| history::value(f, run.started)),
        "proctor": ours(case, agent, trial, folded),
    });
    let mut add = |key: &str, value: Value| {
        out[key] = value;
    };
    if !parts.task_passed {
        add("taskError", json!(reason(trial)));
    }
    if trial.outcome() == Some(Outcome::TimedOut) {
        add("timedOut", json!(true));
    }
    if let Some(result) = &trial.result
        && (result.outcome, result.blame) == (Outcome::Errored, Some(Blame::Agent))
    {
        add("agentExecutionError", json!(true));
    }
    for (key, text) in judged(work) {
        add(key, json!(text));
    }
    if let Some(usage) = token_usage(&work.judge.usage) {
        add("judgeTokenUsage", usage);
    }
    let tokens = folded.map(|folded| {
        let tokens = Tokens::of(folded, run.schema_tokens);
        tokens.estimate(token_usage(&work.agent.usage))
    });
    if let Some(tokens) = &tokens {
        add("tokenEstimate", tokens.clone());
    }
    let grades = planned.verify_steps.map(|count| count as usize);
    add("setupOutput", phase_output(work, Phase::Setup, None));
    add("verifyOutput", phase_output(work, Phase::Grade, grades));
    add("cleanupOutput", phase_output(work, Phase::Cleanup, None));
    // A passed trial without an answer had no task for the agent.
    let is_silent = work.answer.is_none() && trial.outcome() != Some(Outcome::Passed);
    let why = is_silent.then(|| reason(trial));
    add("agentOutput", agent_output::value(folded, tokens, why));
    out
}

/// The absolute path of the task file; for a shipped eval, its id in the form of a path.
fn task_path(case: &PlannedCase, folder: Option<&str>) -> String {
    let path = Path::new(&case.path);
    match folder {
        Some(folder) if case.eval.is_none() && path.is_relative() => {
            let whole = Path::new(folder).join(path);
            // Removes `.` components.
            whole
                .components()
                .collect::<PathBuf>()
                .display()
                .to_string()
        }
        _ => case.path.clone(),
    }
}

/// The two parts of a result in mcpchecker: the task with its verify steps, and the assertions.
struct EntryParts {
    task_passed: bool,
    assertions_passed: bool,
    assertions: Map<String, Value>,
}

impl EntryParts {
    fn of(
        outcome: Option<Outcome>,
        planned: Option<u32>,
        work: &TrialWork,
        is_imported: bool,
    ) -> Self {
        let is_step = |check: &&CheckEvaluated| step_id(check).is_some();
        let (steps, rest): (Vec<&CheckEvaluated>, Vec<&CheckEvaluated>) =
            work.checks.iter().partition(is_step);
        let passed = |check: &&CheckEvaluated| check.verdict == Verdict::Pass;
        let assertions_passed = !work.checks.is_empty() && rest.iter().all(passed);
        let task_passed = match outcome {
            Some(Outcome::Passed) => true,
            Some(Outcome::Failed) if is_imported => {
                let task = Some(CheckId::imported_task());
                let mut said = steps.iter().filter(|check| check.id == task);
                said.any(passed)
            }
            // Only assertions failed, and no step was skipped because of them.
            Some(Outcome::Failed) => {
                let all_run = planned.is_some_and(|planned| planned as usize == steps.len());
                !work.checks.is_empty() && !assertions_passed && all_run && steps.iter().all(passed)
            }
            Some(Outcome::TimedOut | Outcome::Errored | Outcome::Cancelled) | None => false,
        };
        // The file says that assertions failed, and lists none.
        let is_listed = |check: &&CheckEvaluated| !is_imported || check.check != ASSERTIONS_PASSED;
        Self {
            task_passed,
            assertions_passed,
            assertions: assertions(rest.into_iter().filter(is_listed)),
        }
    }
}

/// The results of assertions, by name.
pub(crate) fn assertions<'a>(
    checks: impl IntoIterator<Item = &'a CheckEvaluated>,
) -> Map<String, Value> {
    let mut all: Map<String, Value> = Map::new();
    for check in checks {
        // Several task sets may have the same assertion: keep the one that did not pass.
        let so_far = all.get(&check.check);
        if so_far.is_none_or(|so_far| so_far["passed"] == json!(true)) {
            all.insert(check.check.clone(), assertion(check));
        }
    }
    all
}

fn step_id(check: &CheckEvaluated) -> Option<&str> {
    check.id.as_ref().and_then(CheckId::step)
}

fn assertion(check: &CheckEvaluated) -> Value {
    let mut out = json!({ "passed": check.verdict == Verdict::Pass });
    if let Some(why) = why(&check.verdict) {
        out["reason"] = Value::from(why);
    }
    if !check.details.is_empty() {
        out["details"] = json!(check.details);
    }
    out
}

fn why(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Fail { reason } | Verdict::Unknown { reason } => Some(reason),
    }
}

fn reason(trial: &TrialSummary) -> String {
    match &trial.result {
        None => "not run".to_owned(),
        Some(result) => {
            let outcome = || words::outcome(Some(result.outcome)).to_owned();
            result.reason.clone().unwrap_or_else(outcome)
        }
    }
}

/// The judge's reasons, and its errors.
fn judged(work: &TrialWork) -> Vec<(&'static str, String)> {
    let (mut said, mut failed) = (Vec::new(), Vec::new());
    for check in &work.checks {
        if !matches!(check.id, Some(CheckId::Judge(_))) {
            continue;
        }
        match &check.verdict {
            Verdict::Unknown { reason } => failed.push(reason.clone()),
            Verdict::Fail { reason } => said.push(reason.clone()),
            Verdict::Pass => said.extend(check.notes.first().cloned()),
        }
    }
    [("taskJudgeReason", said), ("taskJudgeError", failed)]
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(key, texts)| (key, texts.join("\n")))
        .collect()
}

/// Token counts, if they are known: the format has no value for unknown.
fn token_usage(usage: &Usage) -> Option<Value> {
    let mut out = json!({
        "inputTokens": usage.input?,
        "outputTokens": usage.output?,
        "totalTokens": usage.total(),
    });
    for (key, count) in [
        ("thoughtTokens", usage.reasoning),
        ("cachedReadTokens", usage.cached),
        ("cachedWriteTokens", usage.cache_written),
    ] {
        if let Some(count) = count {
            out[key] = Value::from(count);
        }
    }
    Some(out)
}

/// The results of the steps of a phase. A phase without success did not run, had a failed step, or ran
/// fewer steps than planned.
fn phase_output(work: &TrialWork, phase: Phase, planned: Option<usize>) -> Value {
    let steps: Vec<&StepDone> = work
        .steps
        .iter()
        .filter(|step| step.phase == phase)
        .collect();
    let was_run = match phase {
        // The phase starts only if it has steps.
        Phase::Cleanup => work.ended.is_some(),
        Phase::Setup | Phase::Serve | Phase::Drive | Phase::Grade => {
            work.phases.iter().any(|span| span.phase == phase)
        }
    };
    let failed = steps.iter().find_map(|step| why(&step.verdict));
    let error = match failed {
        Some(reason) => Some(reason),
        None if !was_run => Some("not run"),
        None if planned.is_some_and(|planned| planned != steps.len()) => {
            Some("some steps did not run")
        }
        None => None,
    };
    json!({
        "Steps": steps.iter().map(|step| json!({
            "type": step.kind,
            "success": step.verdict == Verdict::Pass,
            "message": step.output.as_ref().map_or(String::new(), ToString::to_string),
            "outputs": step.outputs,
            "error": why(&step.verdict).unwrap_or_default(),
        })).collect::<Vec<_>>(),
        "Success": error.is_none(),
        "Error": error.unwrap_or_default(),
    })
}

/// The object `proctor` of an entry.
fn ours(
    case: &CaseSummary,
    agent: &AgentTrials,
    trial: &TrialSummary,
    folded: Option<&FoldedTrial>,
) -> Value {
    let mut out = json!({
        "case": case.case.id,
        "hash": case.case.hash,
        "labels": case.case.labels,
        "agent": agent.agent,
        "repeat": trial.repeat,
        "attempts": trial.attempts,
        "outcome": words::outcome(trial.outcome()),
    });
    if let Some(reason) = &agent.known_failure {
        out["knownFailure"] = json!(reason);
    }
    if let (Some(result), Some(folded)) = (&trial.result, folded) {
        for (key, value) in ended(&case.case, trial, result, folded) {
            out[key] = value;
        }
    }
    out
}

fn ended(
    case: &PlannedCase,
    trial: &TrialSummary,
    result: &TrialResult,
    folded: &FoldedTrial,
) -> Vec<(&'static str, Value)> {
    let work = &folded.work;
    let mut phases: BTreeMap<&str, Duration> = BTreeMap::new();
    for span in &work.phases {
        *phases.entry(span.phase.name()).or_default() += span.duration;
    }
    let phases = phases.into_iter();
    let phases: BTreeMap<&str, f64> = phases.map(|(name, took)| (name, millis(took))).collect();
    let checks = work.checks.iter().map(|evaluated| {
        let place = evaluated.id.as_ref().and_then(|id| case.place(id));
        let mut out = check(evaluated);
        out["place"] = json!(place.map(|place| json!({ "path": place.path, "line": place.line })));
        out
    });
    let checks: Vec<Value> = checks.collect();
    vec![
        ("attempt", json!(result.attempt)),
        ("file", json!(trial.file())),
        ("blame", json!(result.blame.map(words::blame))),
        ("reason", json!(result.reason)),
        ("folder", json!(work.kept_folder)),
        ("durationMs", json!(millis(result.duration()))),
        ("phasesMs", json!(phases)),
        ("checks", Value::Array(checks)),
        ("findings", json!(folded.findings)),
        ("callsInError", calls_in_error(folded)),
        ("inventedTools", json!(work.invented)),
        ("agentUsage", activity(&work.agent)),
        ("judgeUsage", activity(&work.judge)),
    ]
}

/// The calls that returned an error or got no answer.
fn calls_in_error(folded: &FoldedTrial) -> Value {
    let calls = decision::calls_in_error(&folded.transcript).map(|call| {
        let name = match &call.request {
            CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => name,
            CallRequest::Resource { uri } => uri,
        };
        let error = evidence::answer(&call.answer);
        json!({ "seq": call.seq, "server": call.server, "name": name, "error": error })
    });
    calls.collect()
}

/// A check with its verdict.
pub(crate) fn check(check: &CheckEvaluated) -> Value {
    let verdict = match &check.verdict {
        Verdict::Pass => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::Unknown { .. } => "unknown",
    };
    json!({
        "check": check.check,
        "kind": check.id.as_ref().map(CheckId::kind),
        "verdict": verdict,
        "reason": why(&check.verdict),
        "details": check.details,
        "evidence": check.evidence,
        "notes": check.notes,
    })
}

//! What an entry says about the outcome of its trial, and its checks.
//!
//! Main functions: [`outcome`] and [`checks`]. An entry passed only if `taskPassed` and
//! `allAssertionsPassed` are true and nothing in it says otherwise. An entry that contradicts itself does not
//! pass.

use proctor_record::event::{Blame, CheckEvaluated, CheckId, Outcome, TrialEnded};
use proctor_record::verdict::Verdict;

use super::result_file::{AssertionEntry, PhaseEntry, ResultEntry, StepEntry};

/// The check that holds `taskPassed`.
const TASK_PASSED: &str = "taskPassed";

/// The check that holds `allAssertionsPassed`, if no assertion explains it.
pub const ASSERTIONS_PASSED: &str = "allAssertionsPassed";

/// Proctor's word for a trial without an attempt.
const NOT_RUN: &str = "not-run";

/// The type of steps that a judge decides.
const JUDGE: &str = "llmJudge";

/// How the trial of an entry ended.
pub(super) fn outcome(entry: &ResultEntry) -> TrialEnded {
    let (outcome, blame, reason) = said(entry);
    let own = entry.proctor.as_ref();
    let own_outcome = own.and_then(|own| outcome_of(own.outcome.as_deref()?));
    // Proctor's own word is more precise, and never turns anything into a pass.
    let (outcome, blame) = match own_outcome {
        Some(own) if own != Outcome::Passed && own != outcome => (own, None),
        _ => (outcome, blame),
    };
    let own_reason = own.and_then(|own| own.reason.clone());
    TrialEnded {
        outcome,
        reason: match outcome {
            Outcome::Passed => None,
            Outcome::Failed | Outcome::TimedOut | Outcome::Errored | Outcome::Cancelled => {
                own_reason.or(reason)
            }
        },
        blame,
    }
}

/// Whether the entry stands for a trial that Proctor planned and did not run.
pub(super) fn is_not_run(entry: &ResultEntry) -> bool {
    let own = entry.proctor.as_ref();
    let word = own.and_then(|own| own.outcome.as_deref());
    word == Some(NOT_RUN) && said(entry).0 != Outcome::Passed
}

fn outcome_of(word: &str) -> Option<Outcome> {
    match word {
        NOT_RUN => Some(Outcome::Cancelled),
        word => serde_json::from_value(word.into()).ok(),
    }
}

fn said(entry: &ResultEntry) -> (Outcome, Option<Blame>, Option<String>) {
    let error = || text(&entry.task_error);
    if entry.timed_out {
        return (Outcome::TimedOut, None, error().or(text("timed out")));
    }
    if entry.agent_execution_error {
        let reason = error().or(text("the agent could not be run"));
        return (Outcome::Errored, Some(Blame::Agent), reason);
    }
    if let Some(judge) = text(&entry.task_judge_error) {
        return (Outcome::Errored, Some(Blame::Judge), Some(judge));
    }
    if let Some(setup) = failed_setup(entry) {
        return (Outcome::Errored, None, error().or(Some(setup)));
    }
    let (Some(task), Some(assertions)) = (entry.task_passed, entry.all_assertions_passed) else {
        let reason = "the result file does not say whether the task and its assertions passed";
        return (Outcome::Errored, None, text(reason));
    };
    let checks = checks(entry);
    let mut unmet = checks.iter().filter(|check| check.verdict != Verdict::Pass);
    let first = unmet.next().map(described);
    if task && assertions && first.is_none() {
        return (Outcome::Passed, None, None);
    }
    let error = error().filter(|_| !task);
    (Outcome::Failed, None, error.or(first))
}

/// Why the setup failed, if the agent was not started because of it.
fn failed_setup(entry: &ResultEntry) -> Option<String> {
    let setup = entry.setup_output.as_ref()?;
    let agent = entry.agent_output.as_ref();
    let has_run = agent.is_some_and(|agent| agent.success || agent.steps().next().is_some());
    let failed = setup.steps().find(|step| !step.success)?;
    if has_run || entry.task_passed == Some(true) {
        return None;
    }
    Some(format!("the setup failed: {}", step_reason(failed)))
}

/// The checks of an entry: the task as a whole, assertions, and the judge.
pub(super) fn checks(entry: &ResultEntry) -> Vec<CheckEvaluated> {
    let verdict = match entry.task_passed {
        Some(true) => Verdict::Pass,
        Some(false) => Verdict::fail(
            text(&entry.task_error).unwrap_or_else(|| "the result file gives no reason".to_owned()),
        ),
        None => Verdict::unknown("the result file does not say"),
    };
    let mut checks = vec![check(CheckId::imported_task(), TASK_PASSED, verdict)];
    for (kind, assertion) in &entry.assertion_results.0 {
        checks.push(CheckEvaluated {
            details: assertion.details.clone(),
            ..check(
                CheckId::Assertion(kind.clone()),
                kind,
                of_assertion(assertion),
            )
        });
    }
    checks.extend(unexplained(entry, &checks[1..]));
    checks.extend(judged(entry));
    checks
}

/// The check for `allAssertionsPassed`, if it is not true and no assertion shows why.
fn unexplained(entry: &ResultEntry, listed: &[CheckEvaluated]) -> Option<CheckEvaluated> {
    let is_explained = listed.iter().any(|check| check.verdict != Verdict::Pass);
    if entry.all_assertions_passed == Some(true) || is_explained {
        return None;
    }
    let verdict = match (entry.all_assertions_passed, entry.task_passed) {
        (None, _) => Verdict::unknown("the result file does not say"),
        // A task that fails early has no results of assertions.
        (Some(_), Some(false)) if listed.is_empty() => {
            Verdict::unknown("the result file lists no assertions")
        }
        (Some(_), _) => Verdict::fail("the result file lists no assertion that failed"),
    };
    let id = CheckId::Assertion(ASSERTIONS_PASSED.to_owned());
    Some(check(id, ASSERTIONS_PASSED, verdict))
}

/// The first step that a judge decided, or the error of the judge.
fn judged(entry: &ResultEntry) -> Option<CheckEvaluated> {
    let steps = entry.verify_output.iter().flat_map(PhaseEntry::steps);
    let mut steps = steps.filter(|step| step.kind == JUDGE);
    let id = CheckId::Judge(JUDGE.to_owned());
    if let Some(error) = text(&entry.task_judge_error) {
        return Some(check(id, JUDGE, Verdict::unknown(error)));
    }
    let step = steps.next()?;
    let reason = text(&entry.task_judge_reason).or_else(|| text(&step.message));
    Some(if step.success {
        CheckEvaluated {
            notes: Vec::from_iter(reason),
            ..check(id, JUDGE, Verdict::Pass)
        }
    } else {
        let reason = reason.unwrap_or_else(|| step_reason(step));
        check(id, JUDGE, Verdict::fail(reason))
    })
}

fn check(id: CheckId, name: &str, verdict: Verdict) -> CheckEvaluated {
    CheckEvaluated {
        check: name.to_owned(),
        id: Some(id),
        details: Vec::new(),
        verdict,
        evidence: Vec::new(),
        notes: Vec::new(),
    }
}

fn of_assertion(assertion: &AssertionEntry) -> Verdict {
    let reason = || match assertion.reason.as_str() {
        "" => "the result file gives no reason".to_owned(),
        reason => reason.to_owned(),
    };
    match assertion.passed {
        Some(true) => Verdict::Pass,
        Some(false) => Verdict::fail(reason()),
        None => Verdict::unknown("the result file does not say"),
    }
}

/// The verdict of a step of the file.
pub(super) fn step_verdict(step: &StepEntry) -> Verdict {
    if step.success {
        Verdict::Pass
    } else {
        Verdict::fail(step_reason(step))
    }
}

fn step_reason(step: &StepEntry) -> String {
    let reason = text(&step.error).or_else(|| text(&step.message));
    reason.unwrap_or_else(|| "the result file gives no reason".to_owned())
}

fn described(check: &CheckEvaluated) -> String {
    match &check.verdict {
        Verdict::Fail { reason } | Verdict::Unknown { reason } => {
            format!("{}: {reason}", check.check)
        }
        Verdict::Pass => check.check.clone(),
    }
}

/// A text that is not empty.
fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

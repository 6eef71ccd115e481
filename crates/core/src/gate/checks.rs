//! Thresholds on tasks and assertions, as mcpchecker has them.
//!
//! A task passes if its verify steps pass, whatever its assertions say. Without verify steps it can only fail. Assertions
//! that a failed trial passed count only if a check explains the failure: a silent agent passes all that only forbid.

use std::collections::HashMap;

use proctor_record::event::{CheckId, Outcome, PlannedCase};
use proctor_record::index::{self, Attempt, CheckVerdict};
use proctor_record::record::{RecordError, RunReader};
use proctor_record::verdict::Verdict;

use super::CaseVerdict;
use super::conditions::{Condition, between, is_counted, percent};
use crate::summary::Summary;

/// A number of things that passed, did not pass, and are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    passed: u64,
    failed: u64,
    open: u64,
}

/// The conditions `--task` and `--assertion`, if they are set. Folds every trial of the run.
pub fn check_rates(
    run: &RunReader,
    summary: &Summary,
    task: Option<f64>,
    assertion: Option<f64>,
) -> Result<Vec<Condition>, RecordError> {
    if task.is_none() && assertion.is_none() {
        return Ok(Vec::new());
    }
    let mut definite: HashMap<String, (&PlannedCase, Option<Outcome>)> = HashMap::new();
    let mut trials: u64 = 0;
    let counted = summary.trials().filter(|(_, cell, _)| is_counted(cell));
    for (case, _, trial) in counted {
        trials += 1;
        let is_definite = match trial.outcome() {
            Some(Outcome::Passed | Outcome::Failed | Outcome::TimedOut) => true,
            Some(Outcome::Errored | Outcome::Cancelled) | None => false,
        };
        if let Some(file) = trial.file().filter(|_| is_definite) {
            definite.insert(file, (&case.case, trial.outcome()));
        }
    }
    let (mut tasks, mut assertions) = (Share::default(), Share::default());
    let mut most = 1;
    let mut unasserted: u64 = 0;
    index::each_folded(run, |entry| {
        let Some((case, outcome)) = definite.remove(entry.file.as_str()) else {
            return;
        };
        trials -= 1;
        if let Some(verdict) = task_verdict(case, outcome, &entry.attempt) {
            tasks.add(&verdict);
        }
        let checks = entry.attempt.checks.iter();
        let checks = checks.filter(|check| is_assertion(check));
        let count = checks.clone().count() as u64;
        most = most.max(count);
        match outcome {
            Some(Outcome::Failed) if !has_failed_check(&entry.attempt) => {
                assertions.failed += count.max(1);
            }
            Some(Outcome::TimedOut) if count == 0 => unasserted += 1,
            Some(_) | None => checks.for_each(|check| assertions.add(&check.verdict)),
        }
    })?;
    // Trials without a verdict, and those whose file is missing.
    tasks.open += trials;
    // The record does not say how many assertions a trial without a verdict would have had.
    assertions.open += (trials + unasserted) * most;
    let mut all = Vec::new();
    all.extend(task.map(|least| tasks.condition("--task", "task", least)));
    all.extend(assertion.map(|least| assertions.condition("--assertion", "assertion", least)));
    Ok(all)
}

impl Share {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail { .. } => self.failed += 1,
            Verdict::Unknown { .. } => self.open += 1,
        }
    }

    fn condition(self, option: &str, noun: &str, least: f64) -> Condition {
        let option = Some(format!("{option} {}", percent(least)));
        let total = self.passed + self.failed + self.open;
        if total == 0 {
            return Condition {
                option,
                verdict: CaseVerdict::Open,
                text: format!("no {noun} was evaluated"),
            };
        }
        #[expect(clippy::cast_precision_loss, reason = "far fewer checks than 2^52")]
        let share = |passed: u64| passed as f64 / total as f64;
        let known = self.passed + self.failed;
        let mut text = format!("{}/{known} {noun}s passed", self.passed);
        if self.open > 0 {
            text.push_str(&format!(", {} without a verdict", self.open));
        }
        Condition {
            option,
            verdict: between(share(self.passed), share(self.passed + self.open), least),
            text,
        }
    }
}

fn is_assertion(check: &CheckVerdict) -> bool {
    matches!(check.id, Some(CheckId::Assertion(_)))
}

fn has_failed_check(attempt: &Attempt) -> bool {
    let mut verdicts = attempt.checks.iter().map(|check| &check.verdict);
    verdicts.any(|verdict| matches!(verdict, Verdict::Fail { .. }))
}

/// Whether every verify step passed. A step that did not run did not pass. `None` if there is no step that could pass.
fn task_verdict(
    case: &PlannedCase,
    outcome: Option<Outcome>,
    attempt: &Attempt,
) -> Option<Verdict> {
    let planned = case.verify_steps.unwrap_or(0);
    let has_steps = planned > 0 || attempt.checks.iter().any(|check| !is_assertion(check));
    Some(verdict_of_steps(case, outcome, attempt))
        .filter(|verdict| has_steps || *verdict != Verdict::Pass)
}

fn verdict_of_steps(case: &PlannedCase, outcome: Option<Outcome>, attempt: &Attempt) -> Verdict {
    let fail = |reason: &str| Verdict::Fail {
        reason: reason.to_owned(),
    };
    if outcome == Some(Outcome::Passed) {
        return Verdict::Pass;
    }
    if outcome == Some(Outcome::TimedOut) {
        return fail("timed out");
    }
    let mut assertions = 0;
    let mut steps = 0;
    for check in &attempt.checks {
        if is_assertion(check) {
            assertions += usize::from(check.verdict != Verdict::Pass);
            continue;
        }
        steps += 1;
        match &check.verdict {
            Verdict::Pass => {}
            Verdict::Fail { .. } | Verdict::Unknown { .. } => return check.verdict.clone(),
        }
    }
    let planned = case
        .verify_steps
        .and_then(|steps| usize::try_from(steps).ok());
    if planned.is_some_and(|planned| steps < planned) {
        return fail("a verify step did not run");
    }
    // The trial failed for another reason than its assertions, such as a server that died.
    if assertions == 0 {
        return fail("failed without a failed assertion");
    }
    Verdict::Pass
}

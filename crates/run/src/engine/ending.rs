//! The result of a run: summed up from its record, in which its end is written.
//!
//! Its main type is [`RunResult`].

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use proctor_core::gate::Gate;
use proctor_core::overview::Overview;
use proctor_core::summary::Summary;
use proctor_record::event::{NotRunOutcome, RunEnded, SkippedEval};
use proctor_record::record::{RecordError, RunReader};
use proctor_record::redact::Redactor;

use super::changed::{SeenTrials, changed};
use super::folder::OpenRun;
use super::running::{RunCompletion, RunInProgress};
use super::sharding;

/// The result of a run.
pub struct RunResult {
    pub record: RunReader,
    pub summary: Summary,
    pub gate: Gate,
    /// Why the run stopped early, if it did.
    pub stopped: Option<RunStopCause>,
    /// The exit code, as in the record.
    pub exit: u8,
    /// Why the exit code differs from the gate's, if it does.
    pub note: Option<String>,
    /// Whether the end of the run was written.
    pub kept: Result<(), RecordError>,
}

/// Why a run stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStopCause {
    /// The user interrupted it.
    Interrupted,
    /// A server was unusable, before the first trial.
    NotStarted(String),
    /// A server changed in a way that the surface contract does not allow, before the first trial.
    ContractBroken(String),
    /// An internal or disk error, with its causes.
    Broken(Vec<String>),
}

/// The exit codes of a run other than those of its gate.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const INCONCLUSIVE: u8 = 3;
const INTERRUPTED: u8 = 130;

/// A run that is summed up, and whose end is not written yet.
pub(super) struct SummedRun {
    written: OpenRun,
    redactor: Redactor,
    completion: RunCompletion,
    cleanup: Option<Result<(), String>>,
    pub(super) summary: Summary,
    record: RunReader,
    at: u64,
}

impl RunInProgress {
    /// Sums the run up and writes its end.
    pub fn end(self, completion: RunCompletion) -> Result<RunResult, RecordError> {
        Ok(self.sum(completion)?.close(None))
    }

    /// Sums the run up.
    pub(super) fn sum(self, completion: RunCompletion) -> Result<SummedRun, RecordError> {
        let Self {
            mut written,
            redactor,
            cleanup,
            ..
        } = self;
        let at = written.at();
        written.writer.flush();
        let summed = RunReader::open(written.writer.folder())
            .and_then(|reader| Ok((Summary::of_written(&reader)?, reader)));
        let (mut summary, record) = match summed {
            Ok(summed) => summed,
            Err(error) => {
                let reason = Some(redactor.text(&causes(&error).join(": ")).into_owned());
                let exit = INCONCLUSIVE;
                // The caller gets the read error; a write error would add nothing.
                let ended = RunEnded {
                    exit,
                    reason,
                    ..RunEnded::default()
                };
                let _ = written.writer.end(at, ended);
                return Err(error);
            }
        };
        let changed = match &completion {
            RunCompletion::Finished(finished) => {
                let before = std::mem::take(&mut written.ended);
                let seen = SeenTrials::new(&written.trials, &written.stems, &finished.ended);
                changed(seen, before, &summary, &record)
            }
            _ => BTreeSet::new(),
        };
        let changed = changed.iter().map(|stem| redactor.text(stem).into_owned());
        summary.changed_trials.extend(changed);
        Ok(SummedRun {
            written,
            redactor,
            completion,
            cleanup,
            summary,
            record,
            at,
        })
    }
}

impl SummedRun {
    /// Writes the end of the run. `no_regression_over` is the number of suites over which its regression is
    /// corrected away.
    pub(super) fn close(self, no_regression_over: Option<u32>) -> RunResult {
        let Self {
            written,
            redactor,
            completion,
            cleanup,
            mut summary,
            record,
            at,
        } = self;
        let before = summary.ended.as_ref();
        // A resumed run without any trial has no cleanup, and that of its earlier part still counts.
        let failed_cleanup = match cleanup {
            Some(result) => result.err(),
            None => before.and_then(|before| before.failed_cleanup.clone()),
        };
        let failed_cleanup = failed_cleanup.map(|reason| redactor.text(&reason).into_owned());
        let earlier = summary.ended.replace(RunEnded {
            no_regression_over,
            failed_cleanup: failed_cleanup.clone(),
            ..RunEnded::default()
        });
        let gate = Gate::of(&summary);
        summary.ended = earlier;
        let (exit, note) = match summary.plan.shard {
            Some(_) => shard_exit(&completion, &summary),
            None => with_invalid(exit_of(&completion, &gate), &summary.plan.not_run),
        };
        let (exit, note) = if summary.changed_trials.is_empty() {
            (exit, note)
        } else {
            (exit.max(INCONCLUSIVE), gate.reasons().first().cloned())
        };
        let note = note.map(|note| redactor.text(&note).into_owned());
        let ended = RunEnded {
            exit,
            reason: note.clone(),
            changed_trials: summary.changed_trials.clone(),
            no_regression_over,
            failed_cleanup,
            missing: Vec::new(),
        };
        let kept = written.writer.end(at, ended.clone());
        if kept.is_ok() {
            // Matches what a reader of the record will find.
            summary.ended = Some(ended);
            summary.duration = summary.duration.max(Duration::from_micros(at));
            // A missing overview is created again when it is needed.
            let _ = Overview::store(&record, &summary);
        }
        RunResult {
            record,
            summary,
            gate,
            stopped: stopped(completion, &redactor),
            exit,
            note,
            kept,
        }
    }
}

/// The exit code, and why it differs from the gate's.
fn exit_of(completion: &RunCompletion, gate: &Gate) -> (u8, Option<String>) {
    match completion {
        RunCompletion::Finished(finished) if finished.interrupted => {
            (INTERRUPTED, Some("interrupted".to_owned()))
        }
        RunCompletion::Finished(finished) => (gate.exit(), finished.stopped.clone()),
        RunCompletion::Interrupted => (INTERRUPTED, Some("interrupted".to_owned())),
        RunCompletion::NotStarted(reason) => (INCONCLUSIVE, Some(reason.clone())),
        RunCompletion::Invalid(reason) => (USAGE, Some(reason.clone())),
        RunCompletion::ContractBroken(reason) => (FAILED, Some(reason.clone())),
        RunCompletion::Broken(error) => (INCONCLUSIVE, Some(causes(error).join(": "))),
    }
}

/// The exit code of a shard: whether each of its trials has a verdict, never whether they passed.
fn shard_exit(completion: &RunCompletion, summary: &Summary) -> (u8, Option<String>) {
    let is_finished = matches!(completion, RunCompletion::Finished(_));
    let (exit, note) = exit_of(completion, &Gate::Met);
    match sharding::inconclusive(summary) {
        Some(reason) if exit == 0 => (INCONCLUSIVE, note.or(Some(reason))),
        None if exit == 0 && is_finished => {
            let note = "each trial has a verdict; the gate belongs to the merged run";
            (exit, Some(note.to_owned()))
        }
        // A broken contract keeps trials from running: the gate of the whole run says what that means.
        _ if exit == FAILED => (INCONCLUSIVE, note),
        _ => (exit, note),
    }
}

/// An invalid eval fails the run, whatever the results of the others.
fn with_invalid(
    (exit, note): (u8, Option<String>),
    not_run: &[SkippedEval],
) -> (u8, Option<String>) {
    let mut all = not_run.iter();
    let is_invalid = all.any(|not_run| not_run.outcome == NotRunOutcome::Invalid);
    match exit {
        0 | INCONCLUSIVE if is_invalid => (1, note.or(Some("some evals are invalid".to_owned()))),
        exit => (exit, note),
    }
}

fn stopped(completion: RunCompletion, redactor: &Redactor) -> Option<RunStopCause> {
    match completion {
        RunCompletion::Finished(finished) => {
            finished.interrupted.then_some(RunStopCause::Interrupted)
        }
        RunCompletion::Interrupted => Some(RunStopCause::Interrupted),
        RunCompletion::NotStarted(reason) | RunCompletion::Invalid(reason) => Some(
            RunStopCause::NotStarted(redactor.text(&reason).into_owned()),
        ),
        RunCompletion::ContractBroken(reason) => Some(RunStopCause::ContractBroken(
            redactor.text(&reason).into_owned(),
        )),
        RunCompletion::Broken(error) => {
            let causes = causes(&error).into_iter();
            let causes = causes.map(|cause| redactor.text(&cause).into_owned());
            Some(RunStopCause::Broken(causes.collect()))
        }
    }
}

/// The messages of an error and its sources.
fn causes(error: &dyn Error) -> Vec<String> {
    let mut all = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        all.push(error.to_string());
        cause = error.source();
    }
    all
}

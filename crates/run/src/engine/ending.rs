//! What a run came to: summed up from its record, with its end written there.
//!
//! Its main type is [`RunResult`].

use std::error::Error;
use std::time::Duration;

use proctor_core::event::RunEnded;
use proctor_core::event::{NotRunOutcome, SkippedEval};
use proctor_core::gate::Gate;
use proctor_core::overview::Overview;
use proctor_core::record::{RecordError, RunReader};
use proctor_core::redact::Redactor;
use proctor_core::summary::{Summary, TrialResult};

use super::running::{RunCompletion, RunInProgress};
use crate::runner::TrialOutcomes;

/// What a run came to.
pub struct RunResult {
    /// The run's record.
    pub record: RunReader,
    pub summary: Summary,
    pub gate: Gate,
    /// What stopped the run, if it did not come to its own end.
    pub stopped: Option<RunStopCause>,
    /// The exit code that the record names.
    pub exit: u8,
    /// Why that is not what the gate says, if it is not.
    pub note: Option<String>,
    /// Whether the run's end could be written.
    pub kept: Result<(), RecordError>,
}

/// What stopped a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStopCause {
    /// Somebody, from outside.
    Interrupted,
    /// A server that was not fit for it, before the first trial.
    NotStarted(String),
    /// An error of Proctor's own, or of the disk, with its causes.
    Broken(Vec<String>),
}

/// The exit codes that a run has besides those of its gate.
const INCONCLUSIVE: u8 = 3;
const INTERRUPTED: u8 = 130;

impl RunInProgress {
    /// Sums the run up, and writes its end.
    pub fn end(self, over: RunCompletion) -> Result<RunResult, RecordError> {
        let Self {
            mut written,
            redactor,
            ..
        } = self;
        // What a summary needs is in the record, and it takes the place of this.
        written.trials = Vec::new();
        let at = written.at();
        written.writer.flush();
        let summed = RunReader::open(written.writer.folder())
            .and_then(|reader| Ok((Summary::of_run(&reader)?, reader)));
        let (mut summary, record) = match summed {
            Ok(summed) => summed,
            Err(error) => {
                let reason = Some(redactor.text(&causes(&error).join(": ")).into_owned());
                let exit = INCONCLUSIVE;
                // What can't be read is news enough.
                let _ = written.writer.end(at, RunEnded { exit, reason });
                return Err(error);
            }
        };
        let mut gate = Gate::of(&summary);
        let (exit, note) = with_invalid(exit_of(&over, &gate), &summary.plan.not_run);
        let (exit, note) = match changed(&over, written.ended, &outcomes(&summary, &record)) {
            Some(reason) => {
                let reasons = vec![reason.clone()];
                gate = Gate::Open { reasons };
                let exit = exit.max(INCONCLUSIVE);
                (exit, Some(reason))
            }
            None => (exit, note),
        };
        let note = note.map(|note| redactor.text(&note).into_owned());
        let ended = RunEnded {
            exit,
            reason: note.clone(),
        };
        let kept = written.writer.end(at, ended.clone());
        if kept.is_ok() {
            // As whoever reads the record will find it.
            summary.ended = Some(ended);
            summary.duration = summary.duration.max(Duration::from_micros(at));
            // Whoever misses it makes it again.
            let _ = Overview::store(&record, &summary);
        }
        Ok(RunResult {
            record,
            summary,
            gate,
            stopped: stopped(over, &redactor),
            exit,
            note,
            kept,
        })
    }
}

/// The exit code, and why it is not what the gate says.
fn exit_of(over: &RunCompletion, gate: &Gate) -> (u8, Option<String>) {
    match over {
        RunCompletion::Finished(finished) if finished.interrupted => {
            (INTERRUPTED, Some("interrupted".to_owned()))
        }
        RunCompletion::Finished(finished) => (gate.exit(), finished.stopped.clone()),
        RunCompletion::Interrupted => (INTERRUPTED, Some("interrupted".to_owned())),
        RunCompletion::NotStarted(reason) => (INCONCLUSIVE, Some(reason.clone())),
        RunCompletion::Broken(error) => (INCONCLUSIVE, Some(causes(error).join(": "))),
    }
}

/// How the trials of a run ended, as its record tells it.
pub(super) fn outcomes(summary: &Summary, record: &RunReader) -> TrialOutcomes {
    let results = summary
        .trials()
        .filter_map(|(_, _, trial)| trial.result.as_ref());
    let outcome = |result: &TrialResult| {
        let file = record.trial_file(&result.file)?;
        Some((file.stem, (file.attempt, result.outcome)))
    };
    results.filter_map(outcome).collect()
}

/// Whether the record tells of a trial what this process has not seen: somebody changed it, and an agent
/// may want to.
fn changed(
    over: &RunCompletion,
    mut before: TrialOutcomes,
    told: &TrialOutcomes,
) -> Option<String> {
    let RunCompletion::Finished(finished) = over else {
        return None;
    };
    before.extend(finished.ended.clone());
    let all = before.keys().chain(told.keys());
    let mut changed = all.filter(|stem| before.get(*stem) != told.get(*stem));
    changed
        .next()
        .map(|stem| format!("the record of the trial `{stem}` changed after the trial ended"))
}

/// An eval that is invalid fails the run, whatever came of the others.
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

fn stopped(over: RunCompletion, redactor: &Redactor) -> Option<RunStopCause> {
    match over {
        RunCompletion::Finished(finished) => {
            finished.interrupted.then_some(RunStopCause::Interrupted)
        }
        RunCompletion::Interrupted => Some(RunStopCause::Interrupted),
        RunCompletion::NotStarted(reason) => Some(RunStopCause::NotStarted(
            redactor.text(&reason).into_owned(),
        )),
        RunCompletion::Broken(error) => {
            let causes = causes(&error).into_iter();
            let causes = causes.map(|cause| redactor.text(&cause).into_owned());
            Some(RunStopCause::Broken(causes.collect()))
        }
    }
}

/// An error, and what caused it.
fn causes(error: &dyn Error) -> Vec<String> {
    let mut all = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        all.push(error.to_string());
        cause = error.source();
    }
    all
}

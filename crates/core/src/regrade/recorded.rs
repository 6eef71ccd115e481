//! A trial as its record has it, for regrading.
//!
//! The main type is [`RecordedTrial`]. It folds the events that a live trial grades: everything before
//! its checks. Later messages are those of steps.

use proctor_record::event::{
    Blame, CheckEvaluated, CheckId, EventKind, Outcome, Phase, TrialEnded,
};
use proctor_record::fold::{Fold, FoldOptions, FoldedTrial};
use proctor_record::record::{RecordError, RunReader, TornLine, TrialFile};
use proctor_record::verdict::Verdict;

use crate::grading;

use super::{CheckGrade, Origin, recorded_conclusion};

/// A recorded trial.
#[derive(Debug)]
pub struct RecordedTrial {
    /// The events as the live trial's checks read them, and the recorded results.
    pub folded: FoldedTrial,
    /// How the trial ended; `None` if its record has no end.
    pub ended: Option<TrialEnded>,
    /// Whether its checks were evaluated.
    was_graded: bool,
    torn: Option<TornLine>,
}

impl RecordedTrial {
    /// Reads a trial in memory that does not depend on the length of its record, except for the calls.
    pub fn read(
        run: &RunReader,
        file: &TrialFile,
        options: FoldOptions,
    ) -> Result<Self, RecordError> {
        let mut fold = Fold::new(options);
        let (mut ended, mut was_graded) = (None, false);
        let mut events = run.trial(file)?;
        for event in events.by_ref() {
            let event = event?;
            match &event.event {
                EventKind::TrialEnded(end) => ended = Some(end.clone()),
                EventKind::PhaseStarted {
                    phase: Phase::Grade,
                } => {
                    was_graded = true;
                    fold.push(&event, run.blobs())?;
                }
                // Messages of verify and cleanup steps; a live trial has its transcript by then.
                EventKind::Frame(_)
                | EventKind::Http(_)
                | EventKind::ConnectionOpened(_)
                | EventKind::ConnectionClosed(_)
                | EventKind::Finding(_)
                    if was_graded => {}
                EventKind::RunStarted(_)
                | EventKind::RunEnded(_)
                | EventKind::RunPlanned(_)
                | EventKind::ServerSeen(_)
                | EventKind::SurfaceCompared(_)
                | EventKind::TrialStarted(_)
                | EventKind::PhaseStarted { .. }
                | EventKind::Frame(_)
                | EventKind::Http(_)
                | EventKind::ConnectionOpened(_)
                | EventKind::ConnectionClosed(_)
                | EventKind::Finding(_)
                | EventKind::Prompted { .. }
                | EventKind::ToolsOffered { .. }
                | EventKind::ModelAsked(_)
                | EventKind::ModelFailed(_)
                | EventKind::ModelReplied(_)
                | EventKind::Replayed { .. }
                | EventKind::AgentAnswered { .. }
                | EventKind::AgentStarted(_)
                | EventKind::AgentWrote { .. }
                | EventKind::AgentClaimed(_)
                | EventKind::AgentEnded(_)
                | EventKind::TrialFolder(_)
                | EventKind::CallWithheld(_)
                | EventKind::ToolsSelected(_)
                | EventKind::StepEnded(_)
                | EventKind::Graded(_)
                | EventKind::Unknown(_) => fold.push(&event, run.blobs())?,
            }
        }
        Ok(Self {
            folded: fold.finish(),
            ended,
            was_graded,
            torn: events.torn(),
        })
    }

    /// The recorded end that checks can't change, and why: something else decided the trial, such as a
    /// timeout, a server that died, or a cleanup that failed.
    pub(super) fn kept_end(&self) -> Option<(TrialEnded, String)> {
        let ended = self.ended.as_ref()?;
        let kept = |why: &str| Some((ended.clone(), why.to_owned()));
        if !self.was_graded {
            return kept("the trial ended before its checks");
        }
        let task = self.check(|id| *id == CheckId::imported_task());
        if task.is_some_and(|task| task.verdict != Verdict::Pass) {
            return kept("the imported file says that the task failed, whatever its assertions");
        }
        let by_checks = recorded_conclusion(&self.folded.work.checks);
        let other = "something other than its checks decided the trial";
        match ended.outcome {
            Outcome::TimedOut => kept("the trial timed out"),
            Outcome::Cancelled => kept("the trial was cancelled"),
            // The judge may be asked again.
            Outcome::Errored if ended.blame == Some(Blame::Judge) => None,
            Outcome::Passed | Outcome::Failed | Outcome::Errored
                if by_checks.outcome != ended.outcome =>
            {
                kept(other)
            }
            // An error after unknown verdicts, such as a record that became too large.
            Outcome::Errored if by_checks.reason != ended.reason => kept(other),
            Outcome::Passed | Outcome::Failed | Outcome::Errored => None,
        }
    }

    /// Why the record can't prove anything, if it can't.
    pub(super) fn doubt(&self) -> Option<String> {
        if let Some(torn) = self.torn {
            return Some(format!(
                "the last line of the record is incomplete ({} bytes)",
                torn.bytes
            ));
        }
        if self.ended.is_none() {
            return Some("the record has no end of the trial".to_owned());
        }
        let unknown = self.folded.work.unknown;
        if unknown > 0 {
            return Some(format!(
                "the record has {unknown} events that only a newer Proctor knows"
            ));
        }
        let answer = self.folded.work.answer.as_ref();
        let is_hidden = answer.is_some_and(|answer| answer.left_out > 0)
            && grading::is_blank(&self.visible_answer())
            && grading::did_nothing(&self.folded.transcript);
        is_hidden.then(|| "the visible part of the answer is blank".to_owned())
    }

    /// The answer, as far as it is in memory.
    pub(super) fn visible_answer(&self) -> String {
        let answer = self.folded.work.answer.as_ref();
        answer.map_or(String::new(), |answer| {
            format!("{}{}", answer.head, answer.tail)
        })
    }

    /// A recorded check. Records of older versions get their ids from the fold.
    pub(super) fn check(&self, is_meant: impl Fn(&CheckId) -> bool) -> Option<&CheckEvaluated> {
        let mut checks = self.folded.work.checks.iter();
        checks.find(|check| check.id.as_ref().is_some_and(&is_meant))
    }

    /// The blame for a recorded verdict: the record has one only for the check that decided.
    pub(super) fn blame_for(&self, check: &CheckEvaluated) -> Option<Blame> {
        let checks = &self.folded.work.checks;
        let fails = |check: &&CheckEvaluated| matches!(check.verdict, Verdict::Fail { .. });
        let is_open = |check: &&CheckEvaluated| check.verdict != Verdict::Pass;
        let decisive = checks
            .iter()
            .find(fails)
            .or_else(|| checks.iter().find(is_open))?;
        if decisive != check {
            return None;
        }
        self.ended.as_ref()?.blame
    }

    /// Why the judge gave no verdict in the run.
    pub(super) fn judge_error(&self) -> Option<&str> {
        let ended = self.ended.as_ref()?;
        let is_judge = ended.outcome == Outcome::Errored && ended.blame == Some(Blame::Judge);
        ended.reason.as_deref().filter(|_| is_judge)
    }

    /// The end with the recorded reason and blame, if the same checks have the same verdicts: a live trial
    /// may know more, such as permissions that the agent was refused.
    pub(super) fn with_recorded_reason(
        &self,
        ended: TrialEnded,
        grades: &[CheckGrade],
    ) -> TrialEnded {
        let Some(recorded) = &self.ended else {
            return ended;
        };
        let then = self.folded.work.checks.iter();
        let is_same = |grade: &CheckGrade, check: &CheckEvaluated| {
            grade.check.id == check.id && grade.check.verdict == check.verdict
        };
        // A judge that could not be asked has no check in the record.
        let is_lost = |grade: &&CheckGrade| {
            grade.origin == Origin::Missing
                && matches!(&grade.check.verdict, Verdict::Unknown { reason } if Some(reason.as_str()) == self.judge_error())
        };
        let (lost, found): (Vec<&CheckGrade>, Vec<&CheckGrade>) = grades.iter().partition(is_lost);
        let are_same = lost.len() + then.len() == grades.len()
            && found
                .into_iter()
                .zip(then)
                .all(|(grade, check)| is_same(grade, check));
        if ended.outcome == recorded.outcome && are_same {
            return recorded.clone();
        }
        ended
    }
}

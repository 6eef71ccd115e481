//! Grades a trial: checks on the record, then verify steps, then the judge.
//!
//! [`Grading`] decides what comes next and what the verdicts lead to. This module runs the steps, asks
//! the judge, and records the results.

use proctor_core::grading::{CaseChecks, Grading, JudgeGrade, NextCheck, StepGrade};
use proctor_core::suite::Step;
use proctor_core::suite::step::{Action, Judgement};
use proctor_core::transcript_file::TranscriptFile;
use proctor_record::event::{
    Blame, Body, CheckEvaluated, EventKind, Phase, Purpose, StepEnded, TrialEnded,
};
use proctor_record::fold::FoldedTrial;
use tokio::time::Instant;

use super::Trial;
use super::ending::{cancelled, errored};
use crate::judge::{Criterion, Exhibits, Judge, Ruling};
use crate::steps::Steps;
use proctor_models::AskError;
use proctor_wire::worker::Large;

impl Trial {
    /// Evaluates all checks of the case, on the record as it was folded after the task or is now.
    pub(super) async fn grade(
        &self,
        steps: &mut Steps,
        answer: &str,
        folded: Option<Large<FoldedTrial>>,
    ) -> TrialEnded {
        let folded = match folded {
            Some(folded) => Ok(folded),
            None => self.folded().await,
        };
        match folded {
            Ok(folded) => self.grade_by(steps, answer, &folded).await,
            Err(ended) => ended,
        }
    }

    async fn grade_by(&self, steps: &mut Steps, answer: &str, folded: &FoldedTrial) -> TrialEnded {
        if let Err(ended) = self.provide_transcript(steps).await {
            return ended;
        }
        let mut grading = Grading::new(CaseChecks::of(self.case()), folded, answer);
        loop {
            let graded = match grading.next_check() {
                NextCheck::Shipped => return errored(Blame::Suite, "the case is a shipped eval"),
                NextCheck::Assertion => self.on_record(|| grading.evaluate()),
                NextCheck::Step(step) => {
                    let result = steps.run(Phase::Grade, step).await;
                    let grade = StepGrade {
                        verdict: result.verdict,
                        blame: result.blame,
                        goes_on: result.goes_on,
                        evidence: result.evidence,
                        notes: result.notes,
                    };
                    Some(self.on_record(|| grading.step(step, grade)))
                }
                NextCheck::Judge(step) => match self.judge(steps, step, answer, folded).await {
                    Ok(grade) => Some(self.on_record(|| grading.judged(step, grade))),
                    Err(ended) => return ended,
                },
                NextCheck::End(ended) => return ended,
            };
            self.graded(graded);
        }
    }

    /// Writes the transcript for scripts and extensions, if the case has any.
    async fn provide_transcript(&self, steps: &mut Steps) -> Result<(), TrialEnded> {
        let reads = |step: &Step| match step.action {
            Action::Script(_) | Action::Extension { .. } => true,
            Action::Http(_) | Action::CallTool(_) | Action::Judge(_) => false,
        };
        if !self.case().verify.iter().any(reads) {
            return Ok(());
        }
        let folded = self.folded_with_turns().await?;
        let file = self.on_record(|| TranscriptFile::of(&folded));
        let written = steps.provide_transcript(&file);
        written.map_err(|error| {
            let reason = format!("can't write the transcript: {error}");
            errored(Blame::Infra, reason)
        })
    }

    /// Records the verdict of a check.
    pub(super) fn graded(&self, graded: Option<CheckEvaluated>) {
        if let Some(graded) = graded {
            self.recorder.record(EventKind::Graded(graded));
        }
    }

    /// The judge of the case, with all its models.
    pub(super) fn panel(&self) -> Judge {
        let context = &self.context;
        let askers = context.judges.iter();
        Judge {
            askers: askers
                .map(|model| self.asker(model, Purpose::Judge))
                .collect(),
            votes: context.suite.judge.as_ref().map_or(1, |judge| judge.votes),
        }
    }

    /// Asks the judge about one verify step.
    async fn judge(
        &self,
        steps: &mut Steps,
        step: &Step,
        answer: &str,
        folded: &FoldedTrial,
    ) -> Result<JudgeGrade, TrialEnded> {
        let Action::Judge(judgement) = &step.action else {
            let reason = format!("the step `{}` has no criterion", step.id);
            return Err(errored(Blame::Suite, reason));
        };
        let started = Instant::now();
        let ruling = self.rule(steps, judgement, answer, folded).await?;
        self.recorder.record(EventKind::StepEnded(StepEnded {
            phase: Phase::Grade,
            id: step.id.clone(),
            kind: step.kind.clone(),
            verdict: ruling.verdict.clone(),
            output: Some(Body::Text(ruling.notes.join("\n"))),
            outputs: std::collections::BTreeMap::new(),
            duration: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        }));
        Ok(JudgeGrade {
            verdict: ruling.verdict,
            evidence: ruling.evidence,
            notes: ruling.notes,
        })
    }

    async fn rule(
        &self,
        steps: &mut Steps,
        judgement: &Judgement,
        answer: &str,
        folded: &FoldedTrial,
    ) -> Result<Ruling, TrialEnded> {
        let (Judgement::Contains(template) | Judgement::Exact(template)) = judgement;
        let reference = steps
            .fill(template)
            .map_err(|error| errored(Blame::Suite, error.to_string()))?;
        let criterion =
            Criterion::of(judgement, reference).map_err(|reason| errored(Blame::Suite, reason))?;
        let prompt = steps
            .prompt()
            .map_err(|error| errored(Blame::Suite, error.to_string()))?;
        let exhibits = Exhibits {
            prompt: &folded.work.with_messages(&self.redacted_text(&prompt)),
            answer,
            transcript: Some(&folded.transcript),
            answer_required: true,
        };
        match self.panel().rule(&criterion, &exhibits).await {
            Ok(ruling) => Ok(ruling),
            Err(AskError::Budget(reason)) => Err(cancelled(reason)),
            Err(error) => Err(errored(Blame::Judge, format!("the judge: {error}"))),
        }
    }
}

//! Grades a trial: checks on the record, then verify steps, then the judge.

use proctor_core::decision::blame_for_failure;
use proctor_core::event::{
    Blame, Body, CheckEvaluated, CheckId, EventKind, Phase, Purpose, StepEnded, TrialEnded,
};
use proctor_core::fold::FoldedTrial;
use proctor_core::printable::is_hidden;
use proctor_core::suite::Step;
use proctor_core::suite::step::{Action, Judgement};
use proctor_core::transcript::Transcript;
use proctor_core::verdict::Verdict;
use tokio::time::Instant;

use super::Trial;
use super::ending::{cancelled, errored, failed, passed};
use crate::judge::{Criterion, Exhibits, Judge, Ruling};
use crate::steps::Steps;
use proctor_models::AskError;

/// The results of a trial's checks so far.
#[derive(Debug, Default)]
pub(super) struct CheckTally {
    passed: usize,
    failed: Vec<(Option<Blame>, String)>,
    unknown: Vec<(Option<Blame>, String)>,
}

impl CheckTally {
    /// Adds a verdict. `blame` is the proven cause of a verdict other than pass.
    pub(super) fn add(&mut self, check: &str, verdict: &Verdict, blame: Option<Blame>) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail { reason } => self.failed.push((blame, format!("{check}: {reason}"))),
            Verdict::Unknown { reason } => {
                self.unknown.push((blame, format!("{check}: {reason}")));
            }
        }
    }

    pub(super) fn end(self) -> TrialEnded {
        let more = |count: usize| match count {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        if let Some((blame, first)) = self.failed.first() {
            let reason = format!("{first}{}", more(self.failed.len()));
            return failed(*blame, reason);
        }
        if let Some((blame, first)) = self.unknown.first() {
            let reason = format!("{first}{}", more(self.unknown.len()));
            return errored(*blame, reason);
        }
        if self.passed == 0 {
            return errored(Blame::Suite, "no check was evaluated");
        }
        passed()
    }
}

/// The reason for an agent that did nothing: it would meet every check that only forbids something.
pub(super) const SILENT: &str = "the agent gave no answer and made no calls";

/// Whether a text has no visible characters.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

fn did_nothing(transcript: &Transcript) -> bool {
    transcript.calls.is_empty()
        && transcript.unread.is_empty()
        && transcript.skills.as_ref().is_none_or(Vec::is_empty)
}

impl Trial {
    /// Evaluates all checks of the case.
    pub(super) async fn grade(&self, steps: &mut Steps, answer: &str) -> TrialEnded {
        match self.folded().await {
            Ok(folded) => self.grade_by(steps, answer, &folded).await,
            Err(ended) => ended,
        }
    }

    async fn grade_by(&self, steps: &mut Steps, answer: &str, folded: &FoldedTrial) -> TrialEnded {
        let mut grades = CheckTally::default();
        self.check(folded, &mut grades);
        if is_blank(answer) && did_nothing(&folded.transcript) {
            return failed(Blame::Agent, SILENT);
        }
        self.verify(steps, folded, &mut grades).await;
        // The judge is asked only if no other check decides.
        if grades.failed.is_empty()
            && let Err(ended) = self.judge(steps, answer, folded, &mut grades).await
        {
            return ended;
        }
        grades.end()
    }

    /// Evaluates the assertions of the case.
    pub(super) fn check(&self, folded: &FoldedTrial, grades: &mut CheckTally) {
        for check in &self.case().checks {
            let (result, blame) = self.on_record(|| {
                let result = check.evaluate(&folded.transcript);
                let blame = match result.verdict {
                    Verdict::Unknown { .. } => Some(Blame::Infra),
                    Verdict::Pass | Verdict::Fail { .. } => blame_for_failure(folded),
                };
                (result, blame)
            });
            grades.add(check.name(), &result.verdict, blame);
            self.recorder.record(EventKind::Graded(CheckEvaluated {
                check: check.name().to_owned(),
                id: Some(CheckId::Assertion(check.name().to_owned())),
                details: check.details(),
                verdict: result.verdict,
                evidence: result.evidence,
                notes: Vec::new(),
            }));
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

    /// Runs the verify steps other than the judge's. The first failure ends them, unless the step
    /// is allowed to fail.
    async fn verify(&self, steps: &mut Steps, folded: &FoldedTrial, grades: &mut CheckTally) {
        let others = |step: &&Step| !matches!(step.action, Action::Judge(_));
        for step in self.case().verify.iter().filter(others) {
            let result = steps.run(Phase::Grade, step).await;
            // A failed verify step is the agent's fault.
            let blame = match result.blame {
                Some(Blame::Agent) => blame_for_failure(folded),
                other => other,
            };
            grades.add(&step.id, &result.verdict, blame);
            let goes_on = result.goes_on || result.verdict == Verdict::Pass;
            self.graded(step, result.verdict, Vec::new(), Vec::new());
            if !goes_on {
                break;
            }
        }
    }

    async fn judge(
        &self,
        steps: &mut Steps,
        answer: &str,
        folded: &FoldedTrial,
        grades: &mut CheckTally,
    ) -> Result<(), TrialEnded> {
        let transcript = &folded.transcript;
        for step in &self.case().verify {
            let Action::Judge(judgement) = &step.action else {
                continue;
            };
            let started = Instant::now();
            let ruling = self.rule(steps, judgement, answer, transcript).await?;
            let blame = match ruling.verdict {
                Verdict::Unknown { .. } => Some(Blame::Judge),
                Verdict::Pass | Verdict::Fail { .. } => blame_for_failure(folded),
            };
            grades.add(&step.id, &ruling.verdict, blame);
            self.recorder.record(EventKind::StepEnded(StepEnded {
                phase: Phase::Grade,
                id: step.id.clone(),
                kind: step.kind.clone(),
                verdict: ruling.verdict.clone(),
                output: Some(Body::Text(ruling.notes.join("\n"))),
                outputs: std::collections::BTreeMap::new(),
                duration: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            }));
            self.graded(step, ruling.verdict, ruling.evidence, ruling.notes);
            if !grades.failed.is_empty() {
                break;
            }
        }
        Ok(())
    }

    async fn rule(
        &self,
        steps: &mut Steps,
        judgement: &Judgement,
        answer: &str,
        transcript: &Transcript,
    ) -> Result<Ruling, TrialEnded> {
        let (Judgement::Contains(template) | Judgement::Exact(template)) = judgement;
        let reference = steps
            .fill(template)
            .map_err(|error| errored(Blame::Suite, error.to_string()))?;
        if is_blank(&reference) {
            let reason = "the criterion is empty after its variables are replaced";
            return Err(errored(Blame::Suite, reason));
        }
        let criterion = match judgement {
            Judgement::Contains(_) => Criterion::Contains(reference),
            Judgement::Exact(_) => Criterion::Exact(reference),
        };
        let prompt = steps
            .prompt()
            .map_err(|error| errored(Blame::Suite, error.to_string()))?;
        let exhibits = Exhibits {
            prompt: &self.redacted_text(&prompt),
            answer,
            transcript: Some(transcript),
            answer_required: true,
        };
        match self.panel().rule(&criterion, &exhibits).await {
            Ok(ruling) => Ok(ruling),
            Err(AskError::Budget(reason)) => Err(cancelled(reason)),
            Err(error) => Err(errored(Blame::Judge, format!("the judge: {error}"))),
        }
    }

    fn graded(&self, step: &Step, verdict: Verdict, evidence: Vec<u64>, notes: Vec<String>) {
        self.recorder.record(EventKind::Graded(CheckEvaluated {
            check: step.id.clone(),
            id: Some(match &step.action {
                Action::Judge(_) => CheckId::Judge(step.id.clone()),
                Action::Script(_)
                | Action::Http(_)
                | Action::CallTool(_)
                | Action::Extension { .. } => CheckId::Step(step.id.clone()),
            }),
            details: vec![step.kind.clone()],
            verdict,
            evidence,
            notes,
        }));
    }
}

//! Grades a trial: which check comes next, and the outcome that all verdicts lead to.
//!
//! The main type is [`Grading`]. It evaluates assertions itself. It asks its caller for the results
//! of everything else: a live trial runs the step or asks the judge, a regrade takes the result
//! from the record. So both have the same order, the same rules and the same outcome.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

#[cfg(test)]
mod tests;

use std::sync::Arc;

use proctor_record::decision::blame_for_failure;
use proctor_record::event::{Blame, CheckEvaluated, CheckId, Outcome, TrialEnded};
use proctor_record::fold::FoldedTrial;
use proctor_record::transcript::Transcript;
use proctor_record::verdict::Verdict;

use crate::check::Check;
use crate::printable::is_hidden;
use crate::suite::step::Action;
use crate::suite::{Case, Step};

/// The reason for an agent that did nothing: it would meet every check that only forbids something.
pub const SILENT: &str = "the agent gave no answer and made no calls";

/// The checks of one case.
#[derive(Debug, Clone, Copy)]
pub struct CaseChecks<'a> {
    pub assertions: &'a [Arc<Check>],
    pub verify: &'a [Step],
    /// Whether the case is a shipped eval, whose own grading comes first.
    pub is_shipped: bool,
}

impl<'a> CaseChecks<'a> {
    pub fn of(case: &'a Case) -> Self {
        Self {
            assertions: &case.checks,
            verify: &case.verify,
            is_shipped: case.shipped.is_some(),
        }
    }
}

/// What has to be decided next.
#[derive(Debug)]
pub enum NextCheck<'a> {
    /// The grading of the shipped eval: answer with [`Grading::shipped`].
    Shipped,
    /// An assertion: answer with [`Grading::evaluate`].
    Assertion,
    /// A verify step other than a judge's: answer with [`Grading::step`].
    Step(&'a Step),
    /// A verify step that a judge decides: answer with [`Grading::judged`].
    Judge(&'a Step),
    /// The trial is graded.
    End(TrialEnded),
}

/// The result of a verify step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepGrade {
    pub verdict: Verdict,
    /// The proven cause, if the step did not pass. The agent's fault is examined further.
    pub blame: Option<Blame>,
    /// Whether the next step runs: the step passed, or is allowed to fail.
    pub goes_on: bool,
    /// The numbers of the calls that the step names as evidence.
    pub evidence: Vec<u64>,
    /// Texts that explain the verdict, such as a score.
    pub notes: Vec<String>,
}

/// A judge's verdict on a verify step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeGrade {
    pub verdict: Verdict,
    /// The numbers of the calls that the judge quotes.
    pub evidence: Vec<u64>,
    pub notes: Vec<String>,
}

/// The grading of one trial. [`Grading::next_check`] stays at a check until it has its verdict, so a check
/// can't be left out.
#[derive(Debug)]
pub struct Grading<'a> {
    checks: CaseChecks<'a>,
    folded: &'a FoldedTrial,
    is_silent: bool,
    tally: CheckTally,
    stage: Stage,
}

/// The next check, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Shipped,
    Assertion(usize),
    Step(usize),
    Judge(usize),
    End,
}

impl<'a> Grading<'a> {
    /// Starts the grading of a trial with this answer.
    pub fn new(checks: CaseChecks<'a>, folded: &'a FoldedTrial, answer: &str) -> Self {
        Self {
            checks,
            folded,
            is_silent: is_blank(answer) && did_nothing(&folded.transcript),
            tally: CheckTally::default(),
            stage: if checks.is_shipped {
                Stage::Shipped
            } else {
                Stage::Assertion(0)
            },
        }
    }

    /// What has to be decided next.
    pub fn next_check(&mut self) -> NextCheck<'a> {
        loop {
            match self.stage {
                Stage::Shipped => return NextCheck::Shipped,
                Stage::Assertion(at) if at < self.checks.assertions.len() => {
                    return NextCheck::Assertion;
                }
                // A shipped eval has no steps, and a call alone can be its answer.
                Stage::Assertion(_) if self.checks.is_shipped => self.stage = Stage::End,
                Stage::Assertion(_) if self.is_silent => {
                    return NextCheck::End(ended(Outcome::Failed, Some(Blame::Agent), SILENT));
                }
                Stage::Assertion(_) => self.stage = Stage::Step(0),
                Stage::Step(at) => match self.checks.verify.get(at) {
                    Some(step) if is_judged(step) => self.stage = Stage::Step(at + 1),
                    Some(step) => return NextCheck::Step(step),
                    None => self.stage = Stage::Judge(0),
                },
                // The judge is asked only if no other check decides.
                Stage::Judge(_) if self.tally.has_failed() => self.stage = Stage::End,
                Stage::Judge(at) => match self.checks.verify.get(at) {
                    Some(step) if is_judged(step) => return NextCheck::Judge(step),
                    Some(_) => self.stage = Stage::Judge(at + 1),
                    None => self.stage = Stage::End,
                },
                Stage::End => return NextCheck::End(self.tally.end()),
            }
        }
    }

    /// Takes the grading of the shipped eval. `blame` is the proven cause if it did not pass.
    pub fn shipped(&mut self, main: &CheckEvaluated, blame: Option<Blame>) {
        self.tally.add(&main.check, &main.verdict, blame);
        self.stage = Stage::Assertion(0);
    }

    /// Evaluates the next assertion; `None` if another check is next.
    pub fn evaluate(&mut self) -> Option<CheckEvaluated> {
        let Stage::Assertion(at) = self.stage else {
            return None;
        };
        let check = self.checks.assertions.get(at)?;
        let result = check.evaluate(&self.folded.transcript);
        let blame = match result.verdict {
            Verdict::Unknown { .. } => Some(Blame::Infra),
            Verdict::Pass | Verdict::Fail { .. } => blame_for_failure(self.folded),
        };
        let name = check.name();
        self.tally.add(&name, &result.verdict, blame);
        self.stage = Stage::Assertion(at + 1);
        Some(CheckEvaluated {
            check: name.clone().into_owned(),
            id: Some(CheckId::Assertion(name.into_owned())),
            details: check.details(),
            verdict: result.verdict,
            evidence: result.evidence,
            notes: Vec::new(),
        })
    }

    /// Takes the result of the verify step that is next. The first failure ends the steps, unless the
    /// step is allowed to fail.
    pub fn step(&mut self, step: &Step, grade: StepGrade) -> CheckEvaluated {
        // A failed verify step is the agent's fault, if the record does not prove another cause.
        let blame = match grade.blame {
            Some(Blame::Agent) => blame_for_failure(self.folded),
            Some(Blame::Server | Blame::Suite | Blame::Judge | Blame::Infra) | None => grade.blame,
        };
        self.tally.add(&step.id, &grade.verdict, blame);
        let goes_on = grade.goes_on || grade.verdict == Verdict::Pass;
        self.stage = match self.stage {
            Stage::Step(at) if goes_on => Stage::Step(at + 1),
            Stage::Shipped
            | Stage::Assertion(_)
            | Stage::Step(_)
            | Stage::Judge(_)
            | Stage::End => Stage::Judge(0),
        };
        evaluated(step, grade.verdict, grade.evidence, grade.notes)
    }

    /// Takes the judge's verdict on the verify step that is next.
    pub fn judged(&mut self, step: &Step, grade: JudgeGrade) -> CheckEvaluated {
        let blame = match grade.verdict {
            Verdict::Unknown { .. } => Some(Blame::Judge),
            Verdict::Pass | Verdict::Fail { .. } => blame_for_failure(self.folded),
        };
        self.tally.add(&step.id, &grade.verdict, blame);
        if let Stage::Judge(at) = self.stage {
            self.stage = Stage::Judge(at + 1);
        }
        evaluated(step, grade.verdict, grade.evidence, grade.notes)
    }
}

/// The verdicts of a trial's checks so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckTally {
    passed: usize,
    failed: Vec<(Option<Blame>, String)>,
    unknown: Vec<(Option<Blame>, String)>,
}

impl CheckTally {
    /// Adds a verdict. `blame` is the proven cause of a verdict other than pass.
    pub(crate) fn add(&mut self, check: &str, verdict: &Verdict, blame: Option<Blame>) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail { reason } => self.failed.push((blame, format!("{check}: {reason}"))),
            Verdict::Unknown { reason } => {
                self.unknown.push((blame, format!("{check}: {reason}")));
            }
        }
    }

    fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    pub(crate) fn end(&self) -> TrialEnded {
        let more = |count: usize| match count {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        if let Some((blame, first)) = self.failed.first() {
            let reason = format!("{first}{}", more(self.failed.len()));
            return ended(Outcome::Failed, *blame, &reason);
        }
        if let Some((blame, first)) = self.unknown.first() {
            let reason = format!("{first}{}", more(self.unknown.len()));
            return ended(Outcome::Errored, *blame, &reason);
        }
        if self.passed == 0 {
            return ended(
                Outcome::Errored,
                Some(Blame::Suite),
                "no check was evaluated",
            );
        }
        TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        }
    }
}

/// Whether a text has no visible characters.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

/// Whether the agent did nothing that the record shows.
pub(crate) fn did_nothing(transcript: &Transcript) -> bool {
    transcript.calls.is_empty()
        && transcript.unread.is_empty()
        && transcript.skills.as_ref().is_none_or(Vec::is_empty)
        && transcript
            .selection
            .as_ref()
            .is_none_or(|choice| choice.calls.is_empty())
}

fn is_judged(step: &Step) -> bool {
    match &step.action {
        Action::Judge(_) => true,
        Action::Script(_) | Action::Http(_) | Action::CallTool(_) | Action::Extension { .. } => {
            false
        }
    }
}

fn evaluated(
    step: &Step,
    verdict: Verdict,
    evidence: Vec<u64>,
    notes: Vec<String>,
) -> CheckEvaluated {
    let id = step.id.clone();
    CheckEvaluated {
        check: step.id.clone(),
        id: Some(if is_judged(step) {
            CheckId::Judge(id)
        } else {
            CheckId::Step(id)
        }),
        details: vec![step.kind.clone()],
        verdict,
        evidence,
        notes,
    }
}

fn ended(outcome: Outcome, blame: Option<Blame>, reason: &str) -> TrialEnded {
    TrialEnded {
        outcome,
        reason: Some(reason.to_owned()),
        blame,
    }
}

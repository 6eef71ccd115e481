//! Grades a recorded trial again: new checks on an old record, without an agent.
//!
//! The main type is [`Regrading`]. It uses the [`Grading`] of live trials. What a record can't tell
//! is never a pass: a verify step that was added or changed since has no result, so it is unknown.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod changes;
mod comparison;
mod recorded;
mod result;
#[cfg(test)]
mod tests;

use proctor_record::event::{Blame, CheckEvaluated, CheckId, Outcome, TrialEnded};
use proctor_record::verdict::Verdict;

use crate::grading::{self, CaseChecks, Grading, JudgeGrade, NextCheck, StepGrade};
use crate::suite::Step;
use crate::suite::step::Action;

pub use self::changes::CheckChange;
pub use self::comparison::CaseComparison;
pub use self::recorded::RecordedTrial;
pub use self::result::{Basis, CheckGrade, GradedTrial, Origin, RegradeTotals};

/// The regrading of one trial.
pub struct Regrading<'a> {
    recorded: &'a RecordedTrial,
    comparison: &'a CaseComparison,
    checks: CaseChecks<'a>,
    grading: Grading<'a>,
    /// Whether a judge decides judge steps now, in place of the recorded verdicts.
    asks_judge: bool,
    grades: Vec<CheckGrade>,
    end: Option<TrialEnded>,
}

/// What a regrade needs next.
pub enum NextRegrade<'a> {
    /// A judge must decide this step: answer with [`Regrading::judged`].
    Judge(&'a Step),
    /// Everything is decided.
    Done,
}

impl<'a> Regrading<'a> {
    /// Starts the regrading of a trial with these checks.
    pub fn new(
        recorded: &'a RecordedTrial,
        checks: CaseChecks<'a>,
        comparison: &'a CaseComparison,
        asks_judge: bool,
    ) -> Self {
        Self {
            recorded,
            comparison,
            checks,
            grading: Grading::new(checks, &recorded.folded, &recorded.visible_answer()),
            asks_judge,
            grades: Vec::new(),
            end: None,
        }
    }

    /// Grades until a judge is needed.
    pub fn next_judge(&mut self) -> NextRegrade<'a> {
        if self.recorded.kept_end().is_some() {
            return NextRegrade::Done;
        }
        loop {
            match self.grading.next_check() {
                NextCheck::Shipped => self.shipped(),
                NextCheck::Assertion => {
                    let graded = self.grading.evaluate();
                    self.grades.extend(graded.map(|check| CheckGrade {
                        check,
                        origin: Origin::Evaluated,
                    }));
                }
                NextCheck::Step(step) => self.step(step),
                NextCheck::Judge(step) if self.asks_judge => return NextRegrade::Judge(step),
                NextCheck::Judge(step) => self.recorded_judge(step),
                NextCheck::End(ended) => {
                    self.end = Some(ended);
                    return NextRegrade::Done;
                }
            }
        }
    }

    /// Takes the verdict of the judge that was asked now.
    pub fn judged(&mut self, step: &Step, grade: JudgeGrade) {
        let check = self.grading.judged(step, grade);
        self.grades.push(CheckGrade {
            check,
            origin: Origin::Judged,
        });
    }

    /// The checks and the end of the trial; call it after [`NextRegrade::Done`].
    pub fn finish(self) -> (Vec<CheckGrade>, TrialEnded, Basis) {
        let recorded = self.recorded;
        if let Some((ended, why)) = recorded.kept_end() {
            let checks = recorded.folded.work.checks.iter().cloned();
            let kept = checks.map(|check| CheckGrade {
                check,
                origin: Origin::Recorded,
            });
            return (kept.collect(), ended, Basis::Kept(why));
        }
        let unusable = recorded
            .doubt()
            .or_else(|| self.comparison.other_task().map(str::to_owned));
        if let Some(reason) = unusable {
            return (
                self.grades,
                inconclusive(&reason),
                Basis::Inconclusive(reason),
            );
        }
        let ended = self
            .end
            .unwrap_or_else(|| inconclusive("the trial was not graded to its end"));
        let ended = recorded.with_recorded_reason(ended, &self.grades);
        (self.grades, ended, Basis::Regraded)
    }

    /// The grading of a shipped eval, which only the server's eval defines.
    fn shipped(&mut self) {
        let is_grading = |id: &CheckId| matches!(id, CheckId::Grading(_));
        let found = self.recorded.check(is_grading);
        let origin = if found.is_some() {
            Origin::Recorded
        } else {
            Origin::Missing
        };
        let check = found.cloned().unwrap_or_else(unrecorded_grading);
        let blame = self.recorded.blame_for(&check);
        self.grading.shipped(&check, blame);
        self.grades.push(CheckGrade { check, origin });
    }

    /// A verify step, whose result is the recorded one.
    fn step(&mut self, step: &Step) {
        let kept = self.comparison.step(self.checks.verify, step);
        let id = CheckId::Step(step.id.clone());
        let found = self.recorded.check(|known| *known == id);
        let (mut evidence, mut notes) = (Vec::new(), Vec::new());
        if let (Ok(()), Some(check)) = (&kept, found) {
            evidence.clone_from(&check.evidence);
            notes.clone_from(&check.notes);
        }
        let (verdict, blame, origin) = match (kept, found) {
            (Ok(()), Some(check)) => (
                check.verdict.clone(),
                self.recorded.blame_for(check),
                Origin::Recorded,
            ),
            (Ok(()), None) => {
                let reason = "the step did not run, so the record has no result of it";
                (
                    Verdict::unknown(reason),
                    Some(Blame::Suite),
                    Origin::Missing,
                )
            }
            (Err(reason), _) => (
                Verdict::unknown(reason),
                Some(Blame::Suite),
                Origin::Missing,
            ),
        };
        let grade = StepGrade {
            verdict,
            blame,
            goes_on: may_fail(step),
            evidence,
            notes,
        };
        let check = self.grading.step(step, grade);
        self.grades.push(CheckGrade { check, origin });
    }

    /// A verify step that a judge decided in the run.
    fn recorded_judge(&mut self, step: &Step) {
        let kept = self.comparison.step(self.checks.verify, step);
        let id = CheckId::Judge(step.id.clone());
        let found = self.recorded.check(|known| *known == id);
        let (grade, origin) = match (kept, found) {
            (Ok(()), Some(check)) => (
                JudgeGrade {
                    verdict: check.verdict.clone(),
                    evidence: check.evidence.clone(),
                    notes: check.notes.clone(),
                },
                Origin::Recorded,
            ),
            (Ok(()), None) => (unasked(self.recorded.judge_error()), Origin::Missing),
            (Err(reason), _) => (unasked(Some(&reason)), Origin::Missing),
        };
        let check = self.grading.judged(step, grade);
        self.grades.push(CheckGrade { check, origin });
    }
}

/// The grading of a shipped eval that the record lacks.
fn unrecorded_grading() -> CheckEvaluated {
    let name = "grading".to_owned();
    CheckEvaluated {
        check: name.clone(),
        id: Some(CheckId::Grading(name)),
        details: Vec::new(),
        verdict: Verdict::unknown("the record has no result of the eval's own grading"),
        evidence: Vec::new(),
        notes: Vec::new(),
    }
}

/// The verdict on a step that no judge decided.
fn unasked(reason: Option<&str>) -> JudgeGrade {
    let reason = reason.unwrap_or("no judge was asked in the run; ask one with `--judge`");
    JudgeGrade {
        verdict: Verdict::unknown(reason),
        evidence: Vec::new(),
        notes: Vec::new(),
    }
}

fn may_fail(step: &Step) -> bool {
    match &step.action {
        Action::Script(script) => script.continue_on_error,
        Action::Http(_) | Action::Judge(_) | Action::CallTool(_) | Action::Extension { .. } => {
            false
        }
    }
}

/// The end of a trial that the record can't decide.
pub fn inconclusive(reason: &str) -> TrialEnded {
    TrialEnded {
        outcome: Outcome::Errored,
        reason: Some(reason.to_owned()),
        blame: None,
    }
}

/// The outcome that the recorded verdicts lead to. If the trial ended differently, something else
/// than its checks decided it.
fn recorded_conclusion(checks: &[CheckEvaluated]) -> TrialEnded {
    let mut tally = grading::CheckTally::default();
    for check in checks {
        tally.add(&check.check, &check.verdict, None);
    }
    tally.end()
}

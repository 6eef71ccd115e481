//! The result of regrading a trial.
//!
//! The main type is [`GradedTrial`], a line of a grades file.

use proctor_record::tool_choice::ToolChoice;
use serde::{Deserialize, Serialize};

use proctor_record::event::{CheckEvaluated, Outcome, TrialEnded};

use super::CheckChange;

/// Where the verdict of a check comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Evaluated again on the record.
    Evaluated,
    /// Kept as recorded: it can't be evaluated on a record, such as the result of a script.
    Recorded,
    /// A judge was asked again.
    Judged,
    /// The record has no result, so the verdict is unknown.
    Missing,
}

/// A check with its new verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckGrade {
    #[serde(flatten)]
    pub check: CheckEvaluated,
    pub origin: Origin,
}

/// What the new outcome of a trial is based on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The checks.
    Regraded,
    /// The recorded outcome, which checks can't change, and why.
    Kept(String),
    /// The record can't tell the outcome, and why.
    Inconclusive(String),
    /// The trial did not run or did not end.
    NotRun,
}

/// A trial with its recorded and its new outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GradedTrial {
    /// The case, as the plan identifies it.
    pub case: String,
    /// The case, as reports name it.
    pub name: String,
    pub agent: String,
    /// The number of the trial among those of its case and agent, from one.
    pub repeat: u32,
    /// The name of its file under `trials/`.
    pub file: Option<String>,
    /// The recorded end; `None` if the record has none.
    pub before: Option<TrialEnded>,
    /// The new end; `None` if the trial did not run.
    pub after: Option<TrialEnded>,
    pub basis: Basis,
    pub checks: Vec<CheckGrade>,
    /// The checks whose verdict changed.
    pub changes: Vec<CheckChange>,
    /// What the checks expect of a selection trial, and what was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Box<ToolChoice>>,
}

impl GradedTrial {
    /// Whether the outcome is not the recorded one.
    pub fn is_changed(&self) -> bool {
        outcome(self.before.as_ref()) != outcome(self.after.as_ref())
    }

    /// Whether the trial is inconclusive since the record has no result of a check.
    pub fn lacks_results(&self) -> bool {
        let is_missing = |check: &CheckGrade| check.origin == Origin::Missing;
        self.outcome() == Some(Outcome::Errored) && self.checks.iter().any(is_missing)
    }

    /// The new outcome.
    pub fn outcome(&self) -> Option<Outcome> {
        outcome(self.after.as_ref())
    }
}

fn outcome(ended: Option<&TrialEnded>) -> Option<Outcome> {
    ended.map(|ended| ended.outcome)
}

/// The number of trials by the result of a regrade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegradeTotals {
    pub trials: u64,
    /// Trials whose outcome is not the recorded one.
    pub changed: u64,
    /// Trials whose recorded outcome checks can't change.
    pub kept: u64,
    /// Trials that the record can't decide.
    pub inconclusive: u64,
    /// Trials that did not run or did not end.
    pub not_run: u64,
    /// Trials in which a verify step or a judge's verdict is kept as recorded.
    pub with_recorded_checks: u64,
}

impl RegradeTotals {
    pub fn add(&mut self, graded: &GradedTrial) {
        self.trials += 1;
        self.changed += u64::from(graded.is_changed());
        let is_recorded = |check: &CheckGrade| match check.origin {
            Origin::Recorded => true,
            Origin::Evaluated | Origin::Judged | Origin::Missing => false,
        };
        match &graded.basis {
            Basis::Regraded if graded.lacks_results() => self.inconclusive += 1,
            Basis::Regraded => {
                let has_recorded = graded.checks.iter().any(is_recorded);
                self.with_recorded_checks += u64::from(has_recorded);
            }
            Basis::Kept(_) => self.kept += 1,
            Basis::Inconclusive(_) => self.inconclusive += 1,
            Basis::NotRun => self.not_run += 1,
        }
    }
}

//! One trial of a summary.

use std::time::Duration;

use crate::event::{Blame, Outcome};
use crate::fold::ModelActivity;
use crate::index::Attempt;
use crate::model::Usage;
use crate::record::PART;
use crate::tool_choice::ToolChoice;
use crate::verdict::Verdict;

/// The result of a planned trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSummary {
    /// The number of the trial among those of its case and agent, from one.
    pub repeat: u32,
    /// The number of recorded attempts, ended or not.
    pub attempts: u32,
    /// The result of the latest attempt that ended; `None` if none did.
    pub result: Option<TrialResult>,
}

/// The result of one attempt at a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// The name of its file under `trials/`.
    pub file: String,
    /// The number of the attempt, from one.
    pub attempt: u32,
    pub outcome: Outcome,
    /// The blame, if the trial failed or errored and the record proves it.
    pub blame: Option<Blame>,
    /// The reason, unless the trial passed.
    pub reason: Option<String>,
    /// The first check that failed, or else the first unknown one.
    pub decisive: Option<Box<UnmetCheck>>,
    pub duration: Duration,
    /// The choice of a selection trial.
    pub selection: Option<Box<ToolChoice>>,
    pub agent: ModelSpending,
    pub judge: ModelSpending,
    /// The folder of the trial, if it was kept.
    pub kept_folder: Option<Box<str>>,
}

/// A check that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetCheck {
    /// The check's key in a suite file, or the id of the verify step.
    pub check: String,
    /// Never `Pass`: those checks are left out.
    pub verdict: Verdict,
}

/// What a model used for one purpose in a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelSpending {
    /// The number of replies.
    pub turns: u32,
    /// The token usage of the replies, as far as known.
    pub usage: Usage,
    /// The number of replies that did not report their token usage.
    pub unmetered: u32,
    /// The cost in US dollars; `None` if the price of any reply is unknown.
    pub cost_usd: Option<f64>,
}

impl TrialSummary {
    /// A trial without any attempt.
    pub(super) fn not_run(repeat: u32) -> Self {
        Self {
            repeat,
            attempts: 0,
            result: None,
        }
    }

    /// The outcome; `None` if the trial has not ended.
    pub fn outcome(&self) -> Option<Outcome> {
        self.result.as_ref().map(|result| result.outcome)
    }

    /// Adds another attempt. The latest one that ended counts.
    pub(super) fn take(&mut self, attempt: u32, result: Option<TrialResult>) {
        self.attempts += 1;
        let is_later = self
            .result
            .as_ref()
            .is_none_or(|so_far| so_far.attempt < attempt);
        if is_later && result.is_some() {
            self.result = result;
        }
    }
}

impl From<&ModelActivity> for ModelSpending {
    fn from(asked: &ModelActivity) -> Self {
        Self {
            turns: asked.turns,
            usage: asked.usage,
            unmetered: asked.unmetered,
            cost_usd: asked.cost_usd,
        }
    }
}

impl TrialResult {
    /// A result of which only the outcome is known.
    pub(super) fn ended(outcome: Outcome) -> Self {
        let nothing = ModelSpending::from(&ModelActivity::default());
        Self {
            file: String::new(),
            attempt: 1,
            outcome,
            blame: None,
            reason: None,
            decisive: None,
            duration: Duration::ZERO,
            selection: None,
            agent: nothing,
            judge: nothing,
            kept_folder: None,
        }
    }

    /// The result of an attempt in a file; `None` if it has not ended.
    pub(super) fn of(file: &str, attempt: u32, result: &Attempt) -> Option<Self> {
        // The rename ends a trial: the outcome in a `.part` file does not count.
        let ended = result.ended.as_ref().filter(|_| !file.ends_with(PART))?;
        let decisive = result.decisive().map(|check| UnmetCheck {
            check: check.check.clone(),
            verdict: check.verdict.clone(),
        });
        Some(Self {
            file: file.to_owned(),
            attempt,
            outcome: ended.outcome,
            blame: ended.blame,
            reason: ended.reason.clone(),
            decisive: decisive.map(Box::new),
            duration: result.duration,
            selection: result.selection.clone(),
            agent: ModelSpending::from(&result.agent),
            judge: ModelSpending::from(&result.judge),
            kept_folder: result.kept_folder.as_deref().map(Box::from),
        })
    }
}

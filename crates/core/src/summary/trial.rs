//! One trial of a summary.

use std::time::Duration;

use crate::event::{Blame, Outcome};
use crate::fold::ModelActivity;
use crate::index::Attempt;
use crate::model::Usage;
use crate::record::PART;
use crate::verdict::Verdict;

/// What came of a planned trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSummary {
    /// Which of the case's trials by its agent, from one.
    pub repeat: u32,
    /// How many attempts at it were recorded, ended or not.
    pub attempts: u32,
    /// What its latest attempt that ended came to; `None` if none did.
    pub result: Option<TrialResult>,
}

/// What an attempt at a trial came to.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// The name of its file under `trials/`.
    pub file: String,
    /// Which attempt it is, from one.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Whose fault it is, if it failed or could not be told.
    pub blame: Option<Blame>,
    /// Why, unless it passed.
    pub reason: Option<String>,
    /// The first check that failed; else the first that could not tell.
    pub decisive: Option<Box<UnmetCheck>>,
    /// From its start to its end.
    pub duration: Duration,
    /// What the agent's model took.
    pub agent: ModelSpending,
    /// What the judge took.
    pub judge: ModelSpending,
}

/// A check that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetCheck {
    /// The check's key in a suite file, or the id of the verify step.
    pub check: String,
    /// Its answer: a failure, or unknown.
    pub verdict: Verdict,
}

/// What a model took for one purpose in a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelSpending {
    /// How often it replied.
    pub turns: u32,
    /// How many tokens that took, as far as the replies tell.
    pub usage: Usage,
    /// How many replies do not tell.
    pub unmetered: u32,
    /// What it cost in US dollars; `None` if the price of any reply is unknown.
    pub cost_usd: Option<f64>,
}

impl TrialSummary {
    /// Nothing came of it yet.
    pub(super) fn not_run(repeat: u32) -> Self {
        Self {
            repeat,
            attempts: 0,
            result: None,
        }
    }

    /// How it ended; `None` if it did not.
    pub fn outcome(&self) -> Option<Outcome> {
        self.result.as_ref().map(|result| result.outcome)
    }

    /// Takes in another attempt. The latest that ended counts.
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
    /// What an attempt in a file came to; `None` if it did not end.
    pub(super) fn of(file: &str, attempt: u32, came_to: &Attempt) -> Option<Self> {
        // The rename is the end: what a `.part` says of itself does not count.
        let ended = came_to.ended.as_ref().filter(|_| !file.ends_with(PART))?;
        let decisive = came_to.decisive().map(|check| UnmetCheck {
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
            duration: came_to.duration,
            agent: ModelSpending::from(&came_to.agent),
            judge: ModelSpending::from(&came_to.judge),
        })
    }
}

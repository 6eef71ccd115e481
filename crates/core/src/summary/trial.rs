//! One trial of a summary.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use proctor_record::event::{Blame, Outcome, TrialEnded};
use proctor_record::fold::ModelActivity;
use proctor_record::index::Attempt;
use proctor_record::model::Usage;
use proctor_record::record::{ENDED, trial_stem};
use proctor_record::tool_choice::ToolChoice;
use proctor_record::verdict::Verdict;

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
///
/// A run may have a hundred thousand of them in memory, so trials share what they have in common (`SharedResults`).
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// In microseconds, as in the record.
    duration: u64,
    spent: Arc<TrialSpending>,
    end: Arc<AttemptEnd>,
}

/// How an attempt at a trial ended. Most trials of a case share it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptEnd {
    pub(super) file: TrialFileName,
    /// The number of the attempt, from one.
    pub attempt: u32,
    pub outcome: Outcome,
    /// The blame, if the trial failed or errored and the record proves it.
    pub blame: Option<Blame>,
    /// The reason, unless the trial passed.
    pub reason: Option<String>,
    /// The first check that failed, or else the first unknown one.
    pub decisive: Option<Box<UnmetCheck>>,
    /// The choice of a selection trial.
    pub selection: Option<Box<ToolChoice>>,
    /// The folder of the trial, if it was kept.
    pub kept_folder: Option<Box<str>>,
}

/// The name of a trial's file under `trials/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TrialFileName {
    /// The name that Proctor gives to the file of a trial of this `case:agent`.
    Usual(Arc<str>),
    Other(Box<str>),
}

/// What the models of a trial used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrialSpending {
    agent: ModelSpending,
    /// `None` if the judge's model was not asked.
    judge: Option<Box<ModelSpending>>,
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

    /// The name of the file of its result under `trials/`; `None` if the trial has not ended.
    pub fn file(&self) -> Option<String> {
        let end = &self.result.as_ref()?.end;
        Some(end.file.text(self.repeat, end.attempt))
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

impl TrialFileName {
    /// The name for a trial of `case:agent` whose file is `file`.
    pub(super) fn new(file: &str, trial: &Arc<str>, repeat: u32, attempt: u32) -> Self {
        let usual = Self::Usual(trial.clone());
        if usual.text(repeat, attempt) == file {
            usual
        } else {
            Self::Other(file.into())
        }
    }

    fn text(&self, repeat: u32, attempt: u32) -> String {
        match self {
            Self::Usual(trial) => {
                format!(
                    "{}.{attempt}{ENDED}",
                    trial_stem(&format!("{trial}:{repeat}"))
                )
            }
            Self::Other(file) => file.to_string(),
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

impl ModelSpending {
    /// No request.
    const NOTHING: Self = Self {
        turns: 0,
        usage: Usage {
            input: None,
            output: None,
            cached: None,
            cache_written: None,
            reasoning: None,
        },
        unmetered: 0,
        cost_usd: Some(0.0),
    };
}

impl TrialSpending {
    pub(super) fn of(attempt: &Attempt) -> Self {
        let judge = ModelSpending::from(&attempt.judge);
        Self {
            agent: ModelSpending::from(&attempt.agent),
            judge: (judge != ModelSpending::NOTHING).then(|| Box::new(judge)),
        }
    }

    /// Whoever is equal has the same hash.
    pub(super) fn hash(&self, hasher: &RandomState) -> u64 {
        let ModelSpending {
            turns,
            usage,
            unmetered,
            cost_usd,
        } = self.agent;
        let tokens = [usage.input, usage.output, usage.cached, usage.reasoning];
        // Zero has two forms, which are equal.
        let cost = cost_usd.filter(|cost| *cost != 0.0).map(f64::to_bits);
        let judge = self.judge.as_ref().map(|judge| judge.usage.input);
        hasher.hash_one((turns, tokens, unmetered, cost, judge))
    }
}

impl AttemptEnd {
    /// The end of an attempt in a file; `None` if it has not ended.
    pub(super) fn of(file: TrialFileName, attempt: u32, result: &Attempt) -> Option<Self> {
        let ended = result.ended.as_ref()?;
        let decisive = result.decisive().map(|check| UnmetCheck {
            check: check.check.clone(),
            verdict: check.verdict.clone(),
        });
        Some(Self {
            file,
            attempt,
            outcome: ended.outcome,
            blame: ended.blame,
            reason: ended.reason.clone(),
            decisive: decisive.map(Box::new),
            selection: result.selection.clone(),
            kept_folder: result.kept_folder.as_deref().map(Box::from),
        })
    }

    /// Whoever is equal has the same hash.
    pub(super) fn hash(&self, hasher: &RandomState) -> u64 {
        let (file, reason, kept) = (&self.file, &self.reason, &self.kept_folder);
        hasher.hash_one((file, self.attempt, self.outcome, self.blame, reason, kept))
    }
}

impl Deref for TrialResult {
    type Target = AttemptEnd;

    fn deref(&self) -> &AttemptEnd {
        &self.end
    }
}

impl TrialResult {
    pub(super) fn new(duration: Duration, spent: Arc<TrialSpending>, end: Arc<AttemptEnd>) -> Self {
        Self {
            duration: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            spent,
            end,
        }
    }

    /// A result without times and spending.
    pub fn of_end(ended: &TrialEnded, file: String, selection: Option<Box<ToolChoice>>) -> Self {
        let spent = TrialSpending {
            agent: ModelSpending::NOTHING,
            judge: None,
        };
        let end = AttemptEnd {
            file: TrialFileName::Other(file.into()),
            attempt: 1,
            outcome: ended.outcome,
            blame: ended.blame,
            reason: ended.reason.clone(),
            decisive: None,
            selection,
            kept_folder: None,
        };
        Self::new(Duration::ZERO, Arc::new(spent), Arc::new(end))
    }

    /// A result that a check decided.
    #[cfg(test)]
    pub(crate) fn of_check(ended: &TrialEnded, decisive: Option<Box<UnmetCheck>>) -> Self {
        let mut result = Self::of_end(ended, "a.1.jsonl".to_owned(), None);
        result.end_mut().decisive = decisive;
        result
    }

    /// Whether both results are in memory once, except for the duration.
    #[cfg(test)]
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spent, &other.spent) && Arc::ptr_eq(&self.end, &other.end)
    }

    #[cfg(test)]
    pub(crate) fn end_mut(&mut self) -> &mut AttemptEnd {
        Arc::make_mut(&mut self.end)
    }

    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.duration)
    }

    pub(crate) fn micros(&self) -> u64 {
        self.duration
    }

    /// What the agent's model used.
    pub fn agent(&self) -> &ModelSpending {
        &self.spent.agent
    }

    /// What the judge's model used.
    pub fn judge(&self) -> &ModelSpending {
        self.spent
            .judge
            .as_deref()
            .unwrap_or(&ModelSpending::NOTHING)
    }
}

//! What every question to a model goes through: the budget, the record, and patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proctor_core::event::Purpose;
use proctor_core::model::{Reply, Request};

use super::{Model, ModelError};
use crate::recorder::Recorder;

/// A model, as one trial asks it.
#[derive(Clone)]
pub struct Asker {
    /// The model.
    pub model: Arc<Model>,
    /// For whom it is asked.
    pub purpose: Purpose,
    /// What the run has spent, and may spend.
    pub meter: Arc<Meter>,
    /// The trial's record.
    pub recorder: Recorder,
    /// The time that the trial spends waiting for its turn.
    pub waiting: Waiting,
}

/// A reply, and what it cost.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The reply.
    pub reply: Reply,
    /// In US dollars, if the price is known.
    pub cost_usd: Option<f64>,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    /// The run's budget is spent.
    #[error("{0}")]
    Budget(String),
    /// The model gave none, however often it was asked.
    #[error("{error}{}", if *.attempts > 1 { format!(" (asked {attempts} times)") } else { String::new() })]
    Model {
        /// The last answer.
        error: ModelError,
        /// How often it was asked.
        attempts: u32,
    },
}

/// What a run has spent, and may spend.
#[derive(Debug, Default)]
pub struct Meter {}

/// How long a trial has waited for rate limits and outages: no working time.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<AtomicU64>);

impl Waiting {
    /// Says that a wait begins, before it does: whoever watches the clock must know.
    pub fn add(&self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::Relaxed);
    }

    /// How long in all.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

impl Asker {
    /// Asks, again where that helps.
    pub async fn ask(&self, request: &Request) -> Result<Asked, AskError> {
        match self.model.ask(request).await {
            Ok(reply) => Ok(Asked {
                reply,
                cost_usd: None,
            }),
            Err(error) => Err(AskError::Model { error, attempts: 1 }),
        }
    }
}

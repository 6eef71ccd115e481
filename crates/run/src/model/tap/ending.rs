//! What the tap counts, and when it has a reason to end the trial.
//!
//! Its main type is [`Standing`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::event::Purpose;
use proctor_core::model::Reply;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::{Meter, ModelError};
use crate::agent::LoopLimits;

/// How long a provider that can't be reached, or is not well, is waited for.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long one is waited for that asks for patience.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// Why the tap ends a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TapEnd {
    /// The trial came to one of its limits.
    Limit(String),
    /// The run's budget is spent.
    Budget(String),
    /// The model is not there, or not for this key, or the record has no reply.
    Dead(String),
}

impl fmt::Display for TapEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Limit(why) | Self::Budget(why) | Self::Dead(why)) = self;
        f.write_str(why)
    }
}

/// What a trial has taken, and may.
pub(super) struct Standing {
    limits: LoopLimits,
    meter: Arc<Meter>,
    taken: Arc<Mutex<Taken>>,
    end: Arc<watch::Sender<Option<TapEnd>>>,
}

#[derive(Debug, Default)]
struct Taken {
    turns: u32,
    tokens: u64,
    cost_usd: f64,
    /// How many replies came, whatever they were for.
    replies: u32,
    /// Since when nothing but failures came.
    failing: Option<Instant>,
    /// Why the last question of the task has no reply, if it has none.
    lost: Option<ModelError>,
}

impl Standing {
    pub(super) fn new(limits: LoopLimits, meter: Arc<Meter>) -> Self {
        Self {
            limits,
            meter,
            taken: Arc::default(),
            end: Arc::new(watch::Sender::new(None)),
        }
    }

    pub(super) async fn ended(&self) -> TapEnd {
        let mut end = self.end.subscribe();
        let why = end.wait_for(Option::is_some).await.ok();
        let why = why.and_then(|why| why.clone());
        match why {
            Some(why) => why,
            // The sender lives as long as this.
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_over(&self) -> Option<TapEnd> {
        self.end.borrow().clone()
    }

    /// Why the last question of the task has no reply, if it has none.
    pub(super) fn lost(&self) -> Option<ModelError> {
        self.lock().lost.clone()
    }

    /// Whether any question had a reply.
    pub(super) fn has_replies(&self) -> bool {
        self.lock().replies > 0
    }

    #[cfg(test)]
    pub(super) fn turns(&self) -> u32 {
        self.lock().turns
    }

    /// Counts a question; says why it may not be asked, if it may not.
    pub(super) fn begin(&self, purpose: Purpose) -> Option<TapEnd> {
        if let Err(spent) = self.meter.check() {
            return Some(self.end(TapEnd::Budget(spent.to_string())));
        }
        let mut taken = self.lock();
        if purpose == Purpose::Agent {
            if self.limits.turns.is_some_and(|limit| taken.turns >= limit) {
                let turns = taken.turns;
                drop(taken);
                let why = format!("the agent was not done after {turns} turns");
                return Some(self.end(TapEnd::Limit(why)));
            }
            taken.turns += 1;
        }
        drop(taken);
        self.overdrawn()
    }

    /// Counts a reply, and gives what it cost.
    pub(super) fn replied(&self, purpose: Purpose, model: &str, reply: &Reply) -> Option<f64> {
        let cost = self.meter.charge(purpose, model, &reply.usage);
        let mut taken = self.lock();
        taken.failing = None;
        taken.replies += 1;
        if purpose == Purpose::Agent {
            taken.lost = None;
        }
        taken.tokens += reply.usage.total();
        taken.cost_usd += cost.unwrap_or(0.0);
        cost
    }

    /// Counts a failure. One that does not pass by waiting ends the trial; others do when they last.
    pub(super) fn failed(&self, purpose: Purpose, error: &ModelError) {
        if purpose == Purpose::Agent {
            let mut taken = self.lock();
            // What passes by waiting is asked again, and that is the same turn.
            taken.turns -= u32::from(passes(error) && taken.turns > 0);
            taken.lost = Some(error.clone());
        }
        let patience = match error {
            ModelError::Key { .. } => Duration::ZERO,
            ModelError::Replay { .. } if purpose == Purpose::Agent => Duration::ZERO,
            ModelError::Unavailable { .. } | ModelError::TimedOut { .. } => PATIENCE,
            ModelError::RateLimited { .. } => LONG_PATIENCE,
            // The agent's own affair: it is told, and may do better.
            _ => return,
        };
        let why = TapEnd::Dead(error.to_string());
        if patience.is_zero() {
            self.end(why);
            return;
        }
        let since = *self.lock().failing.get_or_insert_with(Instant::now);
        let (taken, end) = (Arc::downgrade(&self.taken), Arc::downgrade(&self.end));
        tokio::spawn(async move {
            tokio::time::sleep_until(since + patience).await;
            let (Some(taken), Some(end)) = (taken.upgrade(), end.upgrade()) else {
                return;
            };
            let failing = taken.lock().unwrap_or_else(PoisonError::into_inner).failing;
            if failing == Some(since) {
                first(&end, &why);
            }
        });
    }

    /// What was taken beyond the trial's limits.
    fn overdrawn(&self) -> Option<TapEnd> {
        let taken = self.lock();
        let tokens = self.limits.tokens.filter(|limit| taken.tokens >= *limit);
        let cost = self
            .limits
            .cost_usd
            .filter(|limit| taken.cost_usd >= *limit);
        let why = match (tokens, cost) {
            (Some(limit), _) => format!("{} tokens of {limit} are used", taken.tokens),
            (_, Some(limit)) => format!("${:.4} of ${limit} are spent", taken.cost_usd),
            (None, None) => return None,
        };
        drop(taken);
        Some(self.end(TapEnd::Limit(why)))
    }

    /// Ends the trial; the first reason stays.
    fn end(&self, why: TapEnd) -> TapEnd {
        first(&self.end, &why);
        self.is_over().unwrap_or(why)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a failure is none of the question's.
fn passes(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::RateLimited { .. }
            | ModelError::Unavailable { .. }
            | ModelError::TimedOut { .. }
            | ModelError::Malformed { .. }
    )
}

/// Gives a reason, unless there is one.
fn first(end: &watch::Sender<Option<TapEnd>>, why: &TapEnd) {
    end.send_if_modified(|end| {
        let is_first = end.is_none();
        end.get_or_insert_with(|| why.clone());
        is_first
    });
}

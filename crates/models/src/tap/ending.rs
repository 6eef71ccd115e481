//! What the tap counts, and when it has a reason to end the trial.
//!
//! Its main type is [`TapLimits`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::duration::brief;
use proctor_core::event::Purpose;
use proctor_core::model::Reply;
use proctor_core::provider::Provider;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::{Meter, ModelError, RetryWait};
use crate::LoopLimits;

/// How long a provider that can't be reached, or is not well, is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long one is waited for that asks for patience.
const LONG_PATIENCE: Duration = Duration::from_mins(1);

/// How many replies in a row may be malformed. Some agents ask again without end.
const MALFORMED: u32 = 5;

/// Why the tap ends a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapEnd {
    /// The trial came to one of its limits.
    Limit(String),
    /// The run's budget is spent.
    Budget(String),
    /// A limit on what the trial costs can't be kept.
    Unpriced(String),
    /// The model is not there, or not for this key, or the record has no reply.
    Dead(String),
}

impl fmt::Display for TapEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Limit(why) | Self::Budget(why) | Self::Unpriced(why) | Self::Dead(why)) = self;
        f.write_str(why)
    }
}

/// What a trial has taken, and may.
pub(super) struct TapLimits {
    limits: LoopLimits,
    meter: Arc<Meter>,
    /// The time that a provider asks for is no working time.
    waiting: RetryWait,
    taken: Arc<Mutex<TapUsage>>,
    end: Arc<watch::Sender<Option<TapEnd>>>,
}

#[derive(Debug, Default)]
struct TapUsage {
    turns: u32,
    tokens: u64,
    cost_usd: f64,
    /// How many replies came, whatever they were for.
    replies: u32,
    /// Since nothing but failures came.
    failing: Option<FailureStreak>,
    /// How many malformed replies came in a row to questions of the task.
    malformed: u32,
    /// Why the last question of the task has no reply, if it has none.
    lost: Option<ModelError>,
}

/// A row of failures.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FailureStreak {
    /// Since when, without the time that the provider asked for.
    since: Instant,
    /// Until when it wants to be left alone.
    until: Instant,
    /// How long it asked for in all.
    asked: Duration,
    /// How long it is put up with: as long as its most hopeful one is.
    patience: Duration,
}

impl FailureStreak {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            until: now,
            asked: Duration::ZERO,
            patience: Duration::ZERO,
        }
    }

    /// Takes a wait that is asked for, and gives what it adds: questions that are put off together wait
    /// together, and no row of failures is waited for without end.
    fn put_off(&mut self, now: Instant, wait: Duration, longest: Duration) -> Duration {
        let added = (now + wait).saturating_duration_since(self.until.max(now));
        let added = added.min(longest.saturating_sub(self.asked));
        self.until = self.until.max(now) + added;
        self.since += added;
        self.asked += added;
        added
    }
}

impl TapLimits {
    pub(super) fn new(limits: LoopLimits, meter: Arc<Meter>, waiting: RetryWait) -> Self {
        Self {
            limits,
            meter,
            waiting,
            taken: Arc::default(),
            end: Arc::new(watch::Sender::new(None)),
        }
    }

    pub async fn ended(&self) -> TapEnd {
        let mut end = self.end.subscribe();
        let why = end.wait_for(Option::is_some).await.ok();
        let why = why.and_then(|why| why.clone());
        match why {
            Some(why) => why,
            // The sender lives as long as this.
            None => std::future::pending().await,
        }
    }

    pub fn is_over(&self) -> Option<TapEnd> {
        self.end.borrow().clone()
    }

    /// Why the last question of the task has no reply, if it has none.
    pub(super) fn unanswered(&self) -> Option<ModelError> {
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
    pub fn begin(&self, purpose: Purpose) -> Option<TapEnd> {
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
        self.beyond(|used, limit| used >= limit)
    }

    /// Counts a reply, and gives what it cost.
    pub(super) fn replied(&self, purpose: Purpose, model: &str, reply: &Reply) -> Option<f64> {
        let cost = self.meter.charge(purpose, model, &reply.usage);
        let mut taken = self.lock();
        taken.failing = None;
        taken.replies += 1;
        if purpose == Purpose::Agent {
            taken.lost = None;
            taken.malformed = 0;
        }
        taken.tokens = taken.tokens.saturating_add(reply.usage.total());
        taken.cost_usd += cost.unwrap_or(0.0);
        drop(taken);
        // What a script says to a question beside the task takes nothing.
        let is_free = purpose == Purpose::Side && Provider::Scripted.serves(model);
        let is_known = is_free || reply.usage.is_known();
        if let (Some(limit), false) = (self.limits.tokens, is_known) {
            self.end(TapEnd::Unpriced(format!(
                "a limit of {limit} tokens can't be enforced: `{model}` did not report its token usage"
            )));
        }
        if let (Some(limit), None) = (self.limits.cost_usd, cost) {
            self.end(TapEnd::Unpriced(format!(
                "a limit of ${limit} can't be kept: what `{model}` costs is unknown"
            )));
        }
        // Even what is done can be too much.
        self.beyond(|used, limit| used > limit);
        cost
    }

    /// Counts a failure. One that does not pass by waiting ends the trial; others do when they last.
    pub(super) fn failed(&self, purpose: Purpose, error: &ModelError) {
        if purpose == Purpose::Agent {
            let mut taken = self.lock();
            // What passes by waiting is asked again, and that is the same turn.
            taken.turns -= u32::from(passes(error) && taken.turns > 0);
            taken.lost = Some(error.clone());
            let is_malformed = matches!(error, ModelError::Malformed { .. });
            taken.malformed += u32::from(is_malformed);
            let replies = taken.malformed;
            drop(taken);
            if is_malformed && replies >= MALFORMED {
                let why = format!("{error} ({replies} replies in a row)");
                self.end(TapEnd::Dead(why));
                return;
            }
        }
        let longest = self.meter.patience().longest_asked;
        let (patience, wait) = match error {
            ModelError::Key { .. } | ModelError::Replay { .. } if purpose == Purpose::Agent => {
                (Duration::ZERO, None)
            }
            ModelError::Unavailable { retry_after, .. } => (PATIENCE, *retry_after),
            ModelError::TimedOut { .. } => (PATIENCE, None),
            ModelError::RateLimited { retry_after, .. } => (LONG_PATIENCE, *retry_after),
            // The agent's own affair: it is told, and may do better.
            _ => return,
        };
        let mut why = error.to_string();
        if let Some(asked) = wait.filter(|asked| *asked > longest) {
            let (asked, longest) = (brief(asked), brief(longest));
            why.push_str(&format!(
                " (asks for {asked}; no more than {longest} is waited)"
            ));
            self.end(TapEnd::Dead(why));
        } else if patience.is_zero() {
            self.end(TapEnd::Dead(why));
        } else {
            let failing = self.put_off(wait.unwrap_or_default(), longest, patience);
            self.give_up(failing, TapEnd::Dead(why));
        }
    }

    /// Leaves the provider alone as long as it asks, and tells the trial's clock.
    fn put_off(&self, wait: Duration, longest: Duration, patience: Duration) -> FailureStreak {
        let now = Instant::now();
        let mut taken = self.lock();
        let failing = taken.failing.get_or_insert_with(|| FailureStreak::new(now));
        failing.patience = failing.patience.max(patience);
        self.waiting.add(failing.put_off(now, wait, longest));
        *failing
    }

    /// Ends the trial when failures have lasted, unless something came meanwhile.
    fn give_up(&self, failing: FailureStreak, why: TapEnd) {
        let (taken, end) = (Arc::downgrade(&self.taken), Arc::downgrade(&self.end));
        tokio::spawn(async move {
            tokio::time::sleep_until(failing.since + failing.patience).await;
            let (Some(taken), Some(end)) = (taken.upgrade(), end.upgrade()) else {
                return;
            };
            let now = taken.lock().unwrap_or_else(PoisonError::into_inner).failing;
            if now == Some(failing) {
                first(&end, &why);
            }
        });
    }

    /// What was taken beyond the trial's limits, in the words of the built-in loop.
    fn beyond(&self, is_beyond: fn(f64, f64) -> bool) -> Option<TapEnd> {
        #[expect(clippy::cast_precision_loss, reason = "nobody uses 2^53 tokens")]
        let count = |tokens: u64| tokens as f64;
        let (used, cost) = {
            let taken = self.lock();
            (taken.tokens, taken.cost_usd)
        };
        let tokens = self.limits.tokens;
        let tokens = tokens.filter(|limit| is_beyond(count(used), count(*limit)));
        let dollars = self.limits.cost_usd;
        let why = match (tokens, dollars.filter(|limit| is_beyond(cost, *limit))) {
            (Some(limit), _) => format!("the agent used {used} tokens of {limit}"),
            (_, Some(limit)) => format!("the agent cost ${cost:.4} of ${limit}"),
            (None, None) => return None,
        };
        Some(self.end(TapEnd::Limit(why)))
    }

    /// Ends the trial; the first reason stays.
    fn end(&self, why: TapEnd) -> TapEnd {
        first(&self.end, &why);
        self.is_over().unwrap_or(why)
    }

    fn lock(&self) -> MutexGuard<'_, TapUsage> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn those_who_are_put_off_together_wait_together() {
        let now = Instant::now();
        let longest = 120 * SECOND;
        let mut failing = FailureStreak::new(now);
        assert_eq!(failing.put_off(now, 10 * SECOND, longest), 10 * SECOND);
        assert_eq!(
            failing.put_off(now + SECOND, 10 * SECOND, longest),
            SECOND,
            "the rest is waited for already"
        );
        assert_eq!(failing.put_off(now, SECOND, longest), Duration::ZERO);
        assert_eq!(failing.since, now + 11 * SECOND);
        let later = now + 30 * SECOND;
        assert_eq!(failing.put_off(later, 5 * SECOND, longest), 5 * SECOND);
    }

    #[test]
    fn no_row_of_failures_is_waited_for_without_end() {
        let mut now = Instant::now();
        let mut failing = FailureStreak::new(now);
        let mut waited = Duration::ZERO;
        for _ in 0..1000 {
            waited += failing.put_off(now, SECOND, 120 * SECOND);
            now += SECOND;
        }
        assert_eq!(waited, 120 * SECOND);
        assert!(failing.since + LONG_PATIENCE < now);
    }
}

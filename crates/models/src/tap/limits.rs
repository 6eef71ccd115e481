//! The counters and limits of the model tap.
//!
//! The main type is [`TapLimits`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::provider::Provider;
use proctor_record::duration::brief;
use proctor_record::event::Purpose;
use proctor_record::model::Reply;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::{Meter, ModelError, RetryWait};
use crate::LoopLimits;

/// How long an unavailable provider is tolerated.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long rate limiting by a provider is tolerated.
const LONG_PATIENCE: Duration = Duration::from_mins(1);

/// The maximum number of malformed replies in a row. Some agents retry forever.
const MALFORMED: u32 = 5;

/// Why the tap ends a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapEnd {
    /// The trial reached one of its limits.
    Limit(String),
    /// The run's budget is spent.
    Budget(String),
    /// A limit of the trial can't be enforced, since the usage or the price is unknown.
    Unpriced(String),
    /// The model is unavailable, rejected the key, or has no recorded reply.
    Dead(String),
}

impl fmt::Display for TapEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Limit(why) | Self::Budget(why) | Self::Unpriced(why) | Self::Dead(why)) = self;
        f.write_str(why)
    }
}

/// Counts the model use of a trial and enforces its limits.
pub(super) struct TapLimits {
    limits: LoopLimits,
    meter: Arc<Meter>,
    /// The wait that a provider asks for, which does not count as working time.
    waiting: RetryWait,
    taken: Arc<Mutex<TapUsage>>,
    end: Arc<watch::Sender<Option<TapEnd>>>,
}

#[derive(Debug, Default)]
struct TapUsage {
    turns: u32,
    tokens: u64,
    cost_usd: f64,
    /// The number of replies to all requests, side calls included.
    replies: u32,
    /// The failures since the last reply.
    failing: Option<FailureStreak>,
    /// The number of malformed replies in a row, side calls excluded.
    malformed: u32,
    /// Why the last request for the task has no reply, if so.
    lost: Option<ModelError>,
}

/// Failures in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FailureStreak {
    /// The start, moved by the waits that the provider asked for.
    since: Instant,
    /// The end of the wait that the provider asked for.
    until: Instant,
    /// The total wait that the provider asked for.
    asked: Duration,
    /// How long the failures are tolerated: the longest time of any of them.
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

    /// Adds a requested wait, and returns by how much it extends the current one. Waits of
    /// concurrent requests overlap, and the total wait is limited.
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
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    pub fn is_over(&self) -> Option<TapEnd> {
        self.end.borrow().clone()
    }

    /// Why the last request for the task has no reply, if so.
    pub(super) fn unanswered(&self) -> Option<ModelError> {
        self.lock().lost.clone()
    }

    /// Whether any request had a reply.
    pub(super) fn has_replies(&self) -> bool {
        self.lock().replies > 0
    }

    #[cfg(test)]
    pub(super) fn turns(&self) -> u32 {
        self.lock().turns
    }

    /// Counts a request. Returns the reason if it is not allowed.
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

    /// Counts a reply, and returns its cost.
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
        // A script's reply to a side call uses no tokens.
        let is_free = purpose == Purpose::Side && Provider::Scripted.serves(model);
        let is_known = is_free || reply.usage.is_known();
        if let (Some(limit), false) = (self.limits.tokens, is_known) {
            self.end(TapEnd::Unpriced(format!(
                "can't enforce the limit of {limit} tokens: `{model}` did not report its token usage"
            )));
        }
        if let (Some(limit), None) = (self.limits.cost_usd, cost) {
            self.end(TapEnd::Unpriced(format!(
                "can't enforce the limit of ${limit}: the price of `{model}` is unknown"
            )));
        }
        // A completed reply can exceed a limit too.
        self.beyond(|used, limit| used > limit);
        cost
    }

    /// Counts a failure. A permanent one ends the trial at once; others do so when they last.
    pub(super) fn failed(&self, purpose: Purpose, error: &ModelError) {
        if purpose == Purpose::Agent {
            let mut taken = self.lock();
            // The agent retries after a temporary failure, which is the same turn.
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
            // The agent gets the error and can react.
            _ => return,
        };
        let mut why = error.to_string();
        if let Some(asked) = wait.filter(|asked| *asked > longest) {
            let (asked, longest) = (brief(asked), brief(longest));
            why.push_str(&format!(
                " (asked to wait {asked}; the maximum wait is {longest})"
            ));
            self.end(TapEnd::Dead(why));
        } else if patience.is_zero() {
            self.end(TapEnd::Dead(why));
        } else {
            let failing = self.put_off(wait.unwrap_or_default(), longest, patience);
            self.give_up(failing, TapEnd::Dead(why));
        }
    }

    /// Extends the wait that the provider asks for, and the trial's waiting time.
    fn put_off(&self, wait: Duration, longest: Duration, patience: Duration) -> FailureStreak {
        let now = Instant::now();
        let mut taken = self.lock();
        let failing = taken.failing.get_or_insert_with(|| FailureStreak::new(now));
        failing.patience = failing.patience.max(patience);
        self.waiting.add(failing.put_off(now, wait, longest));
        *failing
    }

    /// Ends the trial when failures last too long, unless a reply comes first.
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

    /// The limit that the trial exceeds, with the same message as the built-in loop.
    fn beyond(&self, is_beyond: fn(f64, f64) -> bool) -> Option<TapEnd> {
        #[expect(clippy::cast_precision_loss, reason = "token counts stay below 2^53")]
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

    /// Ends the trial. Only the first reason counts.
    fn end(&self, why: TapEnd) -> TapEnd {
        first(&self.end, &why);
        self.is_over().unwrap_or(why)
    }

    fn lock(&self) -> MutexGuard<'_, TapUsage> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a failure is temporary, so that a retry can succeed.
fn passes(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::RateLimited { .. }
            | ModelError::Unavailable { .. }
            | ModelError::TimedOut { .. }
            | ModelError::Malformed { .. }
    )
}

/// Stores a reason, unless there is one already.
fn first(end: &watch::Sender<Option<TapEnd>>, why: &TapEnd) {
    end.send_if_modified(|end| {
        let is_first = end.is_none();
        end.get_or_insert_with(|| why.clone());
        is_first
    });
}

#[cfg(test)]
mod tests;

//! How many requests a run sends to a provider at once, which adapts to the provider's rate limits.
//!
//! The main type is [`Pace`], one per provider account. There is no limit until the provider refuses a request for its
//! rate or load. Then the limit is half of the open requests, and grows by one with each window of replies, as in
//! TCP. A refusal changes only when requests are sent: the asker retries the request as after any other failure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::ModelError;

/// Who sends requests to which host. Providers limit the requests of an account, not of a model or a trial.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProviderAccount {
    /// The host and port, or the name of a model without a host.
    pub(crate) host: String,
    /// A digest of the key.
    pub(crate) key: Option<u64>,
}

/// The paces of all providers of a run.
#[derive(Debug, Default)]
pub(crate) struct Paces(Mutex<HashMap<ProviderAccount, Arc<Pace>>>);

impl Paces {
    pub(crate) fn of(&self, account: ProviderAccount) -> Arc<Pace> {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paces.entry(account).or_default().clone()
    }
}

/// The pace of the requests to one provider.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    state: Mutex<PaceState>,
    /// Wakes one waiting request. Every request that leaves room for another one passes it on.
    room: Notify,
}

#[derive(Debug, Default)]
struct PaceState {
    /// The maximum number of open requests; `None` before the first refusal.
    limit: Option<usize>,
    open: usize,
    /// How often the limit was reduced. Requests that were sent before the last time say nothing about the new limit.
    cuts: u64,
    /// The replies since the limit changed.
    replies: usize,
    /// The end of the wait that the provider asked for.
    resume: Option<Instant>,
}

impl PaceState {
    fn has_room(&self) -> bool {
        self.limit.is_none_or(|limit| self.open < limit)
    }
}

/// The right to send one request. Dropping it lets another one go.
#[derive(Debug)]
pub(crate) struct PacePermit {
    pace: Arc<Pace>,
    cuts: u64,
}

impl Pace {
    /// Returns a permit, unless the request has to wait.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<PacePermit> {
        let mut state = self.lock();
        if !state.has_room() || state.resume.is_some_and(|at| at > Instant::now()) {
            return None;
        }
        state.open += 1;
        let (cuts, has_room) = (state.cuts, state.has_room());
        drop(state);
        if has_room {
            self.room.notify_one();
        }
        Some(PacePermit {
            pace: self.clone(),
            cuts,
        })
    }

    /// Waits until the request may be sent.
    pub(crate) async fn enter(self: &Arc<Self>) -> PacePermit {
        loop {
            // Begins before the attempt, so that no signal in between is lost.
            let room = self.room.notified();
            if let Some(permit) = self.try_enter() {
                return permit;
            }
            let resume = self.lock().resume.filter(|at| *at > Instant::now());
            match resume {
                Some(at) => tokio::time::sleep_until(at).await,
                None => room.await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PacePermit {
    /// Ends a request with a reply: after a window of them, one more request may be open.
    pub(crate) fn replied(self) {
        let mut state = self.pace.lock();
        let Some(limit) = state.limit else { return };
        // A limit that is not used up says nothing about a higher one.
        if state.open < limit || self.cuts != state.cuts {
            return;
        }
        state.replies += 1;
        if state.replies >= limit {
            state.limit = Some(limit + 1);
            state.replies = 0;
        }
    }

    /// Ends a request with an error. If the provider refused it, fewer requests may be open. If the provider asks for
    /// a wait of at most `longest`, no other request is sent before its end.
    pub(crate) fn failed(self, error: &ModelError, longest: Duration) {
        let Some(asked) = refused(error) else { return };
        let mut state = self.pace.lock();
        if let Some(asked) = asked.filter(|asked| *asked <= longest) {
            let until = Instant::now() + asked;
            state.resume = Some(state.resume.map_or(until, |at| at.max(until)));
            // From now on they wait for the time instead, also if the one that the next signal wakes is cancelled.
            self.pace.room.notify_waiters();
        }
        if self.cuts != state.cuts {
            return;
        }
        state.limit = Some((state.open / 2).max(1));
        state.cuts += 1;
        state.replies = 0;
    }
}

impl Drop for PacePermit {
    fn drop(&mut self) {
        let mut state = self.pace.lock();
        state.open -= 1;
        let has_room = state.has_room();
        drop(state);
        if has_room {
            self.pace.room.notify_one();
        }
    }
}

/// The wait that the provider asks for, if it refused a request for its rate or load.
#[expect(clippy::option_option, reason = "a refusal may come without a wait")]
fn refused(error: &ModelError) -> Option<Option<Duration>> {
    match error {
        ModelError::RateLimited { retry_after, .. }
        | ModelError::Unavailable {
            retry_after,
            is_overload: true,
            ..
        } => Some(*retry_after),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test.
    const LONG: Duration = Duration::from_hours(1);

    fn limited(retry_after: Option<Duration>) -> ModelError {
        ModelError::RateLimited {
            retry_after,
            detail: String::new(),
        }
    }

    fn refuse(permit: PacePermit) {
        permit.failed(&limited(None), LONG);
    }

    /// As many permits as the pace gives without a wait, at most `most`.
    fn fill(pace: &Arc<Pace>, most: usize) -> Vec<PacePermit> {
        (0..most).map_while(|_| pace.try_enter()).collect()
    }

    #[test]
    fn a_refusal_halves_the_open_requests_once_per_wave() {
        let pace = Arc::<Pace>::default();
        let mut open = fill(&pace, 16);
        assert_eq!(open.len(), 16, "no limit before the first refusal");
        for _ in 0..12 {
            refuse(open.pop().expect("an open request"));
        }
        assert_eq!(fill(&pace, 16).len(), 4, "4 of 8 are still open");
        drop(open);
        let mut open = fill(&pace, 16);
        assert_eq!(open.len(), 8);
        refuse(open.pop().expect("an open request"));
        drop(open);
        assert_eq!(fill(&pace, 16).len(), 4);
    }

    #[test]
    fn at_least_one_request_goes() {
        let pace = Arc::<Pace>::default();
        for _ in 0..5 {
            let permit = pace.try_enter().expect("one request is always allowed");
            refuse(permit);
        }
        assert_eq!(fill(&pace, 16).len(), 1);
    }

    #[test]
    fn a_window_of_replies_allows_one_more() {
        let pace = Arc::<Pace>::default();
        let mut open = fill(&pace, 8);
        refuse(open.pop().expect("an open request"));
        for permit in open {
            // Sent before the limit, so they say nothing about it.
            permit.replied();
        }
        for limit in [4, 5, 6] {
            for _ in 0..limit {
                let mut open = fill(&pace, 16);
                assert_eq!(open.len(), limit);
                open.pop().expect("an open request").replied();
            }
        }
        for _ in 0..100 {
            pace.try_enter().expect("the limit is 7").replied();
        }
        assert_eq!(fill(&pace, 16).len(), 7, "the limit was not used up");
    }

    #[test]
    fn other_failures_leave_the_pace_alone() {
        let detail = String::new;
        let outage = |retry_after, is_overload| ModelError::Unavailable {
            retry_after,
            is_overload,
            detail: detail(),
        };
        for error in [
            outage(None, false),
            ModelError::TimedOut { after: LONG },
            ModelError::Malformed { detail: detail() },
            ModelError::Key { detail: detail() },
        ] {
            let pace = Arc::<Pace>::default();
            let mut open = fill(&pace, 8);
            open.pop().expect("an open request").failed(&error, LONG);
            assert_eq!(fill(&pace, 8).len(), 8, "{error:?}");
        }
        let pace = Arc::<Pace>::default();
        let mut open = fill(&pace, 8);
        let overload = outage(None, true);
        open.pop().expect("an open request").failed(&overload, LONG);
        drop(open);
        assert_eq!(fill(&pace, 8).len(), 4);
    }

    #[test]
    fn a_wait_that_the_provider_asks_for_holds_all_requests() {
        let pace = Arc::<Pace>::default();
        let mut open = fill(&pace, 8);
        let permit = open.pop().expect("an open request");
        permit.failed(&limited(Some(LONG)), Duration::from_mins(2));
        drop(open);
        assert_eq!(fill(&pace, 8).len(), 4, "longer than Proctor ever waits");
        let permit = pace.try_enter().expect("room");
        permit.failed(&limited(Some(Duration::from_mins(1))), LONG);
        assert!(pace.try_enter().is_none());
    }

    #[test]
    fn a_waiting_request_goes_when_another_ends_or_is_cancelled() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let pace = Arc::<Pace>::default();
            refuse(pace.try_enter().expect("room"));
            let only = pace.try_enter().expect("room");
            let enter = |pace: &Arc<Pace>| {
                let pace = pace.clone();
                tokio::spawn(async move { pace.enter().await })
            };
            let (first, second, third) = (enter(&pace), enter(&pace), enter(&pace));
            tokio::task::yield_now().await;
            assert!(!first.is_finished());
            first.abort();
            // The room goes to the second, which passes it on at its end.
            drop(only);
            drop(second.await.expect("the second request goes"));
            drop(third.await.expect("the third request goes"));
        });
    }
}

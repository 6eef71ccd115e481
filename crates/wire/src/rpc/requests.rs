//! The pending requests of a connection, and the outcome of past ones.
//!
//! Its main type is [`Requests`]. Ids are never reused, and all waits end with the connection.

use std::collections::BTreeMap;

use proctor_record::message::Id;

/// How many past ids are remembered, to tell late and duplicate responses from unknown ones.
pub(crate) const REMEMBERED: usize = 10_000;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerClose {
    /// The other side closed it.
    Closed,
    /// The other side does not read.
    Stuck,
    Broken(String),
    /// This side closed it.
    ByUs,
}

/// Why a request is no longer pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastRequest {
    /// The response arrived in time.
    Answered,
    /// The response took too long, or can't arrive any more.
    GivenUp,
    /// The caller cancelled it, so a late response is not a finding.
    Unwanted,
}

/// The requests of one side of a connection, each with its waiter.
#[derive(Debug)]
pub struct Requests<T> {
    last: u64,
    waiting: BTreeMap<u64, T>,
    past: BTreeMap<u64, PastRequest>,
    ended: Option<PeerClose>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self {
            last: 0,
            waiting: BTreeMap::new(),
            past: BTreeMap::new(),
            ended: None,
        }
    }
}

impl<T> Requests<T> {
    /// Allocates an id. After the end of the connection, the waiter is dropped.
    pub fn open(&mut self, waiter: T) -> u64 {
        self.last += 1;
        if self.ended.is_none() {
            self.waiting.insert(self.last, waiter);
        }
        self.last
    }

    /// Removes a pending request, and remembers its outcome.
    pub fn close(&mut self, id: u64, how: PastRequest) -> Option<T> {
        let waiter = self.waiting.remove(&id)?;
        self.past.insert(id, how);
        while self.past.len() > REMEMBERED {
            self.past.pop_first();
        }
        Some(waiter)
    }

    /// Removes the request of a response; otherwise returns the outcome of the request.
    pub fn answered(&mut self, id: Option<u64>) -> Result<T, Option<PastRequest>> {
        let waiter = id.and_then(|id| self.close(id, PastRequest::Answered));
        waiter.ok_or_else(|| id.and_then(|id| self.past(id)))
    }

    /// Returns the waiter of a pending request.
    pub fn waiter(&self, id: u64) -> Option<&T> {
        self.waiting.get(&id)
    }

    /// Returns the waiters of all pending requests.
    pub fn waiters(&self) -> impl Iterator<Item = &T> {
        self.waiting.values()
    }

    /// Returns the pending request, if there is only one.
    pub fn only(&self) -> Option<u64> {
        let mut ids = self.waiting.keys();
        let first = ids.next().copied();
        first.filter(|_| ids.next().is_none())
    }

    /// Returns the outcome of a request that is no longer pending.
    pub fn past(&self, id: u64) -> Option<PastRequest> {
        self.past.get(&id).copied()
    }

    /// Returns the request of a response. An id of `null` means that the other side could not parse
    /// the request: then it is the only pending one.
    pub fn meant(&self, id: &Id) -> Option<u64> {
        match id {
            Id::Value(id) => id.parse().ok(),
            Id::Absent => self.only(),
        }
    }

    /// Marks the connection as ended, and drops all waiters. Only the first reason is stored.
    pub fn end(&mut self, how: PeerClose) {
        self.ended.get_or_insert(how);
        while let Some((&id, _)) = self.waiting.first_key_value() {
            self.close(id, PastRequest::GivenUp);
        }
    }

    /// Returns how the connection ended, if it has.
    pub fn ended(&self) -> Option<&PeerClose> {
        self.ended.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_drops_all_waiters_and_keeps_the_first_reason() {
        let mut requests = Requests::default();
        assert_eq!((requests.open("a"), requests.open("b")), (1, 2));
        requests.end(PeerClose::Broken("first".to_owned()));
        requests.end(PeerClose::Closed);
        assert_eq!(
            requests.ended(),
            Some(&PeerClose::Broken("first".to_owned()))
        );
        assert_eq!(requests.waiters().count(), 0);
        assert_eq!(requests.answered(Some(1)), Err(Some(PastRequest::GivenUp)));
        assert_eq!(requests.open("c"), 3);
        assert_eq!(requests.answered(Some(3)), Err(None));
    }

    #[test]
    fn a_response_without_id_belongs_to_the_only_pending_request() {
        let mut requests = Requests::default();
        let nameless = Id::Absent;
        assert_eq!(requests.meant(&nameless), None);
        let one = requests.open(());
        assert_eq!(requests.meant(&nameless), Some(one));
        let two = requests.open(());
        assert_eq!(requests.meant(&nameless), None);
        assert_eq!(requests.close(one, PastRequest::Unwanted), Some(()));
        assert_eq!(requests.meant(&nameless), Some(two));
        assert_eq!(requests.meant(&Id::Value("\"2\"".to_owned())), None);
    }

    #[test]
    fn past_requests_are_remembered_up_to_a_limit() {
        let mut requests = Requests::default();
        for _ in 0..=REMEMBERED {
            let id = requests.open(());
            assert_eq!(requests.answered(Some(id)), Ok(()));
        }
        assert_eq!(requests.answered(Some(1)), Err(None));
        assert_eq!(requests.answered(Some(2)), Err(Some(PastRequest::Answered)));
    }
}

//! Which requests wait for an answer, and what became of the others.
//!
//! Its main type is [`Requests`]. An id is used once, and when the connection ends, so does every wait.

use std::collections::BTreeMap;

use proctor_core::message::Id;

/// How many ids are remembered for telling late and double answers from unknown ones.
pub(crate) const REMEMBERED: usize = 10_000;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerClose {
    /// The other side closed it.
    Closed,
    /// The other side does not read.
    Stuck,
    /// It broke.
    Broken(String),
    /// Whoever opened it closed it.
    ByUs,
}

/// Why a request does not wait any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastRequest {
    /// Its answer came.
    Answered,
    /// Its answer took too long, or can't come any more.
    GivenUp,
    /// Whoever asked has gone: an answer is nobody's fault.
    Unwanted,
}

/// The requests of one side of a connection, each with what waits for its answer.
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
    /// Takes a new id. After the end of the connection nothing waits: the waiter is dropped.
    pub fn open(&mut self, waiter: T) -> u64 {
        self.last += 1;
        if self.ended.is_none() {
            self.waiting.insert(self.last, waiter);
        }
        self.last
    }

    /// Takes out a request that waits, and remembers what became of it.
    pub fn close(&mut self, id: u64, how: PastRequest) -> Option<T> {
        let waiter = self.waiting.remove(&id)?;
        self.past.insert(id, how);
        while self.past.len() > REMEMBERED {
            self.past.pop_first();
        }
        Some(waiter)
    }

    /// Takes out the request that an answer is for, or says what became of it.
    pub fn answered(&mut self, id: Option<u64>) -> Result<T, Option<PastRequest>> {
        let waiter = id.and_then(|id| self.close(id, PastRequest::Answered));
        waiter.ok_or_else(|| id.and_then(|id| self.past(id)))
    }

    /// What waits for the answer to a request.
    pub fn waiter(&self, id: u64) -> Option<&T> {
        self.waiting.get(&id)
    }

    /// All that waits.
    pub fn waiters(&self) -> impl Iterator<Item = &T> {
        self.waiting.values()
    }

    /// The request that waits, if it is the only one.
    pub fn only(&self) -> Option<u64> {
        let mut ids = self.waiting.keys();
        let first = ids.next().copied();
        first.filter(|_| ids.next().is_none())
    }

    /// What became of a request that does not wait any more.
    pub fn past(&self, id: u64) -> Option<PastRequest> {
        self.past.get(&id).copied()
    }

    /// The request that an answer means. Who could not read a request can't name it: then only one that
    /// waits alone can be meant.
    pub fn meant(&self, id: &Id) -> Option<u64> {
        match id {
            Id::Value(id) => id.parse().ok(),
            Id::Absent => self.only(),
        }
    }

    /// Notes the end of the connection, and drops all that waits. The first reason stays.
    pub fn end(&mut self, how: PeerClose) {
        self.ended.get_or_insert(how);
        while let Some((&id, _)) = self.waiting.first_key_value() {
            self.close(id, PastRequest::GivenUp);
        }
    }

    /// How the connection ended, if it has.
    pub fn ended(&self) -> Option<&PeerClose> {
        self.ended.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_ends_every_wait_and_its_first_reason_stays() {
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
    fn a_nameless_answer_means_the_only_request_that_waits() {
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
    fn what_became_of_a_request_is_remembered_but_not_for_ever() {
        let mut requests = Requests::default();
        for _ in 0..=REMEMBERED {
            let id = requests.open(());
            assert_eq!(requests.answered(Some(id)), Ok(()));
        }
        assert_eq!(requests.answered(Some(1)), Err(None));
        assert_eq!(requests.answered(Some(2)), Err(Some(PastRequest::Answered)));
    }
}

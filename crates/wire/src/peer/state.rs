//! Which requests wait, which did, and whose they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use proctor_core::message::Id;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::failure::Outcome;
use crate::recorder::Tap;

/// How many ids are remembered for telling late and double answers from unknown ones.
const REMEMBERED: usize = 10_000;

#[derive(Default)]
pub(super) struct State {
    pub(super) next_id: u64,
    pub(super) pending: BTreeMap<u64, Pending>,
    /// Ids that were answered, or given up. They keep no record open.
    past: BTreeMap<u64, (Past, Weak<Tap>)>,
    /// A question for the era that was given up, and has no answer yet.
    pub(super) late_probe: Option<u64>,
}

pub(super) struct Pending {
    pub(super) to: oneshot::Sender<Outcome>,
    pub(super) progress: watch::Sender<Instant>,
    /// Where the answer belongs.
    pub(super) tap: Arc<Tap>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Past {
    Answered,
    GivenUp,
    /// Whoever asked has gone: an answer is nobody's fault.
    Unwanted,
}

impl State {
    /// Takes out a request that waits, and remembers what became of it.
    pub(super) fn take(&mut self, id: u64, how: Past) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.past.insert(id, (how, Arc::downgrade(&pending.tap)));
        while self.past.len() > REMEMBERED {
            self.past.pop_first();
        }
        Some(pending)
    }

    /// Lets nobody wait any longer.
    pub(super) fn give_up_all(&mut self) {
        while let Some((&id, _)) = self.pending.first_key_value() {
            self.take(id, Past::GivenUp);
        }
    }

    /// What became of a request that does not wait any more.
    pub(super) fn past(&self, id: u64) -> Option<Past> {
        self.past.get(&id).map(|(how, _)| *how)
    }

    /// The request that waits, if it is the only one.
    pub(super) fn only_pending(&self) -> Option<u64> {
        let mut ids = self.pending.keys();
        let first = ids.next().copied();
        first.filter(|_| ids.next().is_none())
    }

    /// The request that an answer means. On HTTP, `own` is the one that it came in response to.
    pub(super) fn meant(&self, id: &Id, own: Option<u64>) -> Option<u64> {
        match id {
            Id::Value(id) => id.parse().ok(),
            // A server that could not read a request can't name it. Only one can be meant.
            Id::Absent => own.or(self.late_probe).or_else(|| self.only_pending()),
        }
    }

    /// Where what concerns a request belongs, unless that is gone.
    pub(super) fn tap(&self, id: u64) -> Option<Arc<Tap>> {
        let pending = self.pending.get(&id).map(|pending| pending.tap.clone());
        pending.or_else(|| self.past.get(&id)?.1.upgrade())
    }
}

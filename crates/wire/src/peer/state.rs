//! Which requests wait, which did, and whose they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use proctor_core::message::Id;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::failure::RequestOutcome;
use crate::recorder::ConnectionTap;
use crate::rpc::{REMEMBERED, Requests};

#[derive(Default)]
pub(super) struct PeerState {
    pub(super) requests: Requests<PendingResponse>,
    /// Whose the last requests are. They keep no record open.
    owners: BTreeMap<u64, Weak<ConnectionTap>>,
    /// A question for the era that was given up, and has no answer yet.
    pub(super) late_probe: Option<u64>,
}

pub(super) struct PendingResponse {
    pub(super) to: oneshot::Sender<RequestOutcome>,
    pub(super) progress: watch::Sender<Instant>,
    /// Where the answer belongs.
    pub(super) tap: Arc<ConnectionTap>,
}

impl PeerState {
    pub(super) fn open(&mut self, pending: PendingResponse) -> u64 {
        let tap = Arc::downgrade(&pending.tap);
        let id = self.requests.open(pending);
        self.owners.insert(id, tap);
        if self.owners.len() > REMEMBERED {
            self.owners.pop_first();
        }
        id
    }

    /// The request that an answer means. On HTTP, `own` is the one that it came in response to.
    pub(super) fn meant(&self, id: &Id, own: Option<u64>) -> Option<u64> {
        let nameless = own.or(self.late_probe).filter(|_| *id == Id::Absent);
        nameless.or_else(|| self.requests.meant(id))
    }

    /// Where what concerns a request belongs, unless that is gone.
    pub(super) fn tap(&self, id: u64) -> Option<Arc<ConnectionTap>> {
        let pending = self.requests.waiter(id);
        let pending = pending.map(|pending| pending.tap.clone());
        pending.or_else(|| self.owners.get(&id)?.upgrade())
    }
}

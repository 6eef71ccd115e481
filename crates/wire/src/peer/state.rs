//! The pending and past requests of a connection, and their owners.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use proctor_record::message::Id;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::failure::RequestOutcome;
use crate::recorder::ConnectionTap;
use crate::rpc::{REMEMBERED, Requests};

#[derive(Default)]
pub(super) struct PeerState {
    pub(super) requests: Requests<PendingResponse>,
    /// The owners of recent requests. Weak, so that they keep no record open.
    owners: BTreeMap<u64, Weak<ConnectionTap>>,
    /// A probe of the era that timed out, and has no response yet.
    pub(super) late_probe: Option<u64>,
}

pub(super) struct PendingResponse {
    pub(super) to: oneshot::Sender<RequestOutcome>,
    pub(super) progress: watch::Sender<Instant>,
    /// The record of the response.
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

    /// Returns the request that a response belongs to. On HTTP, `own` is the request of the
    /// exchange.
    pub(super) fn meant(&self, id: &Id, own: Option<u64>) -> Option<u64> {
        let nameless = own.or(self.late_probe).filter(|_| *id == Id::Absent);
        nameless.or_else(|| self.requests.meant(id))
    }

    /// Returns the tap of a request, if it still exists.
    pub(super) fn tap(&self, id: u64) -> Option<Arc<ConnectionTap>> {
        let pending = self.requests.waiter(id);
        let pending = pending.map(|pending| pending.tap.clone());
        pending.or_else(|| self.owners.get(&id)?.upgrade())
    }
}

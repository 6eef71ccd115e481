//! Decides which record a message belongs to if several share a connection.
//!
//! A response and progress belong to the record of their request. Any other message belongs to its
//! source: on HTTP the exchange, on a shared stream the record of the connection. The bytes are
//! parsed only for this decision, so malformed messages are recorded like others. A batch with
//! responses for several records goes unchanged into each of them, because a part of it was never
//! sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proctor_record::event::Direction;
use proctor_record::message::{Message, MessageKind};

use super::{PROGRESS, Peer, progress_token};
use crate::recorder::{ConnectionTap, OversizedMessage};
use crate::worker;

/// The source of a message.
#[derive(Clone, Copy)]
pub(crate) struct MessageSource<'a> {
    /// The record of a message that belongs to no request.
    pub(crate) tap: &'a Arc<ConnectionTap>,
    /// The HTTP exchange that delivered the message.
    pub(crate) exchange: Option<u64>,
    /// The request of that exchange.
    pub(crate) own: Option<u64>,
}

/// The possible receivers of a message that exceeds the size limit.
pub(super) struct CutRoute {
    /// The taps of all pending requests, or the source of the message.
    pub(super) taps: Vec<Arc<ConnectionTap>>,
    /// The request that it answers, if there is only one candidate.
    pub(super) meant: Option<u64>,
}

impl Peer {
    /// Records a message where it belongs, before it is parsed further.
    pub(crate) fn record(&self, bytes: &[u8], from: &MessageSource<'_>) {
        // Without attached records, parsing it here would be wasted.
        if !self.is_shared.load(Ordering::Acquire) {
            return from.tap.frame(from.exchange, Direction::ToClient, bytes);
        }
        for tap in self.taps_of(bytes, from) {
            tap.frame(from.exchange, Direction::ToClient, bytes);
        }
    }

    /// Returns the taps of all messages in a batch.
    pub(super) fn taps_of(
        &self,
        bytes: &[u8],
        from: &MessageSource<'_>,
    ) -> Vec<Arc<ConnectionTap>> {
        let mut taps = Vec::new();
        // A malformed message stays with its source.
        let _ = worker::each_message(bytes, &mut |message| {
            add(&mut taps, &self.tap_of(message, from));
        });
        if taps.is_empty() {
            taps.push(from.tap.clone());
        }
        taps
    }

    /// Returns the tap of a message and of its findings.
    pub(super) fn tap_of(
        &self,
        message: &Message<'_>,
        from: &MessageSource<'_>,
    ) -> Arc<ConnectionTap> {
        let state = self.lock();
        let request = match message.kind() {
            MessageKind::Answer { id } => state.meant(&id, from.own),
            MessageKind::Notification { method: PROGRESS } => {
                message.params.and_then(progress_token)
            }
            _ => None,
        };
        let tap = request.and_then(|id| state.tap(id));
        tap.unwrap_or_else(|| from.tap.clone())
    }

    /// Returns the possible receivers of a message of which only the start is known.
    pub(super) fn route_of_cut(
        &self,
        cut: &OversizedMessage,
        from: &MessageSource<'_>,
    ) -> CutRoute {
        let mut taps = Vec::new();
        let mut meant = None;
        let answers = memchr::memmem::find(&cut.head, b"\"method\"").is_none();
        if answers && from.own.is_some() {
            meant = from.own;
        } else if answers {
            let state = self.lock();
            meant = state.requests.only();
            for pending in state.requests.waiters() {
                add(&mut taps, &pending.tap);
            }
        }
        if taps.is_empty() {
            taps.push(from.tap.clone());
        }
        CutRoute { taps, meant }
    }
}

fn add(taps: &mut Vec<Arc<ConnectionTap>>, tap: &Arc<ConnectionTap>) {
    if !taps.iter().any(|known| Arc::ptr_eq(known, tap)) {
        taps.push(tap.clone());
    }
}

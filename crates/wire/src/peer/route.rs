//! Which record a message belongs to, where several share a connection.
//!
//! An answer, and progress, go where their request is; all else where it came from, which on HTTP
//! is the exchange, and on a stream that all share the connection's own record. What is looked at
//! here is looked at only for this: bytes that make no sense are recorded like others. A batch of
//! answers to several goes whole to each, since a part of it never went over the wire.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proctor_core::event::Direction;
use proctor_core::message::{Message, MessageKind};

use super::{PROGRESS, Peer, progress_token};
use crate::recorder::{ConnectionTap, OversizedMessage};
use crate::worker;

/// Where a message came from.
#[derive(Clone, Copy)]
pub(crate) struct MessageSource<'a> {
    /// Where it belongs, unless it says otherwise.
    pub(crate) tap: &'a Arc<ConnectionTap>,
    /// The exchange that it came in.
    pub(crate) exchange: Option<u64>,
    /// The request that it came in response to.
    pub(crate) own: Option<u64>,
}

/// Who a message that was not taken in may have been for.
pub(super) struct CutRoute {
    /// All who may have waited for it, or the one that it came from.
    pub(super) taps: Vec<Arc<ConnectionTap>>,
    /// The request that it answered, if only one can be meant.
    pub(super) meant: Option<u64>,
}

impl Peer {
    /// Writes a message where it belongs, before it is understood.
    pub(crate) fn record(&self, bytes: &[u8], from: &MessageSource<'_>) {
        // What nobody shares is not looked at twice.
        if !self.is_shared.load(Ordering::Acquire) {
            return from.tap.frame(from.exchange, Direction::ToClient, bytes);
        }
        for tap in self.taps_of(bytes, from) {
            tap.frame(from.exchange, Direction::ToClient, bytes);
        }
    }

    /// All to whom a message, or a part of a batch, belongs.
    pub(super) fn taps_of(
        &self,
        bytes: &[u8],
        from: &MessageSource<'_>,
    ) -> Vec<Arc<ConnectionTap>> {
        let mut taps = Vec::new();
        // What can't be read stays with its source.
        let _ = worker::each_message(bytes, &mut |message| {
            add(&mut taps, &self.tap_of(message, from));
        });
        if taps.is_empty() {
            taps.push(from.tap.clone());
        }
        taps
    }

    /// Where a message belongs, and what is found about it.
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

    /// Who may have waited for a message of which only the start is known.
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

//! The calls of a session without a response.
//!
//! Its main type is [`PendingCallIds`]. It only decides how long a server may take to exit after
//! its client disconnected, so it may miss a call. Verdicts are based on the record.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::worker;
use memchr::memmem;
use proctor_record::event::Direction;
use proctor_record::message::{Id, MessageKind};

/// The ids of calls without a response.
#[derive(Default)]
pub(super) struct PendingCallIds(Mutex<HashSet<Id>>);

impl PendingCallIds {
    /// Updates the ids from a forwarded line.
    pub(super) fn take(&self, direction: Direction, line: &[u8]) {
        match direction {
            Direction::ToServer => {
                // Some writers of JSON escape slashes.
                let names = |method: &[u8]| memmem::find(line, method).is_some();
                if names(b"tools/call") || names(br"tools\/call") {
                    let _ = worker::each_message(line, &mut |message| {
                        if let MessageKind::Request { id, .. } = message.kind() {
                            self.lock().insert(id);
                        }
                    });
                }
            }
            Direction::ToClient => {
                if !self.is_empty() {
                    let _ = worker::each_message(line, &mut |message| {
                        if let MessageKind::Answer { id } = message.kind() {
                            self.lock().remove(&id);
                        }
                    });
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Records refused requests.
//!
//! Its main type is [`Refusals`].

use std::sync::{Arc, OnceLock};

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use proctor_record::event::{Actor, Direction, FindingKind, WireKind};

use crate::recorder::{ConnectionTap, Recorder};

/// Records refused requests. It opens a connection in the record for the first one, so that a
/// record without refusals has no such connection.
pub(crate) struct Refusals {
    recorder: Recorder,
    actor: Actor,
    server: String,
    target: String,
    wire: WireKind,
    tap: OnceLock<Arc<ConnectionTap>>,
}

impl Refusals {
    pub(crate) fn new(recorder: &Recorder, actor: Actor, server: &Server) -> Self {
        Self {
            recorder: recorder.clone(),
            actor,
            server: server.name.clone(),
            target: server.written.clone(),
            wire: match server.transport {
                Transport::Stdio { .. } => WireKind::Stdio,
                Transport::Http { .. } => WireKind::Http,
                Transport::Sse { .. } => WireKind::Sse,
            },
            tap: OnceLock::new(),
        }
    }

    /// Records a refusal with its reason.
    pub(crate) fn refused(&self, why: &str) {
        self.tap().finding(FindingKind::Refused, why);
    }

    /// Records a refused message.
    pub(crate) fn message(&self, message: &[u8]) {
        self.tap().frame(None, Direction::ToServer, message);
    }

    fn tap(&self) -> &Arc<ConnectionTap> {
        self.tap.get_or_init(|| {
            self.recorder
                .open(&self.server, self.actor, self.wire, &self.target)
        })
    }

    /// Closes the connection in the record, if there was a refusal.
    pub(crate) fn close(&self) {
        if let Some(tap) = self.tap.get() {
            tap.close(
                "Proctor refused all clients of this connection".to_owned(),
                None,
            );
        }
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.close();
    }
}

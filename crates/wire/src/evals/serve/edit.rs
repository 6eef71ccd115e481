//! The edit of `evals serve` for one conversation.
//!
//! Its main type is [`EvalsEdit`].

use std::sync::Arc;

use mcp_evals::splice;

use super::client_message::{self, ClientMessage};
use super::{EvalsResponder, list_changed};
use crate::edit::{ClientMessageAction, Edit, Editor, Passage, PendingRequests};
use tokio::sync::watch;

impl Editor for EvalsResponder {
    fn begin(self: Arc<Self>) -> Box<dyn Edit> {
        Box::new(EvalsEdit::new(self))
    }

    fn changes(&self) -> Option<watch::Receiver<()>> {
        Some(self.changes.subscribe())
    }

    fn unreachable(&self, why: &str) {
        (self.tell)(&super::ServeNotice::Unreachable(why.to_owned()));
    }
}

/// Answers `evals/list`, and adds the capability to the handshake response.
struct EvalsEdit {
    responder: Arc<EvalsResponder>,
    /// Handshakes without a response; whether each is `initialize`.
    handshakes: PendingRequests<bool>,
    /// Whether the response to `initialize` declares `listChanged`.
    tells: bool,
    /// Whether the client has completed the handshake.
    initialized: bool,
}

impl EvalsEdit {
    fn new(responder: Arc<EvalsResponder>) -> Self {
        Self {
            responder,
            handshakes: PendingRequests::default(),
            tells: false,
            initialized: false,
        }
    }
}

impl Edit for EvalsEdit {
    fn on_client_message(&mut self, message: &[u8]) -> ClientMessageAction {
        match client_message::read(message) {
            ClientMessage::List(request) => {
                return ClientMessageAction::Answer(self.responder.answer(&request));
            }
            ClientMessage::Handshake(handshake) => {
                self.handshakes.add(handshake.id, handshake.is_initialize);
            }
            ClientMessage::Initialized => self.initialized = true,
            ClientMessage::Other => {}
        }
        ClientMessageAction::Forward(Passage::Pass)
    }

    fn on_server_message(&mut self, message: &[u8]) -> Passage {
        let Some(is_initialize) = self.handshakes.answered(message) else {
            return Passage::Pass;
        };
        let declared = self.responder.declare(message);
        if is_initialize {
            self.tells = declared.tells;
        }
        if declared.insertions.is_empty() {
            return Passage::Pass;
        }
        Passage::Replace(splice::apply(message, &declared.insertions))
    }

    fn reads_server(&self) -> bool {
        !self.handshakes.is_empty()
    }

    fn news(&mut self) -> Option<Vec<u8>> {
        (self.tells && self.initialized).then(list_changed)
    }
}

#[cfg(test)]
mod tests;

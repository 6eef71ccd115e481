//! What is known of one conversation between a client and a server.
//!
//! Its main type is [`Talk`], which both directions share.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_evals::splice::Insertion;
use proctor_core::message::{Kind, Message};

use super::Desk;
use super::asked::Handshake;
use crate::worker;

/// How many handshakes may be unanswered; of more, the oldest are forgotten.
const WAITING: usize = 64;

/// What some servers write before their first message, and most clients forgive.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A conversation.
#[derive(Debug, Default)]
pub(super) struct Talk(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Handshake>,
    /// Whether the answer to `initialize` says that changes are told.
    tells: bool,
    /// Whether the client has finished the handshake.
    initialized: bool,
}

impl Talk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handshake is on its way to the server. To be said before the server can know of it.
    pub(super) fn wait_for(&self, handshake: Handshake) {
        let mut state = self.lock();
        if state.waiting.len() == WAITING {
            state.waiting.pop_front();
        }
        state.waiting.push_back(handshake);
    }

    /// Whether an answer is awaited that must be looked at.
    pub(super) fn is_waiting(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// The client has finished the handshake.
    pub(super) fn initialized(&self) {
        self.lock().initialized = true;
    }

    /// Whether the client is to be told of changes.
    pub(super) fn is_told(&self) -> bool {
        let state = self.lock();
        state.tells && state.initialized
    }

    /// What is put into a message of the server: nothing, unless it answers a handshake.
    pub(super) fn insertions(&self, bytes: &[u8], desk: &Desk) -> Vec<Insertion> {
        let message = bytes.strip_prefix(BOM).unwrap_or(bytes);
        let mut insertions = self.declared(message, desk);
        for insertion in &mut insertions {
            insertion.at += bytes.len() - message.len();
        }
        insertions
    }

    fn declared(&self, message: &[u8], desk: &Desk) -> Vec<Insertion> {
        let Ok(parsed) = worker::parse::<Message<'_>>(message) else {
            return Vec::new();
        };
        let Kind::Answer { id } = parsed.kind() else {
            return Vec::new();
        };
        let mut state = self.lock();
        let found = state.waiting.iter().position(|waited| waited.id == id);
        let Some(handshake) = found.and_then(|at| state.waiting.remove(at)) else {
            return Vec::new();
        };
        drop(state);
        let declared = desk.declare(message);
        if handshake.is_initialize {
            self.lock().tells = declared.tells;
        }
        declared.insertions
    }
}

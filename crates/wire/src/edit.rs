//! Edits the messages between a server and its clients.
//!
//! Its main traits are [`Editor`], for one server, and [`Edit`], for one conversation with it. An
//! edit sees whole messages only, so it is the same on stdio, on streamable HTTP (JSON or events)
//! and on HTTP+SSE, in both eras. The hosts of an editor extract messages from the transport and
//! put them back: `stdio` here, `proxy::edited` on HTTP.
//!
//! An editor is on the server's side of the recorder. So a record holds what the client sent and
//! received, and the recorder itself never edits.
//!
//! Bytes outside of messages, and messages that an edit passes, stay unchanged.

pub(crate) mod conversation;
pub(crate) mod events;
pub(crate) mod lines;
pub(crate) mod output;
mod requests;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod stdio;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use self::requests::PendingRequests;

/// The default of [`Editor::limit`].
const LIMIT: usize = 4 << 20;

/// The byte order mark that some servers write before their first message, and most clients ignore.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Edits the conversations with one server, and holds the state that they share.
pub trait Editor: Send + Sync {
    /// Starts a conversation: on stdio one process of the server, on HTTP one session or one stream
    /// of HTTP+SSE. A request without a session is a conversation of its own.
    fn begin(self: Arc<Self>) -> Box<dyn Edit>;

    /// The maximum size of an edited message. Larger messages pass without an edit.
    fn limit(&self) -> usize {
        LIMIT
    }

    /// Fires when clients may need a notification: then the host calls [`Edit::news`] of every
    /// conversation.
    fn changes(&self) -> Option<watch::Receiver<()>> {
        None
    }

    /// Called when the server can't be reached over HTTP, or its connection breaks.
    fn unreachable(&self, _why: &str) {}
}

/// Edits one conversation. A message comes without the framing of its transport. It may be a batch,
/// and on stdio it may be a line of noise.
pub trait Edit: Send {
    /// Decides what happens to a message from the client.
    fn on_client_message(&mut self, _message: &[u8]) -> ClientMessageAction {
        ClientMessageAction::Forward(Passage::Pass)
    }

    /// Decides what happens to a message from the server.
    fn on_server_message(&mut self, _message: &[u8]) -> Passage {
        Passage::Pass
    }

    /// Whether the host must call [`on_server_message`](Self::on_server_message) now. Otherwise
    /// server messages pass in parts as they arrive, so that a long response is not delayed.
    fn reads_server(&self) -> bool {
        true
    }

    /// Returns a message for the client after [`Editor::changes`] fired. The host may ask for it
    /// twice, and drops it if the client has no open stream.
    fn news(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// What happens to a message from the client.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientMessageAction {
    /// The message goes to the server, in this way.
    Forward(Passage),
    /// The client gets this response, and the server never sees the message. On HTTP, a request
    /// whose headers contradict its body still goes to the server, which must refuse it.
    Answer(Vec<u8>),
}

/// What happens to a message that is forwarded.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage {
    /// Forward the message byte for byte.
    Pass,
    /// Forward this message instead.
    Replace(Vec<u8>),
    /// Forward it unchanged after this time. Later messages on the same stream wait too.
    Delay(Duration),
    /// Drop it. If it is a request or a response, the request stays unanswered.
    Drop,
}

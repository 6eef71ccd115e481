//! Edits what a server and its clients say to each other: messages in, messages out.
//!
//! Its main traits are [`Editor`], for one server, and [`Edit`], for one conversation with it. An edit sees
//! whole messages and nothing around them: it is the same on stdio, on streamable HTTP (JSON or events) and
//! on the older HTTP, in both eras. The hosts of an editor take messages out of what goes over the wire and
//! put them back: [`stdio`] here, `proxy::edited` on HTTP.
//!
//! An editor stands behind the recorder, on the server's side of it. So a record holds what the client sent
//! and got, and the recorder itself never edits.
//!
//! Bytes that are in no message, and messages that an edit passes, go on as they came.

pub(crate) mod conversation;
pub(crate) mod events;
pub(crate) mod lines;
pub(crate) mod output;
mod pending;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod stdio;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use self::pending::Pending;

/// The default of [`Editor::limit`].
const LIMIT: usize = 4 << 20;

/// What some servers write before their first message, and most clients forgive.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Edits the conversations with one server. What has to be known across them is kept here.
pub trait Editor: Send + Sync {
    /// Begins a conversation. On stdio that is a process of the server, on HTTP a session or a stream of the
    /// older transport; a request without a session is a conversation of its own.
    fn begin(self: Arc<Self>) -> Box<dyn Edit>;

    /// Messages up to this size are edited. Longer ones pass by unread.
    fn limit(&self) -> usize {
        LIMIT
    }

    /// Fires when clients may have to be told something: then [`Edit::news`] of every conversation is asked.
    fn changes(&self) -> Option<watch::Receiver<()>> {
        None
    }

    /// The server could not be reached over HTTP, or broke off.
    fn unreachable(&self, _why: &str) {}
}

/// Edits one conversation. A message comes without what its transport puts around it; it may be a batch, and
/// on stdio it may be a line of noise.
pub trait Edit: Send {
    /// Decides about a message from the client.
    fn on_client_message(&mut self, _message: &[u8]) -> Handling {
        Handling::Forward(Passage::Pass)
    }

    /// Decides about a message from the server.
    fn on_server_message(&mut self, _message: &[u8]) -> Passage {
        Passage::Pass
    }

    /// Whether [`on_server_message`](Self::on_server_message) has to be asked about what the server says now. Otherwise
    /// it passes as it comes, also in parts: nobody waits for the end of a long answer.
    fn reads_server(&self) -> bool {
        true
    }

    /// A message of our own to the client, after [`Editor::changes`] fired. It may be asked for twice, and is
    /// lost if the client listens nowhere.
    fn news(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// What happens to a message from the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Handling {
    /// It goes to the server, in this way.
    Forward(Passage),
    /// The client gets this back, and the server never sees the message. On HTTP, a request whose headers
    /// contradict it goes to the server all the same, which has to refuse it.
    Answer(Vec<u8>),
}

/// What happens to a message that is on its way to the other side.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage {
    /// It goes on as it came, byte for byte.
    Pass,
    /// This goes on in its place.
    Replace(Vec<u8>),
    /// It goes on as it came, after this time. What comes behind it on the same stream waits too.
    Delay(Duration),
    /// It goes no further. A request that is dropped, or whose answer is, stays unanswered.
    Drop,
}

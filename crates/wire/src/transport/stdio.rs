//! A server as a process, on its stdin and stdout.
//!
//! Its main type is [`StdioLink`]. Stdin is open for as long as the link is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::event::FindingKind;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::lines::{self, LineHandler, LineWriter, Noise};
use super::{MAX_MESSAGE, SendError};
use crate::peer::{Ended, Peer, Source};
use crate::recorder::{Oversized, Tap};

/// How many messages may wait to be written.
const QUEUE: usize = 64;
/// How long the server may take to read one.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The way to a server and back.
pub(crate) struct StdioLink {
    writer: Arc<LineWriter<Arc<Tap>>>,
    /// Nothing once the link is closed.
    reading: Mutex<Option<JoinHandle<()>>>,
}

impl StdioLink {
    /// Starts to read and write. The streams are closed when the link is, and the server has said its
    /// last word.
    pub(crate) fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        peer: &Arc<Peer>,
    ) -> Self {
        let unread = peer.clone();
        let stuck = move || unread.end(Ended::Stuck);
        let writer = LineWriter::start(stdin, QUEUE, Some(WRITE_TIMEOUT), stuck);
        let writer = Arc::new(writer);
        let mut server = ServerLines {
            peer: peer.clone(),
            writer: writer.clone(),
        };
        let reading = tokio::spawn(async move {
            lines::read(stdout, MAX_MESSAGE, &mut server).await;
            server.peer.end(Ended::Closed);
        });
        Self {
            writer,
            reading: Mutex::new(Some(reading)),
        }
    }

    /// Closes the server's stdin, and gives what still reads its last words.
    pub(crate) fn close(&self) -> Option<JoinHandle<()>> {
        self.writer.close();
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.take()
    }

    pub(crate) async fn send(&self, tap: &Arc<Tap>, message: Vec<u8>) -> Result<(), SendError> {
        self.writer.send(tap.clone(), message).await
    }

    /// Sends a message if there is room for it: a server that does not read will not miss it.
    pub(crate) fn send_soon(&self, tap: &Arc<Tap>, message: Vec<u8>) {
        self.writer.send_soon(tap.clone(), message);
    }

    /// Waits until all that was sent is written, but not for long.
    pub(crate) async fn settle(&self) {
        self.writer.settle().await;
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.writer.close();
    }
}

/// Hands what a server writes to the peer.
struct ServerLines {
    peer: Arc<Peer>,
    writer: Arc<LineWriter<Arc<Tap>>>,
}

impl ServerLines {
    fn source(&self) -> Source<'_> {
        Source {
            tap: self.peer.tap(),
            exchange: None,
            own: None,
        }
    }
}

impl LineHandler for ServerLines {
    fn record(&mut self, line: &[u8]) {
        self.peer.record(line, &self.source());
    }

    fn message(&mut self, bytes: &[u8]) {
        let tap = self.peer.tap();
        for answer in self.peer.receive(bytes, &self.source()) {
            // A server that asks faster than it reads is not waited for.
            if !self.writer.send_soon(tap.clone(), answer) {
                let detail = "an answer to the server was not taken";
                tap.finding(FindingKind::Dropped, detail);
            }
        }
    }

    fn noise(&mut self, noise: Noise<'_>) {
        noise.note(self.peer.tap());
    }

    fn oversized(&mut self, cut: &Oversized) {
        self.peer.oversized(cut, &self.source());
    }
}

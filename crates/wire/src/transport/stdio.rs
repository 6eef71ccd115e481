//! A server process on its stdin and stdout.
//!
//! Its main type is [`StdioLink`]. Stdin stays open as long as the link.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_record::event::FindingKind;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::MAX_MESSAGE;
use super::lines::{self, LineHandler, LineWriter, Noise};
use crate::peer::{AnswerMessage, MessageSource, Peer, PeerClose, ServerMessageHandler};
use crate::recorder::{ConnectionTap, OversizedMessage, Recorder};

/// The length of the write queue.
const QUEUE: usize = 64;
/// How long the server may take to read a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a server over stdio.
pub(crate) struct StdioLink {
    pub(crate) writer: Arc<LineWriter<Arc<ConnectionTap>>>,
    /// `None` once the link is closed.
    reading: Mutex<Option<JoinHandle<()>>>,
}

impl StdioLink {
    /// Starts to read and write. The streams close with the link, after the server's last message.
    pub(crate) fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        peer: &Arc<Peer>,
    ) -> Self {
        let unread = peer.clone();
        let stuck = move || unread.end(PeerClose::Stuck);
        let writer = LineWriter::start(stdin, QUEUE, Some(WRITE_TIMEOUT), stuck);
        let writer = Arc::new(writer);
        let reading = tokio::spawn(read(stdout, peer.clone(), writer.clone()));
        Self {
            writer,
            reading: Mutex::new(Some(reading)),
        }
    }

    /// Closes the server's stdin, and returns the task that reads its last messages.
    pub(crate) fn close(&self) -> Option<JoinHandle<()>> {
        self.writer.close();
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.take()
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        // The reader holds the writer too.
        self.writer.close();
    }
}

async fn read(
    stdout: impl AsyncRead + Unpin,
    peer: Arc<Peer>,
    writer: Arc<LineWriter<Arc<ConnectionTap>>>,
) {
    let tap = peer.tap();
    let mut answer = |answer| match answer {
        AnswerMessage::Ready(message) => send_answer(&writer, tap, message),
        AnswerMessage::Later(later) => {
            let (writer, tap) = (writer.clone(), tap.clone());
            tokio::spawn(async move { send_answer(&writer, &tap, later.await) });
        }
    };
    let mut incoming = ServerMessageHandler {
        peer: &peer,
        from: MessageSource {
            tap,
            exchange: None,
            own: None,
        },
        answer: &mut answer,
    };
    lines::read(stdout, MAX_MESSAGE, &mut incoming).await;
    peer.end(PeerClose::Closed);
}

/// The link does not wait for a server that sends requests faster than it reads responses.
fn send_answer(
    writer: &LineWriter<Arc<ConnectionTap>>,
    tap: &Arc<ConnectionTap>,
    message: Vec<u8>,
) {
    if !writer.send_soon(tap.clone(), message) {
        let detail = "the server did not accept a response";
        tap.finding(FindingKind::Dropped, detail);
    }
}

impl LineHandler for ServerMessageHandler<'_> {
    fn recorder(&self) -> Option<Recorder> {
        Some(self.from.tap.recorder().clone())
    }

    fn record(&mut self, line: &[u8]) {
        self.peer.record(line, &self.from);
    }

    fn noise(&mut self, noise: Noise<'_>) {
        noise.note(self.from.tap);
    }

    fn oversized(&mut self, cut: &OversizedMessage) {
        self.peer.oversized(cut, &self.from);
    }
}

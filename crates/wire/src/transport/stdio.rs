//! A server as a process, on its stdin and stdout.
//!
//! Its main type is [`StdioLink`]. Stdin is open for as long as the link is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::event::{BLANK_LINE, Direction, FindingKind};
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::frames::{Line, Lines};
use super::{GOODBYE, MAX_MESSAGE, SendError};
use crate::peer::{Ended, Peer, Source};
use crate::recorder::Tap;

/// How many messages may wait to be written.
const QUEUE: usize = 64;
/// How much of a line that is no message is shown.
const SHOWN: usize = 200;
/// How long the server may take to read one.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The way to a server's stdin.
pub(crate) struct StdioLink {
    /// Nothing once the link is closed.
    ends: Mutex<Option<Ends>>,
}

struct Ends {
    queue: mpsc::Sender<Outgoing>,
    reading: JoinHandle<()>,
}

/// What waits to be written.
enum Outgoing {
    /// A message, and where it belongs.
    Message(Arc<Tap>, Vec<u8>),
    /// Nothing: somebody waits until all before it is written.
    Mark(oneshot::Sender<()>),
}

impl StdioLink {
    /// Starts to read and write. The streams are closed when the link is, and the server has said its
    /// last word.
    pub(crate) fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        peer: &Arc<Peer>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(write(stdin, waiting, peer.clone()));
        // Answers to the server's own requests; the link alone keeps stdin open.
        let reading = tokio::spawn(read(stdout, peer.clone(), queue.downgrade()));
        Self {
            ends: Mutex::new(Some(Ends { queue, reading })),
        }
    }

    /// Closes the server's stdin, and gives what still reads its last words.
    pub(crate) fn close(&self) -> Option<JoinHandle<()>> {
        self.lock().take().map(|ends| ends.reading)
    }

    pub(crate) async fn send(&self, tap: &Arc<Tap>, message: Vec<u8>) -> Result<(), SendError> {
        let queue = self.queue().ok_or(SendError::Closed)?;
        let sending = queue.send(Outgoing::Message(tap.clone(), message));
        match tokio::time::timeout(WRITE_TIMEOUT, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SendError::Closed),
            Err(_) => Err(SendError::Stuck),
        }
    }

    /// Sends a message if there is room for it.
    pub(crate) fn send_soon(&self, tap: &Arc<Tap>, message: Vec<u8>) {
        if let Some(queue) = self.queue() {
            // A server that does not read will not miss it.
            let _ = queue.try_send(Outgoing::Message(tap.clone(), message));
        }
    }

    /// Waits until all that was sent is written, but not for long.
    pub(crate) async fn settle(&self) {
        let Some(queue) = self.queue() else { return };
        let (mark, reached) = oneshot::channel();
        let settling = async {
            if queue.send(Outgoing::Mark(mark)).await.is_ok() {
                let _ = reached.await;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, settling).await;
    }

    fn queue(&self) -> Option<mpsc::Sender<Outgoing>> {
        self.lock().as_ref().map(|ends| ends.queue.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Ends>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<Outgoing>,
    peer: Arc<Peer>,
) {
    while let Some(outgoing) = waiting.recv().await {
        let (tap, mut message) = match outgoing {
            Outgoing::Message(tap, message) => (tap, message),
            Outgoing::Mark(reached) => {
                let _ = reached.send(());
                continue;
            }
        };
        tap.room().await;
        tap.frame(None, Direction::ToServer, &message);
        message.push(b'\n');
        let written = async {
            stdin.write_all(&message).await?;
            stdin.flush().await
        };
        match tokio::time::timeout(WRITE_TIMEOUT, written).await {
            Ok(Ok(())) => {}
            // The reader sees the end too, and knows more about it.
            Ok(Err(_)) => return,
            Err(_) => {
                peer.end(Ended::Stuck);
                return;
            }
        }
    }
}

async fn read(
    stdout: impl AsyncRead + Unpin,
    peer: Arc<Peer>,
    answers: mpsc::WeakSender<Outgoing>,
) {
    let from = Source {
        tap: peer.tap(),
        exchange: None,
        own: None,
    };
    let mut lines = Lines::new(stdout, MAX_MESSAGE);
    // A line that can't be read is the end, like the end itself.
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            Line::Whole(line) => line,
            Line::Torn(line) => {
                torn(&line, &peer, &from);
                continue;
            }
            Line::Oversized(cut) => {
                peer.oversized(&cut, &from);
                continue;
            }
        };
        from.tap.room().await;
        peer.record(&line, &from);
        let Some(message) = without_noise(&line, from.tap) else {
            continue;
        };
        for answer in peer.receive(message, &from) {
            let answer = Outgoing::Message(from.tap.clone(), answer);
            // A server that asks faster than it reads is not waited for.
            let sent = answers
                .upgrade()
                .is_some_and(|queue| queue.try_send(answer).is_ok());
            if !sent {
                let detail = "an answer to the server was not taken";
                from.tap.finding(FindingKind::Dropped, detail);
            }
        }
    }
    peer.end(Ended::Closed);
}

/// Takes in a line that the end of the stream cut short.
fn torn(line: &[u8], peer: &Peer, from: &Source<'_>) {
    peer.record(line, from);
    from.tap
        .finding(FindingKind::Noise, torn_line(line, from.tap));
    // It may be whole but for its end.
    if serde_json::from_slice::<IgnoredAny>(line).is_ok() {
        peer.receive(line, from);
    }
}

/// What is said of a line that the end of the stream cut short.
pub(crate) fn torn_line(line: &[u8], tap: &Tap) -> String {
    format!("the last line has no end: {}", tap.head(line, SHOWN))
}

/// The message in a line, if there is one; what else is in it is noted.
pub(crate) fn without_noise<'a>(line: &'a [u8], tap: &Tap) -> Option<&'a [u8]> {
    let mut message = line;
    if let Some(rest) = message.strip_prefix("\u{feff}".as_bytes()) {
        tap.finding(FindingKind::Noise, "a byte order mark before a message");
        message = rest;
    }
    if let Some(rest) = message.strip_suffix(b"\r") {
        tap.finding(FindingKind::Noise, "a carriage return at the end of a line");
        message = rest;
    }
    let message = message.trim_ascii();
    match message.first() {
        None => {
            tap.finding(FindingKind::Noise, BLANK_LINE);
            None
        }
        Some(b'{') => Some(message),
        // A batch, and not a log line such as `[INFO] …`.
        Some(b'[') if matches!(message[1..].trim_ascii_start().first(), Some(b'{' | b']')) => {
            Some(message)
        }
        Some(_) => {
            tap.finding(
                FindingKind::Noise,
                format!("a line that is no message: {}", tap.head(message, SHOWN)),
            );
            None
        }
    }
}

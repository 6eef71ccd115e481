//! A server as a process, on its stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::event::{Direction, FindingKind};
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::frames::{Line, Lines};
use super::{MAX_MESSAGE, SendError};
use crate::client::peer::{Ended, Peer};
use crate::recorder::Tap;

/// How many messages may wait to be written.
const QUEUE: usize = 64;
/// How much of a line that is no message is shown.
const SHOWN: usize = 200;
/// How long the server may take to read one.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The way to a server's stdin.
pub(crate) struct StdioLink {
    queue: mpsc::Sender<Vec<u8>>,
    reading: JoinHandle<()>,
}

impl StdioLink {
    /// Starts to read and write. The streams are closed when the link is dropped and the server has
    /// said its last word.
    pub(crate) fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        peer: &Arc<Peer>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(write(stdin, waiting, peer.clone()));
        // Answers to the server's own requests; the link alone keeps stdin open.
        let reading = tokio::spawn(read(stdout, peer.clone(), queue.downgrade()));
        Self { queue, reading }
    }

    /// Closes the server's stdin, and gives what still reads its last words.
    pub(crate) fn close(self) -> JoinHandle<()> {
        self.reading
    }

    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), SendError> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.queue.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SendError::Closed),
            Err(_) => Err(SendError::Stuck),
        }
    }

    /// Sends a message if there is room for it.
    pub(crate) fn send_soon(&self, message: Vec<u8>) {
        // A server that does not read will not miss it.
        let _ = self.queue.try_send(message);
    }
}

async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    peer: Arc<Peer>,
) {
    while let Some(mut message) = waiting.recv().await {
        peer.tap().frame(None, Direction::ToServer, &message);
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

async fn read(stdout: impl AsyncRead + Unpin, peer: Arc<Peer>, answers: mpsc::WeakSender<Vec<u8>>) {
    let mut lines = Lines::new(stdout, MAX_MESSAGE);
    // A line that can't be read is the end, like the end itself.
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            Line::Whole(line) => line,
            Line::Torn(line) => {
                let detail = format!(
                    "the last line has no end: {}",
                    peer.tap().head(&line, SHOWN)
                );
                peer.tap().frame(None, Direction::ToClient, &line);
                peer.tap().finding(FindingKind::Noise, detail);
                // It may be whole but for its end.
                if serde_json::from_slice::<IgnoredAny>(&line).is_ok() {
                    peer.receive(&line, None);
                }
                continue;
            }
            Line::Oversized(cut) => {
                peer.tap().cut_frame(None, Direction::ToClient, &cut);
                peer.oversized(&cut, None);
                continue;
            }
        };
        peer.tap().frame(None, Direction::ToClient, &line);
        let Some(message) = without_noise(&line, peer.tap()) else {
            continue;
        };
        for answer in peer.receive(message, None) {
            // A server that asks faster than it reads is not waited for.
            let sent = answers
                .upgrade()
                .is_some_and(|queue| queue.try_send(answer).is_ok());
            if !sent {
                peer.tap().finding(
                    FindingKind::Dropped,
                    "an answer to the server was not taken",
                );
            }
        }
    }
    peer.end(Ended::Closed);
}

/// The message in a line, if there is one; what else is in it is noted.
fn without_noise<'a>(line: &'a [u8], tap: &Tap) -> Option<&'a [u8]> {
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
            tap.finding(FindingKind::Noise, "a blank line");
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

//! JSON-RPC over stdin and stdout, one message per line, for servers on stdio, ACP agents and step
//! extensions.
//!
//! Its main types are [`LineWriter`], which writes to the program's stdin, and [`LineHandler`],
//! which processes its stdout. It has no knowledge of MCP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_record::event::{BLANK_LINE, Direction, FindingKind};
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::frames::{LineReader, StreamLine};
use super::{GOODBYE, SendError};
use crate::recorder::{ConnectionTap, OversizedMessage, Recorder};
use crate::rpc::{self, MessageHandler};
use crate::worker;

/// The maximum length of noise in a finding.
const SHOWN: usize = 200;

/// Processes the stdout of a program.
pub trait LineHandler: MessageHandler {
    /// Returns the record that must have room before the next line is read.
    fn recorder(&self) -> Option<Recorder> {
        None
    }

    /// Records a line before it is parsed.
    fn record(&mut self, _line: &[u8]) {}

    /// Handles noise in or around a message.
    fn noise(&mut self, _noise: Noise<'_>) {}

    /// Handles a line that exceeds the size limit.
    fn oversized(&mut self, _cut: &OversizedMessage) {}
}

/// A protocol problem of a line: noise beside a message, or instead of one.
#[derive(Debug, Clone, Copy)]
pub struct Noise<'a> {
    pub what: &'static str,
    /// The part of the line to show; may be empty.
    pub line: &'a [u8],
    /// Whether the line still contains a message.
    pub is_message: bool,
}

impl Noise<'_> {
    /// Adds it as a finding to a record.
    pub(crate) fn note(self, tap: &ConnectionTap) {
        let detail = match self.line.trim_ascii() {
            b"" => self.what.to_owned(),
            line => format!("{}: {}", self.what, tap.head(line, SHOWN)),
        };
        tap.finding(FindingKind::Noise, detail);
    }
}

/// Reads a stream to its end, so that the program never blocks on its output.
pub async fn read(
    stdout: impl AsyncRead + Unpin,
    longest: usize,
    handler: &mut (dyn LineHandler + Send),
) {
    let mut lines = LineReader::new(stdout, longest);
    // A line that can't be read is the end of the stream.
    while let Ok(Some(line)) = lines.next().await {
        if let Some(recorder) = handler.recorder() {
            recorder.room().await;
        }
        match line {
            StreamLine::Whole(line) => {
                handler.record(&line);
                if let Some(message) = message_in(&line, &mut |noise| handler.noise(noise)) {
                    rpc::receive(message, handler);
                }
            }
            StreamLine::Torn(line) => {
                handler.record(&line);
                let noise = torn(&line);
                handler.noise(noise);
                if noise.is_message {
                    rpc::receive(&line, handler);
                }
            }
            StreamLine::Oversized(cut) => handler.oversized(&cut),
        }
    }
}

/// Describes an incomplete last line. It may be complete except for its newline.
pub(crate) fn torn(line: &[u8]) -> Noise<'_> {
    Noise {
        what: "the last line has no newline",
        line,
        is_message: worker::parse::<IgnoredAny>(line).is_ok(),
    }
}

/// Returns the message in a line, if there is one, and reports noise.
pub(crate) fn message_in<'a>(line: &'a [u8], tell: &mut dyn FnMut(Noise<'a>)) -> Option<&'a [u8]> {
    let mut noise = |what, line, is_message| {
        tell(Noise {
            what,
            line,
            is_message,
        });
    };
    let mut message = line;
    if let Some(rest) = message.strip_prefix("\u{feff}".as_bytes()) {
        noise("byte order mark before a message", b"", true);
        message = rest;
    }
    if let Some(rest) = message.strip_suffix(b"\r") {
        noise("carriage return at the end of a line", b"", true);
        message = rest;
    }
    let bare = message.trim_ascii();
    match bare.first() {
        Some(b'{') => return Some(bare),
        // A batch, not a log line such as `[INFO] …`.
        Some(b'[') if matches!(bare[1..].trim_ascii_start().first(), Some(b'{' | b']')) => {
            return Some(bare);
        }
        Some(_) => noise("line is not a JSON-RPC message", message, false),
        None => noise(BLANK_LINE, b"", false),
    }
    None
}

/// The record of an outgoing message.
pub trait MessageOwner: Send + 'static {
    /// Returns the record that must have room before the message is sent.
    fn recorder(&self) -> Option<&Recorder> {
        None
    }

    /// Records a message right before it is sent.
    fn record(&self, _message: &[u8]) {}
}

/// For messages that are not recorded.
impl MessageOwner for () {}

impl MessageOwner for Arc<ConnectionTap> {
    fn recorder(&self) -> Option<&Recorder> {
        Some(ConnectionTap::recorder(self))
    }

    fn record(&self, message: &[u8]) {
        self.frame(None, Direction::ToServer, message);
    }
}

/// Writes to a program's stdin, which stays open until this is closed or dropped.
pub struct LineWriter<O> {
    /// `None` once it is closed.
    queue: Mutex<Option<mpsc::Sender<QueuedWrite<O>>>>,
    patience: Option<Duration>,
}

/// An entry of the write queue.
enum QueuedWrite<O> {
    Message(O, Vec<u8>),
    /// Notified when all earlier messages are written.
    Mark(oneshot::Sender<()>),
}

impl<O: MessageOwner> LineWriter<O> {
    /// Starts to write, with a queue of this length. If the program takes longer than `patience` to
    /// read a message, `stuck` is called and writing stops.
    pub fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        messages: usize,
        patience: Option<Duration>,
        stuck: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(messages);
        tokio::spawn(async move {
            if write(stdin, waiting, patience).await == Err(WriteTimeout) {
                stuck();
            }
        });
        Self {
            queue: Mutex::new(Some(queue)),
            patience,
        }
    }

    /// Closes the program's stdin after all messages are written.
    pub fn close(&self) {
        self.lock().take();
    }

    /// Sends a message as soon as the queue has room.
    pub async fn send(&self, owner: O, message: Vec<u8>) -> Result<(), SendError> {
        let queue = self.queue().ok_or(SendError::Closed)?;
        let sending = queue.send(QueuedWrite::Message(owner, message));
        match within(self.patience, sending).await {
            Ok(sent) => sent.map_err(|_| SendError::Closed),
            Err(WriteTimeout) => Err(SendError::Stuck),
        }
    }

    /// Sends a message if the queue has room now.
    pub fn send_soon(&self, owner: O, message: Vec<u8>) -> bool {
        let outgoing = QueuedWrite::Message(owner, message);
        self.queue()
            .is_some_and(|queue| queue.try_send(outgoing).is_ok())
    }

    /// Waits for a limited time until all messages are written.
    pub async fn settle(&self) {
        let Some(queue) = self.queue() else { return };
        let (mark, reached) = oneshot::channel();
        let settling = async {
            if queue.send(QueuedWrite::Mark(mark)).await.is_ok() {
                let _ = reached.await;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, settling).await;
    }

    fn queue(&self) -> Option<mpsc::Sender<QueuedWrite<O>>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<QueuedWrite<O>>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct WriteTimeout;

async fn write<O: MessageOwner>(
    mut stdin: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<QueuedWrite<O>>,
    patience: Option<Duration>,
) -> Result<(), WriteTimeout> {
    while let Some(outgoing) = waiting.recv().await {
        let (owner, mut message) = match outgoing {
            QueuedWrite::Message(owner, message) => (owner, message),
            QueuedWrite::Mark(reached) => {
                let _ = reached.send(());
                continue;
            }
        };
        if let Some(recorder) = owner.recorder().cloned() {
            recorder.room().await;
        }
        owner.record(&message);
        message.push(b'\n');
        let written = async {
            stdin.write_all(&message).await?;
            stdin.flush().await
        };
        // The reader also sees the end, and knows the reason.
        if within(patience, written).await?.is_err() {
            break;
        }
    }
    Ok(())
}

async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, WriteTimeout> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work)
            .await
            .map_err(|_| WriteTimeout),
        None => Ok(work.await),
    }
}

#[cfg(test)]
mod tests;

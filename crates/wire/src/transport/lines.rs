//! A program on its stdin and stdout, a JSON-RPC message a line: what a server on stdio, an agent that
//! speaks ACP and a step extension have in common.
//!
//! Main types: [`LineWriter`], the way to the program's stdin, and [`LineHandler`], who takes what comes
//! from its stdout. Knows nothing of MCP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::event::{BLANK_LINE, Direction, FindingKind};
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::frames::{LineReader, StreamLine};
use super::{GOODBYE, SendError};
use crate::recorder::{ConnectionTap, OversizedMessage, Recorder};
use crate::rpc::{self, MessageHandler};
use crate::worker;

/// How much of a line that is no message is shown.
const SHOWN: usize = 200;

/// Who takes what a program writes to its stdout.
pub trait LineHandler: MessageHandler {
    /// The record that has to have room before another line is read.
    fn recorder(&self) -> Option<Recorder> {
        None
    }

    /// Keeps a line as it came, before it is understood.
    fn record(&mut self, _line: &[u8]) {}

    /// A line is not, or not only, a message.
    fn noise(&mut self, _noise: Noise<'_>) {}

    /// A line was too long to be read.
    fn oversized(&mut self, _cut: &OversizedMessage) {}
}

/// What is in a line beside a message, or instead of one.
#[derive(Debug, Clone, Copy)]
pub struct Noise<'a> {
    /// What is wrong.
    pub what: &'static str,
    /// What is shown of the line; empty if that tells nobody anything.
    pub line: &'a [u8],
    /// Whether the line is a message all the same.
    pub is_message: bool,
}

impl Noise<'_> {
    /// Notes it in a record.
    pub(crate) fn note(self, tap: &ConnectionTap) {
        let detail = match self.line.trim_ascii() {
            b"" => self.what.to_owned(),
            line => format!("{}: {}", self.what, tap.head(line, SHOWN)),
        };
        tap.finding(FindingKind::Noise, detail);
    }
}

/// Reads to the end of a stream, so that a program never blocks on what it has to say.
pub async fn read(
    stdout: impl AsyncRead + Unpin,
    longest: usize,
    handler: &mut (dyn LineHandler + Send),
) {
    let mut lines = LineReader::new(stdout, longest);
    // A line that can't be read is the end, like the end itself.
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

/// What is said of a line that the end of the stream cut short. It may be whole but for its end.
pub(crate) fn torn(line: &[u8]) -> Noise<'_> {
    Noise {
        what: "the last line has no newline",
        line,
        is_message: worker::parse::<IgnoredAny>(line).is_ok(),
    }
}

/// The message in a line, if there is one; what else is in it is told.
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
        // A batch, and not a log line such as `[INFO] …`.
        Some(b'[') if matches!(bare[1..].trim_ascii_start().first(), Some(b'{' | b']')) => {
            return Some(bare);
        }
        Some(_) => noise("line is not a JSON-RPC message", message, false),
        None => noise(BLANK_LINE, b"", false),
    }
    None
}

/// What a message that is sent belongs to.
pub trait MessageOwner: Send + 'static {
    /// The record that has to have room before the message is sent.
    fn recorder(&self) -> Option<&Recorder> {
        None
    }

    /// Keeps a message as it goes over the wire, right before it does.
    fn record(&self, _message: &[u8]) {}
}

/// A message that nobody keeps.
impl MessageOwner for () {}

impl MessageOwner for Arc<ConnectionTap> {
    fn recorder(&self) -> Option<&Recorder> {
        Some(ConnectionTap::recorder(self))
    }

    fn record(&self, message: &[u8]) {
        self.frame(None, Direction::ToServer, message);
    }
}

/// The way to a program's stdin, which is open until this is closed or dropped.
pub struct LineWriter<O> {
    /// Nothing once it is closed.
    queue: Mutex<Option<mpsc::Sender<QueuedWrite<O>>>>,
    patience: Option<Duration>,
}

/// What waits to be written.
enum QueuedWrite<O> {
    Message(O, Vec<u8>),
    /// Somebody waits until all before it is written.
    Mark(oneshot::Sender<()>),
}

impl<O: MessageOwner> LineWriter<O> {
    /// Starts to write. So many messages may wait for it. `stuck` is called if the program takes longer
    /// than that to read one; nothing more is written then.
    pub fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        messages: usize,
        patience: Option<Duration>,
        stuck: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(messages);
        tokio::spawn(async move {
            if write(stdin, waiting, patience).await == Err(Stuck) {
                stuck();
            }
        });
        Self {
            queue: Mutex::new(Some(queue)),
            patience,
        }
    }

    /// Closes the program's stdin once all that was sent is written.
    pub fn close(&self) {
        self.lock().take();
    }

    /// Sends a message as soon as there is room for it.
    pub async fn send(&self, owner: O, message: Vec<u8>) -> Result<(), SendError> {
        let queue = self.queue().ok_or(SendError::Closed)?;
        let sending = queue.send(QueuedWrite::Message(owner, message));
        match within(self.patience, sending).await {
            Ok(sent) => sent.map_err(|_| SendError::Closed),
            Err(Stuck) => Err(SendError::Stuck),
        }
    }

    /// Sends a message if there is room for it now.
    pub fn send_soon(&self, owner: O, message: Vec<u8>) -> bool {
        let outgoing = QueuedWrite::Message(owner, message);
        self.queue()
            .is_some_and(|queue| queue.try_send(outgoing).is_ok())
    }

    /// Waits until all that was sent is written, but not for long.
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

/// The program does not read.
#[derive(Debug, PartialEq, Eq)]
struct Stuck;

async fn write<O: MessageOwner>(
    mut stdin: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<QueuedWrite<O>>,
    patience: Option<Duration>,
) -> Result<(), Stuck> {
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
        // The reader sees the end too, and knows more about it.
        if within(patience, written).await?.is_err() {
            break;
        }
    }
    Ok(())
}

async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Stuck> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| Stuck),
        None => Ok(work.await),
    }
}

#[cfg(test)]
mod tests;

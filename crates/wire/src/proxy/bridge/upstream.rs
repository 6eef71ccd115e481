//! One server process, and the clients that wait for its messages.
//!
//! Its main types are [`UpstreamProcess`], which receives requests, and [`RunningUpstream`], which
//! ends the process. Every line is recorded before it is parsed. Lines that are not messages are
//! recorded as findings, and are not forwarded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use proctor_record::event::{ConnectionEnd, Direction, EndedBy, FindingKind};
use proctor_record::message::{Id, UNWANTED};
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::inbound::into_line;
use super::outlet::{self, OutboundMessage, PutError, StreamReceiver, StreamSender};
use super::router::{ClientRequest, MessageRoute, Router, StreamId};
use crate::client::connection::stop;
use crate::proxy::server_process::ServerProcess;
use crate::proxy::session::{ClientInput, Output};
use crate::recorder::ConnectionTap;
use crate::transport::MAX_MESSAGE;
use crate::transport::frames::{LineReader, StreamLine};
use crate::transport::lines;
use proctor_contain::process::Process;

/// How long a process may take to exit after it closed its stdout, and how long its last output may
/// take.
const GOODBYE: Duration = Duration::from_secs(2);

/// A running process. Dropping it closes the stdin of the process, and stops it if it doesn't exit.
pub(super) struct RunningUpstream {
    pub(super) upstream: Arc<UpstreamProcess>,
    /// Dropping it ends the process.
    _closing: oneshot::Sender<()>,
}

/// A server process of a bridge.
pub struct UpstreamProcess {
    pub(super) tap: Arc<ConnectionTap>,
    exchanges: AtomicU64,
    state: Mutex<UpstreamState>,
}

struct UpstreamState {
    router: Router,
    outlets: HashMap<StreamId, StreamSender>,
    /// `None` if the process has ended or is about to end.
    stdin: Option<mpsc::UnboundedSender<UpstreamMessage>>,
}

/// A message that waits to be written to the process.
struct UpstreamMessage {
    message: Vec<u8>,
    /// Its share of the memory budget.
    _room: Option<OwnedSemaphorePermit>,
    /// Notified when the message is written.
    written: Option<oneshot::Sender<()>>,
}

/// A message that was not sent, because the process has ended or does not read.
#[derive(Debug)]
pub(super) struct SendFailure(pub(super) Vec<u8>);

/// Why a stream could not be opened.
#[derive(Debug)]
pub(super) enum StreamRefusal {
    Ended,
    /// An id is already in use, or a GET stream is already open.
    Taken,
}

impl RunningUpstream {
    /// Takes over a started process. Returns it with the task that ends when the process has ended.
    pub(super) fn new(started: ServerProcess) -> (Self, JoinHandle<()>) {
        let ServerProcess {
            tap,
            process,
            stdin,
            stdout,
        } = started;
        let (queue, waiting) = mpsc::unbounded_channel();
        let upstream = Arc::new(UpstreamProcess {
            tap,
            exchanges: AtomicU64::new(0),
            state: Mutex::new(UpstreamState {
                router: Router::default(),
                outlets: HashMap::new(),
                stdin: Some(queue),
            }),
        });
        tokio::spawn(write(stdin, waiting, upstream.tap.clone()));
        let (closing, closed) = oneshot::channel();
        let keeping = tokio::spawn(keep(upstream.clone(), process, stdout, closed));
        let running = Self {
            upstream,
            _closing: closing,
        };
        (running, keeping)
    }
}

impl UpstreamProcess {
    /// Allocates the number of the next exchange.
    pub(super) fn next_exchange(&self) -> u64 {
        self.exchanges.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().stdin.is_none()
    }

    /// Whether no client waits for this process.
    pub(super) fn is_deserted(&self) -> bool {
        self.lock().router.is_deserted()
    }

    /// Whether a request is pending.
    pub(super) fn knows(&self, id: &Id) -> bool {
        self.lock().router.knows(id)
    }

    /// Opens the stream of a POST with requests.
    pub(super) fn open_post(
        self: &Arc<Self>,
        asks: &[ClientRequest],
        takes_more: bool,
    ) -> Result<StreamReceiver, StreamRefusal> {
        let mut state = self.lock();
        if state.stdin.is_none() {
            return Err(StreamRefusal::Ended);
        }
        if state.router.has_taken(asks) {
            return Err(StreamRefusal::Taken);
        }
        let (stream, waiting) = state.router.open_post(asks.to_vec(), takes_more);
        Ok(self.opened(&mut state, stream, waiting))
    }

    /// Opens the GET stream.
    pub(super) fn open_get(self: &Arc<Self>) -> Result<StreamReceiver, StreamRefusal> {
        let mut state = self.lock();
        if state.stdin.is_none() {
            return Err(StreamRefusal::Ended);
        }
        let (stream, waiting) = state.router.open_get().ok_or(StreamRefusal::Taken)?;
        Ok(self.opened(&mut state, stream, waiting))
    }

    fn opened(
        self: &Arc<Self>,
        state: &mut UpstreamState,
        stream: StreamId,
        waiting: Vec<Bytes>,
    ) -> StreamReceiver {
        let (sender, receiver) = outlet::stream(self, stream);
        for bytes in waiting {
            sender.put_now(bytes);
        }
        state.outlets.insert(stream, sender);
        receiver
    }

    /// Sends a message as one line. The returned channel resolves when it is written.
    pub(super) fn send(
        &self,
        message: Vec<u8>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<oneshot::Receiver<()>, SendFailure> {
        let (written, is_written) = oneshot::channel();
        let outgoing = UpstreamMessage {
            message,
            _room: room,
            written: Some(written),
        };
        let state = self.lock();
        let Some(stdin) = &state.stdin else {
            return Err(SendFailure(outgoing.message));
        };
        let sent = stdin.send(outgoing);
        sent.map_err(|mpsc::error::SendError(unsent)| SendFailure(unsent.message))?;
        Ok(is_written)
    }

    /// Handles a client that closed a stream. If this cancels requests, Proctor sends its own
    /// cancellation to the process.
    pub(super) fn leave(&self, stream: StreamId) {
        let mut state = self.lock();
        state.outlets.remove(&stream);
        for id in state.router.close(stream) {
            let Some(stdin) = &state.stdin else { return };
            let message = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{UNWANTED}"}}}}"#
            );
            // An ended process needs no cancellation.
            let _ = stdin.send(UpstreamMessage {
                message: message.into_bytes(),
                _room: None,
                written: None,
            });
        }
    }

    /// Delivers a message of the server to its client.
    async fn deliver(&self, bytes: Bytes) {
        while let Some((stream, sender, message)) = self.address(&bytes) {
            let answers = message.answers;
            match sender.put(message).await {
                Ok(()) => return,
                Err(PutError::Gone) => {}
                Err(PutError::Stalled) => {
                    let detail = "closed the stream of a client that does not read";
                    self.tap.finding(FindingKind::Dropped, detail);
                    sender.fail("the client does not read");
                }
            }
            self.leave(stream);
            // Messages for that stream alone are lost with it.
            if answers {
                return;
            }
        }
    }

    /// Returns the stream for a message, if there is one.
    fn address(&self, bytes: &Bytes) -> Option<(StreamId, StreamSender, OutboundMessage)> {
        let mut state = self.lock();
        let way = match state.router.route(bytes) {
            MessageRoute::To(way) => way,
            MessageRoute::Waits { dropped } => {
                drop(state);
                for _ in 0..dropped {
                    let detail = "message dropped: no stream is open";
                    self.tap.finding(FindingKind::Dropped, detail);
                }
                return None;
            }
            MessageRoute::Nowhere => return None,
        };
        for other in way.left_out {
            if let Some(sender) = state.outlets.remove(&other) {
                sender.fail("the response was sent with those of another request");
            }
        }
        let sender = if way.is_last {
            state.outlets.remove(&way.stream)
        } else {
            state.outlets.get(&way.stream).cloned()
        };
        let message = OutboundMessage {
            bytes: bytes.clone(),
            answers: way.answers,
            is_last: way.is_last,
            error: way.error,
        };
        Some((way.stream, sender?, message))
    }

    /// Ends all streams. With a reason, streams with pending requests fail; without one, the client
    /// ended the session itself.
    fn end(&self, why: Option<&str>) {
        let mut state = self.lock();
        state.stdin = None;
        for (stream, sender) in std::mem::take(&mut state.outlets) {
            match why {
                Some(why) if !state.router.is_get(stream) => sender.fail(why),
                _ => sender.end(),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, UpstreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches a process until it has ended, and records how.
async fn keep(
    upstream: Arc<UpstreamProcess>,
    mut process: Process,
    stdout: ClientInput,
    closed: oneshot::Receiver<()>,
) {
    let mut reading = tokio::spawn(read(stdout, upstream.clone()));
    let stderr = process.stderr();
    let (reason, end) = tokio::select! {
        _ = &mut reading => {
            // No further messages can be sent, although the exit status is not known yet.
            upstream.lock().stdin = None;
            if let Ok(ended) = timeout(GOODBYE, process.wait()).await {
                let end = ConnectionEnd {
                    by: EndedBy::Server,
                    process: Some(ended.into()),
                    signalled: process.was_signalled(),
                };
                (ended.to_string(), end)
            } else {
                let (how, end) = stop(process, EndedBy::Server).await;
                (format!("closed its stdout, and {how}"), end)
            }
        }
        _ = closed => {
            upstream.end(None);
            let (how, end) = stop(process, EndedBy::Client).await;
            let reason = format!("was told to stop, and {how}");
            // The server's last messages are recorded before its end.
            if timeout(GOODBYE, &mut reading).await.is_err() {
                reading.abort();
            }
            (reason, end)
        }
    };
    upstream.end(Some(&format!("the server {reason}")));
    let stderr = stderr.redacted(upstream.tap.redactor());
    upstream.tap.ended(reason, Some(stderr), Some(end));
}

async fn write(
    mut stdin: Output,
    mut waiting: mpsc::UnboundedReceiver<UpstreamMessage>,
    tap: Arc<ConnectionTap>,
) {
    while let Some(mut outgoing) = waiting.recv().await {
        let message = &mut outgoing.message;
        tap.frame(None, Direction::ToServer, message);
        message.push(b'\n');
        let written = async {
            stdin.write_all(message).await?;
            stdin.flush().await
        };
        // Without a timeout here: each caller has its own.
        if written.await.is_err() {
            break;
        }
        if let Some(written) = outgoing.written {
            let _ = written.send(());
        }
    }
    // The messages that were not written are requests of clients.
    waiting.close();
    while let Some(outgoing) = waiting.recv().await {
        tap.frame(None, Direction::ToServer, &outgoing.message);
    }
}

async fn read(stdout: ClientInput, upstream: Arc<UpstreamProcess>) {
    let tap = &upstream.tap;
    let mut lines = LineReader::new(stdout, MAX_MESSAGE);
    // A line that can't be read is the end of the stream.
    while let Ok(Some(line)) = lines.next().await {
        match line {
            StreamLine::Whole(line) => {
                tap.frame(None, Direction::ToClient, &line);
                if lines::message_in(&line, &mut |noise| noise.note(tap)).is_some()
                    && let Some(message) = message_in(line)
                {
                    upstream.deliver(message).await;
                }
            }
            StreamLine::Torn(line) => {
                tap.frame(None, Direction::ToClient, &line);
                lines::torn(&line).note(tap);
                // The line may be complete except for its newline.
                if let Some(message) = message_in(line) {
                    upstream.deliver(message).await;
                }
            }
            StreamLine::Oversized(cut) => {
                tap.cut_frame(None, Direction::ToClient, &cut);
                let why = format!("a message of {} bytes", cut.bytes);
                tap.finding(FindingKind::TooLarge, why.as_str());
                let mut state = upstream.lock();
                let stream = state.router.cut(&cut.head);
                if let Some(sender) = stream.and_then(|stream| state.outlets.remove(&stream)) {
                    sender.fail(&format!("{why} is too large"));
                }
            }
        }
    }
}

/// Returns the message in a line, if it looks like one. Carriage returns become spaces, because
/// they are line breaks in server-sent events.
fn message_in(mut line: Vec<u8>) -> Option<Bytes> {
    into_line(&mut line);
    let line = Bytes::from(line);
    let bare = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
    let bare = bare.trim_ascii();
    matches!(bare.first(), Some(b'{' | b'[')).then(|| line.slice_ref(bare))
}

//! Matches responses to requests, and answers the server's own requests.
//!
//! Its main type is `Peer`. It never blocks, never panics, and never answers anything but a
//! request, whatever the server sends. If several records share a connection, it decides which
//! record a message belongs to.

mod failure;
mod route;
mod state;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proctor_record::event::{Actor, Direction, FindingKind, HttpFailure};
use proctor_record::json;
use proctor_record::message::{Id, Message};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use self::failure::RequestOutcome;
pub(crate) use self::failure::{RequestFailure, shown_body};
use self::route::CutRoute;
pub(crate) use self::route::MessageSource;
use self::state::{PeerState, PendingResponse};
use crate::answers::{ReplyOutcome, ServerReply, ServerRequestReplies};
use crate::recorder::{ConnectionTap, OversizedMessage, Recorder};
pub(crate) use crate::rpc::PeerClose;
use crate::rpc::{self, FindingSubject, MessageHandler, PastRequest, RpcError};
use crate::worker::BoxedFuture;

/// The notification for progress of a request.
const PROGRESS: &str = "notifications/progress";

/// The notification that a subscription has begun. What changed before it was not announced.
const SUBSCRIBED: &str = "notifications/subscriptions/acknowledged";

/// The maximum length of a malformed part in a finding.
const SHOWN: usize = 100;

/// The client's side of a connection.
pub(crate) struct Peer {
    /// The tap of the connection itself.
    tap: Arc<ConnectionTap>,
    /// Whether other records are attached.
    is_shared: AtomicBool,
    answers: ServerRequestReplies,
    state: Mutex<PeerState>,
    /// Counts the notifications of changed lists.
    changes: AtomicU64,
    /// Signals that lists may have changed: the server announced it, or began to tell.
    signals: watch::Sender<()>,
}

/// A message to the server that answers its request.
pub(crate) enum AnswerMessage {
    Ready(Vec<u8>),
    /// A model still has to answer.
    Later(BoxedFuture<'static, Vec<u8>>),
}

/// A request without a response.
pub(crate) struct PendingAnswer {
    pub(crate) id: u64,
    pub(crate) answer: oneshot::Receiver<RequestOutcome>,
    /// The time of the last progress notification.
    pub(crate) progress: watch::Receiver<Instant>,
}

impl Peer {
    pub(crate) fn new(tap: Arc<ConnectionTap>, answers: ServerRequestReplies) -> Self {
        Self {
            tap,
            is_shared: AtomicBool::new(false),
            answers,
            state: Mutex::default(),
            changes: AtomicU64::new(0),
            signals: watch::Sender::new(()),
        }
    }

    /// Returns the tap of the connection itself.
    pub(crate) fn tap(&self) -> &Arc<ConnectionTap> {
        &self.tap
    }

    /// Opens the connection in another record.
    pub(crate) fn attach(&self, recorder: &Recorder, actor: Actor) -> Arc<ConnectionTap> {
        self.is_shared.store(true, Ordering::Release);
        self.tap.attach(recorder, actor)
    }

    pub(crate) fn answers(&self) -> &ServerRequestReplies {
        &self.answers
    }

    /// Allocates an id for a request of `tap`, and returns the handle for its response.
    pub(crate) fn expect(&self, tap: &Arc<ConnectionTap>) -> PendingAnswer {
        let (to, answer) = oneshot::channel();
        let (progress, seen) = watch::channel(Instant::now());
        let tap = tap.clone();
        let id = self.lock().open(PendingResponse { to, progress, tap });
        PendingAnswer {
            id,
            answer,
            progress: seen,
        }
    }

    /// Whether a request has no response yet.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.lock().requests.waiter(id).is_some()
    }

    /// Stops waiting for a response after a timeout.
    pub(crate) fn give_up(&self, id: u64) {
        self.lock().requests.close(id, PastRequest::GivenUp);
    }

    /// Stops waiting for a response that the caller no longer needs.
    pub(crate) fn abandon(&self, id: u64) {
        self.lock().requests.close(id, PastRequest::Unwanted);
    }

    /// Stops waiting for the response to a probe of the era; it may still come late.
    pub(crate) fn abandon_probe(&self, id: u64) {
        let mut state = self.lock();
        if state.requests.close(id, PastRequest::Unwanted).is_some() {
            state.late_probe = Some(id);
        }
    }

    /// Fails a request that has no response yet.
    pub(crate) fn fail(&self, id: u64, failure: RequestFailure) {
        let pending = self.lock().requests.close(id, PastRequest::GivenUp);
        if let Some(pending) = pending {
            let _ = pending.to.send(Err(failure));
        }
    }

    /// Returns why a closed request has no response; `None` if it has one.
    pub(crate) fn unanswered(&self, id: u64) -> Option<HttpFailure> {
        match self.lock().requests.past(id) {
            Some(PastRequest::Answered) => None,
            Some(PastRequest::GivenUp) => Some(HttpFailure::TimedOut),
            Some(PastRequest::Unwanted) | None => Some(HttpFailure::ClientLeft),
        }
    }

    /// Marks the connection as ended. Only the first reason is stored.
    pub(crate) fn end(&self, how: PeerClose) {
        self.lock().requests.end(how);
    }

    pub(crate) fn ended(&self) -> Option<PeerClose> {
        self.lock().requests.ended().cloned()
    }

    /// Returns how often the server announced a changed list.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Returns a signal each time that lists may have changed.
    pub(crate) fn change_signals(&self) -> watch::Receiver<()> {
        self.signals.subscribe()
    }

    /// Signals that lists may have changed: a server said so, or could not have said so until now.
    pub(crate) fn signal_change(&self) {
        self.signals.send_replace(());
    }

    /// Records a message that exceeds the size limit, and fails the request that it answers. On
    /// HTTP that is the request of the exchange. On a shared stream it is the only pending request,
    /// unless the message starts like a request or notification.
    pub(crate) fn oversized(&self, cut: &OversizedMessage, from: &MessageSource<'_>) {
        let bytes = cut.bytes;
        let CutRoute { taps, meant } = self.route_of_cut(cut, from);
        for tap in &taps {
            tap.cut_frame(from.exchange, Direction::ToClient, cut);
        }
        let concerned = match &taps[..] {
            [only] => only,
            _ => from.tap,
        };
        concerned.finding(FindingKind::TooLarge, format!("a message of {bytes} bytes"));
        if let Some(id) = meant {
            self.fail(id, RequestFailure::TooLarge { bytes });
        }
    }

    /// Processes a message, and returns the responses to send.
    pub(crate) fn receive(&self, bytes: &[u8], from: &MessageSource<'_>) -> Vec<AnswerMessage> {
        let mut answers = Vec::new();
        let mut incoming = ServerMessageHandler {
            peer: self,
            from: *from,
            answer: &mut |answer| answers.push(answer),
        };
        rpc::receive(bytes, &mut incoming);
        answers
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method.ends_with("/list_changed") {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        if method.ends_with("/list_changed") || method == SUBSCRIBED {
            self.signal_change();
        }
        if method == PROGRESS
            && let Some(token) = params.and_then(progress_token)
            && let Some(pending) = self.lock().requests.waiter(token)
        {
            pending.progress.send_replace(Instant::now());
        }
    }

    fn answered(&self, id: &Id, message: &Message<'_>, from: &MessageSource<'_>) {
        let outcome = match (message.result, message.error) {
            (Some(result), _) => Ok(result.to_owned()),
            (None, Some(error)) => Err(RequestFailure::Rpc(
                json::from_str(error.get())
                    .or_else(|_| json::decode(error.get()).and_then(serde_json::from_value))
                    .unwrap_or_else(|_| no_error(error, &self.tap_of(message, from))),
            )),
            (None, None) => return,
        };
        let mut state = self.lock();
        let number = state.meant(id, from.own);
        let past = match state.requests.answered(number) {
            Ok(pending) => {
                drop(state);
                // The caller may be gone.
                let _ = pending.to.send(outcome);
                return;
            }
            Err(past) => past,
        };
        state.late_probe = state.late_probe.filter(|probe| number != Some(*probe));
        drop(state);
        let (kind, what) = match past {
            // The response crossed the cancellation.
            Some(PastRequest::Unwanted) => return,
            Some(PastRequest::Answered) => {
                (FindingKind::DuplicateAnswer, "duplicate response with")
            }
            Some(PastRequest::GivenUp) => (FindingKind::LateAnswer, "late response with"),
            None => (
                FindingKind::UnknownId,
                "response that matches no request, with",
            ),
        };
        self.tap_of(message, from)
            .finding(kind, format!("{what} {id}"));
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Processes the messages of a server.
pub(crate) struct ServerMessageHandler<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) from: MessageSource<'a>,
    /// Sends a response to a request of the server.
    pub(crate) answer: &'a mut (dyn FnMut(AnswerMessage) + Send),
}

impl MessageHandler for ServerMessageHandler<'_> {
    fn request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        let params = params.and_then(|params| json::from_str(params.get()).ok());
        let reply = self.peer.answers.to(method, params.unwrap_or_default());
        (self.answer)(match reply {
            ServerReply::Now(outcome) => AnswerMessage::Ready(answer_bytes(id, &outcome)),
            ServerReply::Later(later) => {
                let id = id.to_owned();
                AnswerMessage::Later(Box::pin(async move { answer_bytes(&id, &later.await) }))
            }
        });
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        self.peer.notified(method, params);
    }

    fn answer(&mut self, id: &Id, message: &Message<'_>) {
        self.peer.answered(id, message, &self.from);
    }

    fn finding(&mut self, about: FindingSubject<'_>, kind: FindingKind, detail: String) {
        let taps = match about {
            FindingSubject::Message(message) => vec![self.peer.tap_of(message, &self.from)],
            FindingSubject::Bytes(bytes) => self.peer.taps_of(bytes, &self.from),
        };
        for tap in taps {
            tap.finding(kind, detail.as_str());
        }
    }
}

fn answer_bytes(id: &RawValue, outcome: &ReplyOutcome) -> Vec<u8> {
    let outcome = outcome.as_deref().map_err(|e| (e.0, e.1.as_str()));
    rpc::answer(id, outcome)
}

/// Adds a finding for a malformed error, and returns a replacement.
fn no_error(raw: &RawValue, tap: &ConnectionTap) -> RpcError {
    let head = tap.head(raw.get().as_bytes(), SHOWN);
    let detail = format!("malformed JSON-RPC error: {head}");
    tap.finding(FindingKind::Malformed, detail.clone());
    RpcError {
        code: 0,
        message: detail,
        data: None,
    }
}

fn progress_token(params: &RawValue) -> Option<u64> {
    let params: Value = json::from_str(params.get()).ok()?;
    params.get("progressToken")?.as_u64()
}

#[cfg(test)]
mod tests;

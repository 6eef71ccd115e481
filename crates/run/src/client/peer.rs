//! Who asked what: pairs answers with requests, and answers the server's own requests.
//!
//! Its main type is [`Peer`]. Whatever arrives, in whatever order and shape, it never blocks, never
//! panics and never sends an error back for something that was no request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use proctor_core::event::FindingKind;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::answers::Answers;
use crate::recorder::Tap;
use crate::rpc::{Kind, Message, RpcError, answer};

/// How many ids are remembered for telling late and double answers from unknown ones.
const REMEMBERED: usize = 10_000;

/// How much of something that makes no sense is shown.
const SHOWN: usize = 100;

/// What a request came to.
pub(crate) type Outcome = Result<Box<RawValue>, Failure>;

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    /// The server says why.
    #[error("{} (code {})", .0.message, .0.code)]
    Rpc(RpcError),
    /// The answer was too large to be taken in.
    #[error("the answer is larger than is taken in: {bytes} bytes")]
    TooLarge {
        /// Its length.
        bytes: u64,
    },
    /// HTTP says why.
    #[error("the server answered with HTTP status {status}{}", shown_body(body))]
    Http {
        /// The status.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The network says why.
    #[error("{0}")]
    Broken(String),
}

fn shown_body(body: &str) -> String {
    match body.trim() {
        "" => String::new(),
        body => format!(": {body}"),
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server closed it.
    Closed,
    /// The server does not read.
    Stuck,
    /// It broke.
    Broken(String),
}

/// One side of a connection.
pub(crate) struct Peer {
    tap: Tap,
    answers: Answers,
    state: Mutex<State>,
    ended: watch::Sender<Option<Ended>>,
    /// Counts messages that change what a server offers.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    next_id: u64,
    pending: BTreeMap<u64, Pending>,
    /// Ids that were answered, or given up.
    past: BTreeMap<u64, Past>,
}

struct Pending {
    to: oneshot::Sender<Outcome>,
    progress: watch::Sender<Instant>,
}

#[derive(Clone, Copy, PartialEq)]
enum Past {
    Answered,
    GivenUp,
}

/// A request that waits for its answer.
pub(crate) struct Waiting {
    pub(crate) id: u64,
    pub(crate) answer: oneshot::Receiver<Outcome>,
    /// When the server last said that it was making progress.
    pub(crate) progress: watch::Receiver<Instant>,
}

impl Peer {
    pub(crate) fn new(tap: Tap, answers: Answers) -> Self {
        Self {
            tap,
            answers,
            state: Mutex::default(),
            ended: watch::Sender::new(None),
            changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn tap(&self) -> &Tap {
        &self.tap
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Takes a new id, and waits for its answer.
    pub(crate) fn expect(&self) -> Waiting {
        let mut state = self.lock();
        state.next_id += 1;
        let id = state.next_id;
        let (to, answer) = oneshot::channel();
        let (progress, seen) = watch::channel(Instant::now());
        state.pending.insert(id, Pending { to, progress });
        Waiting {
            id,
            answer,
            progress: seen,
        }
    }

    /// Stops to wait for an answer.
    pub(crate) fn give_up(&self, id: u64) {
        let mut state = self.lock();
        if state.pending.remove(&id).is_some() {
            state.remember(id, Past::GivenUp);
        }
    }

    /// Ends a request without an answer, unless it has one already.
    pub(crate) fn fail(&self, id: u64, failure: Failure) {
        let mut state = self.lock();
        if let Some(pending) = state.pending.remove(&id) {
            state.remember(id, Past::GivenUp);
            let _ = pending.to.send(Err(failure));
        }
    }

    /// Notes the end of the connection. The first reason stays.
    pub(crate) fn end(&self, how: Ended) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(how);
            }
            first
        });
        // Nobody will answer any more.
        self.lock().pending.clear();
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    /// How often the server said that a list changed.
    pub(crate) fn changes(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Notes a message that was too large to be taken in. It may have been the answer to any
    /// request; if only one waits, it was that one's.
    pub(crate) fn oversized(&self, bytes: u64) {
        self.tap
            .finding(FindingKind::TooLarge, format!("a message of {bytes} bytes"));
        let mut state = self.lock();
        if state.pending.len() == 1
            && let Some((id, pending)) = state.pending.pop_first()
        {
            state.remember(id, Past::Answered);
            let _ = pending.to.send(Err(Failure::TooLarge { bytes }));
        }
    }

    /// Takes in a message, and gives what has to be answered.
    pub(crate) fn receive(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let text = String::from_utf8_lossy(bytes);
        if let std::borrow::Cow::Owned(_) = text {
            self.tap
                .finding(FindingKind::Malformed, "a message that is not UTF-8");
        }
        let messages = match Message::parse(&text) {
            Ok(messages) => messages,
            Err(error) => {
                self.tap
                    .finding(FindingKind::Malformed, format!("not a message: {error}"));
                return Vec::new();
            }
        };
        messages
            .iter()
            .filter_map(|message| self.one(message))
            .collect()
    }

    fn one(&self, message: &Message<'_>) -> Option<Vec<u8>> {
        if message.jsonrpc.as_deref() != Some("2.0") {
            let detail = "a message that does not say `\"jsonrpc\": \"2.0\"`";
            self.tap.finding(FindingKind::Protocol, detail);
        }
        match message.kind() {
            Kind::Request { id, method } => {
                let outcome = self.answers.to(method);
                return Some(answer(
                    id,
                    outcome.as_deref().map_err(|e| (e.0, e.1.as_str())),
                ));
            }
            Kind::Notification { method, params } => self.notified(method, params),
            Kind::Answer { id, outcome, both } => {
                if both {
                    let detail =
                        format!("the answer to {} has both a result and an error", id.get());
                    self.tap.finding(FindingKind::ResultAndError, detail);
                }
                self.answered(id, outcome);
            }
            Kind::Neither => {
                let detail = "a message that is neither request, notification nor answer";
                self.tap.finding(FindingKind::Malformed, detail);
            }
        }
        None
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method.ends_with("/list_changed") {
            self.changes.send_modify(|count| *count += 1);
        }
        if method == "notifications/progress"
            && let Some(token) = params.and_then(progress_token)
            && let Some(pending) = self.lock().pending.get(&token)
        {
            pending.progress.send_replace(Instant::now());
        }
    }

    fn answered(&self, id: &RawValue, outcome: Result<&RawValue, &RawValue>) {
        let number = id.get().parse::<u64>().ok();
        let mut state = self.lock();
        let Some((number, pending)) = number.and_then(|n| Some((n, state.pending.remove(&n)?)))
        else {
            let past = number.and_then(|n| state.past.get(&n).copied());
            drop(state);
            let (kind, what) = match past {
                Some(Past::Answered) => (FindingKind::DuplicateAnswer, "a second answer to"),
                Some(Past::GivenUp) => (
                    FindingKind::LateAnswer,
                    "an answer after it was given up to",
                ),
                None => (
                    FindingKind::UnknownId,
                    "an answer to a request that nobody made,",
                ),
            };
            self.tap.finding(
                kind,
                format!("{what} {}", self.tap.head(id.get().as_bytes(), SHOWN)),
            );
            return;
        };
        state.remember(number, Past::Answered);
        drop(state);
        let outcome = match outcome {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(Failure::Rpc(self.error(error))),
        };
        // Whoever waited may have gone.
        let _ = pending.to.send(outcome);
    }

    fn error(&self, raw: &RawValue) -> RpcError {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| {
            let detail = format!(
                "an error that is none: {}",
                self.tap.head(raw.get().as_bytes(), SHOWN)
            );
            self.tap.finding(FindingKind::Malformed, detail.clone());
            RpcError {
                code: 0,
                message: detail,
                data: None,
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, id: u64, past: Past) {
        self.past.insert(id, past);
        while self.past.len() > REMEMBERED {
            self.past.pop_first();
        }
    }
}

fn progress_token(params: &RawValue) -> Option<u64> {
    let params: Value = serde_json::from_str(params.get()).ok()?;
    params.get("progressToken")?.as_u64()
}

#[cfg(test)]
mod tests;

//! Who asked what: pairs answers with requests, and answers the server's own requests.
//!
//! Its main type is [`Peer`]. Whatever arrives, in whatever order and shape, it never blocks, never
//! panics and never sends an error back for something that was no request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use proctor_core::event::FindingKind;
use proctor_core::message::{self, Id, Kind, Message};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::answers::Answers;
use crate::recorder::{Oversized, Tap};
use crate::rpc::{RpcError, answer};

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
    /// The response ended, and the answer was not in it.
    #[error("the response{} ended without an answer", shown_kind(what.as_deref()))]
    NoAnswer {
        /// What it claimed to be.
        what: Option<String>,
    },
    /// The network says why.
    #[error("{0}")]
    Broken(String),
}

fn shown_kind(what: Option<&str>) -> String {
    what.map_or(String::new(), |what| format!(" ({what})"))
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
        // A connection that has ended answers nobody: the wait ends at once.
        if self.ended.borrow().is_none() {
            state.pending.insert(id, Pending { to, progress });
        }
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

    /// Notes a message that was too large to be taken in, and ends the request that it answered: on
    /// HTTP the exchange's own; on one stream, the only one that waits, unless the message starts as
    /// one that answers nobody.
    pub(crate) fn oversized(&self, cut: &Oversized, own: Option<u64>) {
        let bytes = cut.bytes;
        self.tap
            .finding(FindingKind::TooLarge, format!("a message of {bytes} bytes"));
        if memchr::memmem::find(&cut.head, b"\"method\"").is_some() {
            return;
        }
        let meant = own.or_else(|| self.lock().only_pending());
        if let Some(id) = meant {
            self.fail(id, Failure::TooLarge { bytes });
        }
    }

    /// Takes in a message, and gives what has to be answered. On HTTP, `own` is the request that it
    /// came in response to.
    pub(crate) fn receive(&self, bytes: &[u8], own: Option<u64>) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        let parsed = message::each(bytes, &mut |message| answers.extend(self.one(message, own)));
        if let Err(unparsable) = parsed {
            let detail = format!("not a message: {}", unparsable.reason);
            self.tap.finding(FindingKind::Malformed, detail);
        }
        answers
    }

    fn one(&self, message: &Message<'_>, own: Option<u64>) -> Option<Vec<u8>> {
        if message.jsonrpc.as_deref() != Some("2.0") {
            let detail = "a message that does not say `\"jsonrpc\": \"2.0\"`";
            self.tap.finding(FindingKind::Protocol, detail);
        }
        match (message.kind(), message.id) {
            (Kind::Request { method, .. }, Some(id)) => {
                let outcome = self.answers.to(method);
                let outcome = outcome.as_deref().map_err(|e| (e.0, e.1.as_str()));
                return Some(answer(id, outcome));
            }
            (Kind::Notification { method }, _) => self.notified(method, message.params),
            (Kind::Answer { id }, _) => self.answered(&id, message, own),
            _ => {
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

    fn answered(&self, id: &Id, message: &Message<'_>, own: Option<u64>) {
        let outcome = match (message.result, message.error) {
            (Some(result), error) => {
                if error.is_some() {
                    let detail = format!("the answer with {id} has both a result and an error");
                    self.tap.finding(FindingKind::ResultAndError, detail);
                }
                Ok(result.to_owned())
            }
            (None, Some(error)) => Err(Failure::Rpc(self.error(error))),
            (None, None) => return,
        };
        let mut state = self.lock();
        let number = match id {
            Id::Value(id) => id.parse::<u64>().ok(),
            // A server that could not read a request can't name it. Only one can be meant.
            Id::Absent => own.or_else(|| state.only_pending()),
        };
        let Some((number, pending)) = number.and_then(|n| Some((n, state.pending.remove(&n)?)))
        else {
            let past = number.and_then(|n| state.past.get(&n).copied());
            drop(state);
            let (kind, what) = match past {
                Some(Past::Answered) => (FindingKind::DuplicateAnswer, "a second answer with"),
                Some(Past::GivenUp) => (FindingKind::LateAnswer, "an answer after giving up, with"),
                None => (
                    FindingKind::UnknownId,
                    "an answer to a request that nobody made, with",
                ),
            };
            self.tap.finding(kind, format!("{what} {id}"));
            return;
        };
        state.remember(number, Past::Answered);
        drop(state);
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

impl Drop for Peer {
    fn drop(&mut self) {
        // Whoever gave up on the connection had no time to say how it ended.
        self.tap.close("was given up".to_owned(), None);
    }
}

impl State {
    /// The request that waits, if it is the only one.
    fn only_pending(&self) -> Option<u64> {
        let mut ids = self.pending.keys();
        let first = ids.next().copied();
        first.filter(|_| ids.next().is_none())
    }

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

//! What the record says of the servers' part in a trial: calls that got no answer, and servers that
//! ended the connection.
//!
//! Its main type is [`Conduct`]. It holds facts only; what they mean for the trial is decided in
//! [`decision`](crate::decision).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::event::{
    ConnectionClosed, ConnectionEnd, ConnectionId, EndedBy, HttpFailure, HttpHead, ProcessEnd,
};
use crate::json;
use crate::transcript::{Call, CallOutcome, CallRequest, Payload};

use super::MessagePosition;
use super::pairing::{CancelReason, PendingRequest};

/// A call that got no JSON-RPC answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnansweredCall {
    /// The number of the request in the trial's record.
    pub seq: u64,
    /// The connection it was made on.
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    /// The tool or prompt by its name, or the resource by its URI.
    pub target: String,
    /// What came instead of an answer.
    pub cause: NoAnswer,
    /// From the request to the moment it was known that no answer comes.
    pub waited: Duration,
    /// Why it does not count against the server.
    pub excuse: Option<Excuse>,
}

/// What came instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The server's process ended before Proctor sent it a signal.
    ServerEnded(ProcessEnd),
    /// The server closed the connection.
    ServerClosed,
    /// An HTTP status without a JSON-RPC message.
    Status(u16),
    /// A response without a JSON-RPC answer.
    NotJsonRpc,
    /// The server could not be reached, or broke off: why, in words.
    Broken(String),
    /// The client waited as long as it was told to.
    TimedOut,
    /// The connection ended, or the client left, while the server was running.
    ClientLeft,
}

/// Why an unanswered call does not count against the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excuse {
    /// The client cancelled it.
    Cancelled,
    /// The agent made the same call again, and that was answered.
    Repeated,
}

/// A connection that the server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEnd {
    /// The connection.
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    /// How, in words.
    pub how: String,
    /// The end of what it wrote to its stderr.
    pub stderr: Option<String>,
    /// Whether it had sent anything before.
    pub has_spoken: bool,
    /// Whether the client connected to the same server again afterwards.
    pub reopened: bool,
}

/// What the servers of a trial did, as far as it is not in the transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conduct {
    /// The calls without an answer, in order.
    pub unanswered: Vec<UnansweredCall>,
    /// The connections that servers ended, in order.
    pub ended: Vec<ServerEnd>,
}

/// Conduct, as far as the events are known.
#[derive(Debug, Default)]
pub(super) struct ConductFold {
    exchanges: HashMap<(ConnectionId, u64), HttpExchangeFacts>,
    /// On the older HTTP: the POST whose message has not come yet.
    posting: HashMap<ConnectionId, u64>,
    /// On the older HTTP: the POST that a request came in, by the request's number.
    posted: HashMap<u64, u64>,
    spoken: HashSet<ConnectionId>,
    closed: Vec<(u64, ConnectionClosed)>,
    /// Calls that were answered after the client gave up.
    late: Vec<(ConnectionId, PendingRequest)>,
    last_at: u64,
}

/// What is known of an HTTP exchange.
#[derive(Debug, Default)]
struct HttpExchangeFacts {
    status: Option<u16>,
    failure: Option<(HttpFailure, String)>,
    at: u64,
}

impl ConductFold {
    pub(super) fn at(&mut self, at: u64) {
        self.last_at = at;
    }

    pub(super) fn http(&mut self, http: &HttpHead) {
        let at = self.last_at;
        if http.direction == crate::event::Direction::ToServer && http.failure.is_none() {
            self.posting.insert(http.conn, http.exchange);
            return;
        }
        let exchange = self
            .exchanges
            .entry((http.conn, http.exchange))
            .or_default();
        exchange.at = at;
        if let Some(status) = http.status() {
            exchange.status.get_or_insert(status);
        }
        if let Some(failure) = http.failure {
            exchange.failure.get_or_insert((failure, http.line.clone()));
        }
    }

    /// A frame to the server on the older HTTP, whose messages name no exchange.
    pub(super) fn posted(&mut self, place: MessagePosition) {
        if let Some(exchange) = self.posting.remove(&place.conn) {
            self.posted.insert(place.seq, exchange);
        }
    }

    pub(super) fn spoke(&mut self, conn: ConnectionId) {
        self.spoken.insert(conn);
    }

    pub(super) fn closed(&mut self, closed: &ConnectionClosed) {
        self.closed.push((self.last_at, closed.clone()));
    }

    /// An answer came that nobody waited for. What the client cancelled is told as a late answer only.
    pub(super) fn late(&mut self, conn: ConnectionId, asked: PendingRequest) {
        if matches!(asked.cancelled, Some((CancelReason::TimedOut, _))) {
            self.late.push((conn, asked));
        }
    }

    /// The status of a response that is no success, if this is a part of one.
    pub(super) fn refusal(&self, place: MessagePosition) -> Option<u16> {
        let exchange = self.exchanges.get(&(place.conn, place.exchange?))?;
        exchange
            .status
            .filter(|status| !(200..300).contains(status))
    }

    /// The calls that were never answered. Whoever still waits for one is left out.
    pub(super) fn unanswered(
        &mut self,
        waiting: impl Iterator<Item = (ConnectionId, PendingRequest)>,
        calls: &[Call],
        made_at: &[u64],
        has_ended: bool,
    ) -> Vec<UnansweredCall> {
        let late = std::mem::take(&mut self.late);
        let mut found: Vec<UnansweredCall> = late
            .into_iter()
            .chain(waiting)
            .filter_map(|(conn, asked)| self.one(conn, &asked, calls, made_at, has_ended))
            .collect();
        found.sort_by_key(|unanswered| unanswered.seq);
        found
    }

    fn one(
        &self,
        conn: ConnectionId,
        asked: &PendingRequest,
        calls: &[Call],
        made_at: &[u64],
        has_ended: bool,
    ) -> Option<UnansweredCall> {
        let index = asked.call.filter(|_| asked.cut.is_none())?;
        let call = calls
            .get(index)
            .filter(|call| call.answer == CallOutcome::None)?;
        let closed = self.closed.iter().rev().find(|(_, c)| c.conn == conn);
        let end = closed.and_then(|(_, closed)| closed.end);
        let exchange = asked
            .exchange
            .or_else(|| self.posted.get(&call.seq).copied());
        let exchange = exchange.and_then(|number| self.exchanges.get(&(conn, number)));
        let is_over = closed.is_some() || has_ended;
        let cause = cause(asked, end, exchange, is_over)?;
        // Some clients cancel a call once it has failed: that takes nothing back.
        let is_open = cause == NoAnswer::ClientLeft;
        let cancelled = asked.cancelled.map(|(why, _)| why).filter(|_| is_open);
        // Whoever asked has gone, as the stateless era allows: that is not even worth a finding.
        if cancelled == Some(CancelReason::Unwanted) {
            return None;
        }
        let excuse = if cancelled == Some(CancelReason::GivenUp) {
            Some(Excuse::Cancelled)
        } else {
            is_repeated(call, calls).then_some(Excuse::Repeated)
        };
        let until = asked
            .cancelled
            .map(|(_, at)| at)
            .or(exchange.map(|exchange| exchange.at))
            .or(closed.map(|(at, _)| *at))
            .unwrap_or(self.last_at);
        let waited = until.saturating_sub(made_at.get(index).copied().unwrap_or(until));
        Some(UnansweredCall {
            seq: call.seq,
            conn,
            server: call.server.clone(),
            target: target(call).to_owned(),
            cause,
            waited: Duration::from_micros(waited),
            excuse,
        })
    }

    /// The connections that servers ended, of those that count.
    pub(super) fn ended(
        &self,
        server_of: impl Fn(ConnectionId) -> Option<String>,
        opened_after: impl Fn(ConnectionId) -> bool,
    ) -> Vec<ServerEnd> {
        let by_server =
            |closed: &&ConnectionClosed| closed.end.is_some_and(|end| end.by == EndedBy::Server);
        self.closed
            .iter()
            .map(|(_, closed)| closed)
            .filter(by_server)
            .filter_map(|closed| {
                Some(ServerEnd {
                    conn: closed.conn,
                    server: server_of(closed.conn)?,
                    how: closed.reason.clone(),
                    stderr: closed.stderr.clone(),
                    has_spoken: self.spoken.contains(&closed.conn),
                    reopened: opened_after(closed.conn),
                })
            })
            .collect()
    }
}

/// Why a call has no answer; `None` if one may still come.
fn cause(
    asked: &PendingRequest,
    end: Option<ConnectionEnd>,
    exchange: Option<&HttpExchangeFacts>,
    is_over: bool,
) -> Option<NoAnswer> {
    if let Some(exchange) = exchange
        && let Some(cause) = exchange.cause()
    {
        return Some(cause);
    }
    if let Some(end) = end.filter(|_| asked.exchange.is_none()) {
        // A server that dies may do so while its client cancels, or leaves.
        let own = end.own_end();
        match (end.by, own) {
            (_, Some(own)) if own != ProcessEnd::Exited(0) => {
                return Some(NoAnswer::ServerEnded(own));
            }
            (EndedBy::Server, Some(own)) => return Some(NoAnswer::ServerEnded(own)),
            (EndedBy::Server, None) => return Some(NoAnswer::ServerClosed),
            (EndedBy::Client | EndedBy::Proctor, _) => {}
        }
    }
    match asked.cancelled {
        Some((CancelReason::TimedOut, _)) => return Some(NoAnswer::TimedOut),
        Some((CancelReason::GivenUp | CancelReason::Unwanted, _)) => {
            return Some(NoAnswer::ClientLeft);
        }
        None => {}
    }
    match (is_over, exchange, end.and_then(|end| end.own_end())) {
        (false, ..) => None,
        (true, Some(exchange), _) if exchange.status.is_some() && exchange.failure.is_none() => {
            Some(NoAnswer::NotJsonRpc)
        }
        (true, None, Some(own)) if asked.exchange.is_none() => Some(NoAnswer::ServerEnded(own)),
        (true, ..) => Some(NoAnswer::ClientLeft),
    }
}

impl HttpExchangeFacts {
    /// What the exchange itself says; nothing if it was well, or if only its client left.
    fn cause(&self) -> Option<NoAnswer> {
        match (&self.failure, self.status) {
            (Some((HttpFailure::Broken, why)), _) => Some(NoAnswer::Broken(why.clone())),
            (_, Some(status)) if !(200..300).contains(&status) => Some(NoAnswer::Status(status)),
            (Some((HttpFailure::TimedOut, _)), _) => Some(NoAnswer::TimedOut),
            (Some((HttpFailure::ClientLeft, _)) | None, _) => None,
        }
    }
}

/// What a call is about.
pub(super) fn target(call: &Call) -> &str {
    match &call.request {
        CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => name,
        CallRequest::Resource { uri } => uri,
    }
}

/// Whether the same call was made later, and succeeded.
fn is_repeated(call: &Call, calls: &[Call]) -> bool {
    let later = calls.iter().filter(|other| other.seq > call.seq);
    let mut same = later.filter(|other| other.server == call.server && is_same(call, other));
    same.any(|other| match &other.answer {
        CallOutcome::Result(Payload::Value(value)) => value["isError"].as_bool() != Some(true),
        CallOutcome::Result(_) | CallOutcome::Error { .. } | CallOutcome::None => false,
    })
}

fn is_same(a: &Call, b: &Call) -> bool {
    match (&a.request, &b.request) {
        (CallRequest::Resource { uri }, CallRequest::Resource { uri: other }) => uri == other,
        (
            CallRequest::Tool { name, arguments },
            CallRequest::Tool {
                name: other,
                arguments: others,
            },
        )
        | (
            CallRequest::Prompt { name, arguments },
            CallRequest::Prompt {
                name: other,
                arguments: others,
            },
        ) => name == other && equal(arguments, others),
        _ => false,
    }
}

/// Whether arguments are known to be the same. No arguments are an empty object.
fn equal(a: &Payload, b: &Payload) -> bool {
    let empty = serde_json::Value::Object(serde_json::Map::new());
    match (a.read(), b.read()) {
        (Ok(a), Ok(b)) => json::equal(a.unwrap_or(&empty), b.unwrap_or(&empty)),
        _ => false,
    }
}

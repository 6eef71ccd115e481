//! The servers' conduct in a trial: calls without a response, and connections that servers ended.
//!
//! The main type is [`Conduct`]. It holds only facts; [`decision`](crate::decision) decides what
//! they mean for the trial.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::event::{
    ConnectionClosed, ConnectionEnd, ConnectionId, EndedBy, HttpFailure, HttpHead, ProcessEnd,
};
use crate::json;
use crate::transcript::{Call, CallOutcome, CallRequest, Payload};

use super::MessagePosition;
use super::pairing::{CancelReason, PendingRequest};

/// A call without a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnansweredCall {
    /// The sequence number of the request in the trial's record.
    pub seq: u64,
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    /// The tool, prompt or resource URI.
    pub target: String,
    /// What came instead of a response.
    pub cause: NoAnswer,
    /// The time from the request until it was clear that no response would come.
    pub waited: Duration,
    /// Why the call does not count against the server.
    pub excuse: Option<Excuse>,
}

/// What came instead of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The server's process ended before Proctor sent it a signal.
    ServerEnded(ProcessEnd),
    /// The server closed the connection.
    ServerClosed,
    /// An HTTP status without a JSON-RPC message.
    Status(u16),
    /// A response without a JSON-RPC message.
    NotJsonRpc,
    /// The server could not be reached, or the connection broke, with the reason.
    Broken(String),
    /// The client's timeout expired.
    TimedOut,
    /// Proctor had no valid token for the server, with the reason.
    NoToken(String),
    /// The connection ended, or the client disconnected, while the server was running.
    ClientLeft,
}

/// Why an unanswered call does not count against the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excuse {
    Cancelled,
    /// The agent repeated the call, and that was answered.
    Repeated,
}

/// A connection that the server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEnd {
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    pub how: String,
    /// The end of the server's stderr.
    pub stderr: Option<String>,
    /// Whether the server had sent anything before.
    pub has_spoken: bool,
    /// Whether the client connected to the same server again later.
    pub reopened: bool,
}

/// The servers' conduct in a trial, as far as it is not in the transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conduct {
    /// The calls without a response, in order.
    pub unanswered: Vec<UnansweredCall>,
    /// The connections that servers ended, in order.
    pub ended: Vec<ServerEnd>,
}

/// The calls of a trial, without those that were taken from its fold.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeCalls<'a> {
    pub(super) calls: &'a [Call],
    /// The time of each call.
    pub(super) made_at: &'a [u64],
    /// The number of calls before them.
    pub(super) taken: usize,
}

/// A fold of conduct in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct ConductFold {
    exchanges: HashMap<(ConnectionId, u64), HttpExchangeFacts>,
    /// With HTTP+SSE: the POST whose message has not come yet.
    posting: HashMap<ConnectionId, u64>,
    /// With HTTP+SSE: the POST of a request, by the request's number.
    posted: HashMap<u64, u64>,
    spoken: HashSet<ConnectionId>,
    closed: Vec<(u64, ConnectionClosed)>,
    /// Calls that were answered after the client gave up.
    late: Vec<(ConnectionId, PendingRequest)>,
    last_at: u64,
}

/// The facts about an HTTP exchange.
#[derive(Debug, Clone, Default)]
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

    /// A message to the server with HTTP+SSE, where messages don't name their exchange.
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

    /// Adds a late response. For a cancelled request, it is only a finding.
    pub(super) fn late(&mut self, conn: ConnectionId, asked: PendingRequest) {
        if matches!(asked.cancelled, Some((CancelReason::TimedOut, _))) {
            self.late.push((conn, asked));
        }
    }

    /// The status of an error response, if the message is part of one.
    pub(super) fn refusal(&self, place: MessagePosition) -> Option<u16> {
        let exchange = self.exchanges.get(&(place.conn, place.exchange?))?;
        exchange
            .status
            .filter(|status| !(200..300).contains(status))
    }

    /// The calls that were never answered, without those whose client still waits.
    pub(super) fn unanswered(
        &mut self,
        waiting: impl Iterator<Item = (ConnectionId, PendingRequest)>,
        calls: MadeCalls<'_>,
        has_ended: bool,
    ) -> Vec<UnansweredCall> {
        let late = std::mem::take(&mut self.late);
        let mut found: Vec<(Option<usize>, UnansweredCall)> = late
            .into_iter()
            .chain(waiting)
            .filter_map(|(conn, asked)| {
                let unanswered = self.one(conn, &asked, calls, has_ended)?;
                Some((asked.call, unanswered))
            })
            .collect();
        // The calls of a batch have the same `seq`, and `waiting` has no order.
        found.sort_by_key(|(call, unanswered)| (unanswered.seq, *call));
        found
            .into_iter()
            .map(|(_, unanswered)| unanswered)
            .collect()
    }

    fn one(
        &self,
        conn: ConnectionId,
        asked: &PendingRequest,
        calls: MadeCalls<'_>,
        has_ended: bool,
    ) -> Option<UnansweredCall> {
        let index = asked.call.filter(|_| asked.cut.is_none())?;
        // A call without a response is never taken, nor is a later one.
        let index = index.checked_sub(calls.taken)?;
        let call = calls
            .calls
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
        // Some clients cancel a call after it has failed, which does not change the failure.
        let is_open = cause == NoAnswer::ClientLeft;
        let cancelled = asked.cancelled.map(|(why, _)| why).filter(|_| is_open);
        // The client has disconnected, as the stateless era allows: that is not even a finding.
        if cancelled == Some(CancelReason::Unwanted) {
            return None;
        }
        let excuse = if cancelled == Some(CancelReason::GivenUp) {
            Some(Excuse::Cancelled)
        } else {
            is_repeated(call, calls.calls).then_some(Excuse::Repeated)
        };
        let until = asked
            .cancelled
            .map(|(_, at)| at)
            .or(exchange.map(|exchange| exchange.at))
            .or(closed.map(|(at, _)| *at))
            .unwrap_or(self.last_at);
        let waited = until.saturating_sub(calls.made_at.get(index).copied().unwrap_or(until));
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

    /// The connections that servers ended, without those that don't count.
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

/// Why a call has no response; `None` if one may still come.
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
        // A server may die while its client cancels or disconnects.
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
    /// The failure of the exchange; `None` if it succeeded, or if only its client disconnected.
    fn cause(&self) -> Option<NoAnswer> {
        match (&self.failure, self.status) {
            (Some((HttpFailure::Unauthorized, why)), _) => Some(NoAnswer::NoToken(why.clone())),
            (Some((HttpFailure::Broken, why)), _) => Some(NoAnswer::Broken(why.clone())),
            (_, Some(status)) if !(200..300).contains(&status) => Some(NoAnswer::Status(status)),
            (Some((HttpFailure::TimedOut, _)), _) => Some(NoAnswer::TimedOut),
            (Some((HttpFailure::ClientLeft, _)) | None, _) => None,
        }
    }
}

/// The target of a call.
pub(super) fn target(call: &Call) -> &str {
    match &call.request {
        CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => name,
        CallRequest::Resource { uri } => uri,
    }
}

/// Whether the same call was made later and succeeded.
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

/// Whether arguments are known to be equal. Missing arguments equal an empty object.
fn equal(a: &Payload, b: &Payload) -> bool {
    let empty = serde_json::Value::Object(serde_json::Map::new());
    match (a.read(), b.read()) {
        (Ok(a), Ok(b)) => json::equal(a.unwrap_or(&empty), b.unwrap_or(&empty)),
        _ => false,
    }
}

//! Decides whether HTTP error responses and cancellations answer a call.

use serde_json::value::RawValue;

use crate::event::FindingKind;
use crate::json;
use crate::message::{self, Id, Message, MessageKind};

use super::conduct::{Excuse, NoAnswer, UnansweredCall};
use super::findings::Findings;
use super::pairing::CancelReason;
use super::{Fold, MessagePosition};

impl Fold {
    /// Handles the body of a response without a success status. Only a JSON-RPC message in it is a
    /// response: the text of a gateway is not.
    pub(super) fn refused(&mut self, place: MessagePosition, status: u16, bytes: &[u8]) {
        let _ = message::each(bytes, &mut |message| {
            if is_answer(message, status) {
                self.received(place, message);
            }
        });
    }
}

/// Whether a message with this status answers its request.
fn is_answer(message: &Message<'_>, status: u16) -> bool {
    let has_error = message.error.is_some_and(is_error);
    match message.kind() {
        MessageKind::Answer { id: Id::Value(_) } => has_error || message.result.is_some(),
        // It names no request. For an invalid request that reached its server, it is a response;
        // for one that was rejected or did not arrive, it is not.
        MessageKind::Answer { id: Id::Absent } => {
            has_error && (400..500).contains(&status) && ![401, 403, 404].contains(&status)
        }
        MessageKind::Request { .. } | MessageKind::Notification { .. } | MessageKind::Neither => {
            false
        }
    }
}

/// Whether this is a JSON-RPC error: OAuth has a text in the same place.
fn is_error(raw: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct RpcErrorCode {
        #[serde(rename = "code")]
        _code: i64,
    }
    json::from_str::<RpcErrorCode>(raw.get()).is_ok()
}

impl CancelReason {
    /// The client's own reason for a cancellation.
    pub(super) fn of(message: &Message<'_>) -> Self {
        #[derive(serde::Deserialize)]
        struct Params {
            reason: Option<String>,
        }
        if message.is_unwanted() {
            return Self::Unwanted;
        }
        let params = message.params.map(RawValue::get);
        let params = params.and_then(|params| json::from_str::<Params>(params).ok());
        let reason = params.and_then(|params| params.reason).unwrap_or_default();
        let reason = reason.to_lowercase();
        // Phrases of the official clients and of Proctor.
        let words = ["timed out", "timeout", "time-out", "deadline", "in time"];
        if words.iter().any(|word| reason.contains(word)) {
            Self::TimedOut
        } else {
            Self::GivenUp
        }
    }
}

impl Findings {
    /// Adds a finding for a call without a response, unless the client cancelled it on its own.
    pub(super) fn unanswered(&mut self, unanswered: &UnansweredCall) {
        let waited = crate::duration::brief(unanswered.waited);
        let target = &unanswered.target;
        let why = match unanswered.excuse {
            Some(Excuse::Cancelled) => "the client cancelled it".to_owned(),
            Some(Excuse::Repeated) | None => unanswered.cause.to_string(),
        };
        let detail = format!("`{target}` got no answer in {waited}: {why}");
        let place = MessagePosition {
            seq: unanswered.seq,
            at: 0,
            conn: unanswered.conn,
            exchange: None,
            // A server that obeys a cancellation sends no response.
            direction: match unanswered.excuse {
                Some(Excuse::Cancelled) => crate::event::Direction::ToServer,
                Some(Excuse::Repeated) | None => crate::event::Direction::ToClient,
            },
        };
        self.derived(place, FindingKind::Unanswered, &detail);
    }
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ServerEnded(how) => write!(f, "the server {how}"),
            Self::ServerClosed => f.write_str("the server closed the connection"),
            Self::Status(status) => write!(f, "HTTP status {status}"),
            Self::NotJsonRpc => f.write_str("the HTTP response has no JSON-RPC message"),
            Self::Broken(why) | Self::NoToken(why) => write!(f, "{why}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::ClientLeft => f.write_str("the connection ended"),
        }
    }
}

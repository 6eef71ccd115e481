//! The requests of servers to the client: elicitation, sampling and roots, with the replies.
//!
//! Its main type is [`ServerRequest`]. In the handshake era a server sends a request; in the
//! stateless era it asks in the result of a call, and the client calls again with its replies.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::MessagePosition;
use super::text::ClippedText;
use crate::event::ConnectionId;
use crate::json;
use crate::message::{Id, Message};

/// How many requests are kept.
const REQUESTS: usize = 10_000;

/// A request of a server to the client.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerRequest {
    /// The number of the event in the trial's record.
    pub seq: u64,
    /// When it arrived, in microseconds since the run started.
    pub at: u64,
    /// The server, by its name in the suite.
    pub server: String,
    pub method: String,
    /// What the server asks for: its message, or the parameters as JSON.
    pub text: ClippedText,
    /// The result or error that the client sent, as JSON; `None` if it sent none.
    pub reply: Option<ClippedText>,
}

/// Identifies a request until it has its reply.
#[derive(Debug, Clone, PartialEq)]
enum RequestKey {
    Id(Id),
    Input(String),
}

/// The requests so far.
#[derive(Debug, Clone)]
pub(super) struct ServerRequestFold {
    text_bytes: usize,
    open: VecDeque<(ConnectionId, RequestKey, ServerRequest)>,
    replied: Vec<ServerRequest>,
    count: usize,
}

/// The members of a result or of parameters that ask for input or give it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputMembers {
    #[serde(default)]
    input_requests: serde_json::Map<String, Value>,
    #[serde(default)]
    input_responses: serde_json::Map<String, Value>,
}

impl InputMembers {
    fn read(raw: Option<&RawValue>, member: &str) -> Option<Self> {
        let raw = raw?.get();
        raw.contains(member)
            .then(|| json::from_str(raw).ok())
            .flatten()
    }
}

impl ServerRequestFold {
    pub(super) fn new(text_bytes: usize) -> Self {
        Self {
            text_bytes,
            open: VecDeque::new(),
            replied: Vec::new(),
            count: 0,
        }
    }

    /// Takes a request that the server sent.
    pub(super) fn asked(
        &mut self,
        place: MessagePosition,
        server: &str,
        (id, method): (Id, &str),
        message: &Message<'_>,
    ) {
        if method == "ping" {
            return;
        }
        let params = message.params.map(RawValue::get).unwrap_or_default();
        let params = json::from_str(params).unwrap_or_default();
        self.add(place, server, RequestKey::Id(id), (method, &params));
    }

    /// Takes the requests for input in the result of a call.
    pub(super) fn answered(&mut self, place: MessagePosition, server: &str, message: &Message<'_>) {
        let Some(found) = InputMembers::read(message.result, "\"inputRequests\"") else {
            return;
        };
        for (key, request) in found.input_requests {
            let method = request["method"].as_str().unwrap_or_default();
            let asked = (method, &request["params"]);
            self.add(place, server, RequestKey::Input(key), asked);
        }
    }

    fn add(
        &mut self,
        place: MessagePosition,
        server: &str,
        key: RequestKey,
        (method, params): (&str, &Value),
    ) {
        if self.count >= REQUESTS {
            return;
        }
        self.count += 1;
        let text = match (params["message"].as_str(), params) {
            (Some(message), _) => message.to_owned(),
            (None, Value::Null) => String::new(),
            (None, params) => params.to_string(),
        };
        let request = ServerRequest {
            seq: place.seq,
            at: place.at,
            server: server.to_owned(),
            method: method.to_owned(),
            text: ClippedText::middle(&text, self.text_bytes),
            reply: None,
        };
        self.open.push_back((place.conn, key, request));
    }

    /// Takes the client's response to a request of the server.
    pub(super) fn replied(&mut self, place: MessagePosition, id: &Id, message: &Message<'_>) {
        let reply = message.result.or(message.error);
        let reply = reply.map(RawValue::get).unwrap_or_default();
        self.close(place, &RequestKey::Id(id.clone()), reply);
    }

    /// Takes the client's responses in a repeated call.
    pub(super) fn called(&mut self, place: MessagePosition, message: &Message<'_>) {
        let Some(found) = InputMembers::read(message.params, "\"inputResponses\"") else {
            return;
        };
        for (key, reply) in found.input_responses {
            self.close(place, &RequestKey::Input(key), &reply.to_string());
        }
    }

    fn close(&mut self, place: MessagePosition, key: &RequestKey, reply: &str) {
        let is_meant = |(conn, known, _): &(ConnectionId, RequestKey, ServerRequest)| {
            *conn == place.conn && known == key
        };
        let at = self.open.iter().position(is_meant);
        if let Some((_, _, mut request)) = at.and_then(|at| self.open.remove(at)) {
            request.reply = Some(ClippedText::middle(reply, self.text_bytes));
            self.replied.push(request);
        }
    }

    /// Removes the requests with a reply.
    pub(super) fn take(&mut self) -> Vec<ServerRequest> {
        std::mem::take(&mut self.replied)
    }

    pub(super) fn into_requests(mut self) -> Vec<ServerRequest> {
        let open = self.open.into_iter().map(|(_, _, request)| request);
        self.replied.extend(open);
        self.replied.sort_by_key(|request| request.seq);
        self.replied
    }
}

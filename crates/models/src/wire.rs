//! The wire formats of model APIs, for requests and replies in both directions.
//!
//! Main types: [`WireFormat`], [`ParsedModelRequest`], and [`StreamedReply`], which assembles a
//! reply from a stream. All functions are pure, so that the model server, the model clients and the
//! model tap share the same parsers.

mod chat;
mod conversation;
mod error;
mod gather;
mod gemini;
mod messages;
mod responses;
mod side;
#[cfg(test)]
mod tests;

use proctor_record::model::{ModelRequest, Reply};
use serde_json::Value;

pub(super) use self::chat::THINKING;
pub(super) use self::conversation::{looks_like_error, media_url};
pub use self::error::{ErrorKind, error_body};
pub use self::gather::StreamedReply;
pub use self::side::is_side_call;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireFormat {
    Chat,
    Responses,
    Messages,
    Gemini,
}

#[derive(Debug, Clone, Default)]
pub struct ParsedModelRequest {
    /// The requested model. Empty for Gemini, which names it in the path.
    pub model: String,
    pub request: ModelRequest,
    /// Whether the client asks for a stream. Always `false` for Gemini, which says so in the path.
    pub stream: bool,
    /// Whether the client asks for the token usage at the end of a stream.
    pub wants_usage: bool,
    /// The JSON schema that the reply must match, if any.
    pub wants_json: Option<Value>,
    /// Tools in namespaces, which have one joined name here.
    pub namespaces: Vec<NamespacedTool>,
}

/// A tool in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacedTool {
    /// The joined name, `namespace__name`.
    pub joined: String,
    pub namespace: String,
    pub name: String,
}

/// The data of a reply that does not come from the model.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The unique id of the reply.
    pub id: &'a str,
    pub model: &'a str,
    /// The time in seconds since 1970.
    pub created: i64,
    pub question: &'a ParsedModelRequest,
}

/// Why a request or a reply could not be parsed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// It is an error of the provider.
    #[error("error reply: {0}")]
    Error(Value),
    /// It does not have the expected form.
    #[error("{0}")]
    Odd(String),
}

impl FormatError {
    fn odd(text: impl Into<String>) -> Self {
        Self::Odd(text.into())
    }
}

pub fn question(format: WireFormat, body: &Value) -> Result<ParsedModelRequest, FormatError> {
    match format {
        WireFormat::Chat => chat::question(body),
        WireFormat::Responses => responses::question(body),
        WireFormat::Messages => messages::question(body),
        WireFormat::Gemini => gemini::question(body),
    }
}

/// Parses a complete reply, or one that [`StreamedReply`] assembled. Replaces call ids that the
/// conversation has already used.
pub fn reply(format: WireFormat, body: &Value, asked: &ModelRequest) -> Result<Reply, FormatError> {
    match format {
        WireFormat::Chat => chat::reply(body, asked),
        WireFormat::Responses => responses::reply(body, asked),
        WireFormat::Messages => messages::reply(body, asked),
        WireFormat::Gemini => gemini::reply(body, asked),
    }
}

/// Renders a complete reply.
pub fn render(format: WireFormat, reply: &Reply, envelope: &Envelope<'_>) -> Value {
    match format {
        WireFormat::Chat => chat::render(reply, envelope),
        WireFormat::Responses => responses::render(reply, envelope),
        WireFormat::Messages => messages::render(reply, envelope),
        WireFormat::Gemini => gemini::render(reply, envelope),
    }
}

/// Renders a reply as a list of server-sent events.
pub fn render_stream(format: WireFormat, reply: &Reply, envelope: &Envelope<'_>) -> Vec<String> {
    match format {
        WireFormat::Chat => {
            let mut events: Vec<String> = chat::events(reply, envelope)
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            events.push("data: [DONE]\n\n".to_owned());
            events
        }
        WireFormat::Responses => named(&responses::events(reply, envelope)),
        WireFormat::Messages => named(&messages::events(reply, envelope)),
        WireFormat::Gemini => gemini::events(reply, envelope)
            .iter()
            .map(|event| format!("data: {event}\r\n\r\n"))
            .collect(),
    }
}

/// Server-sent events that are named by the `type` of their data.
fn named(events: &[Value]) -> Vec<String> {
    let event = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

/// Splits a text into the pieces of a stream. An empty text has none.
fn pieces(text: &str) -> Vec<&str> {
    const EACH: usize = 24;
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .nth(EACH)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

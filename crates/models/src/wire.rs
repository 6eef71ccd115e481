//! The words in which models are asked over the network, and answer: four formats, both ways.
//!
//! Main types: [`WireFormat`], [`ParsedModelRequest`], which is a request that was understood, and [`StreamedReply`],
//! which makes one reply of a stream. Everything is a function of what is handed in, so that a model
//! that is served, one that is asked and one that is listened to are understood alike.

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

use proctor_core::model::{ModelRequest, Reply};
use serde_json::Value;

pub(super) use self::chat::THINKING;
pub(super) use self::conversation::{media_url, says_error};
pub use self::error::{ErrorKind, error_body};
pub use self::gather::StreamedReply;
pub use self::side::is_side_call;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's Gemini.
    Gemini,
}

/// A request, understood.
#[derive(Debug, Clone, Default)]
pub struct ParsedModelRequest {
    /// The model that is asked. Gemini names it in the path, and not here.
    pub model: String,
    /// What it is asked.
    pub request: ModelRequest,
    /// Whether the reply is wanted as it comes. Gemini says so in the path, and not here.
    pub stream: bool,
    /// Whether a stream should say at its end how many tokens it took, where that is asked for.
    pub wants_usage: bool,
    /// The schema of the JSON that the reply should be, if it should.
    pub wants_json: Option<Value>,
    /// Tools that are known to their agent by two names, and here by one.
    pub namespaces: Vec<NamespacedTool>,
}

/// A tool that has a name within another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacedTool {
    /// What it is called here.
    pub joined: String,
    /// The outer name.
    pub namespace: String,
    /// The inner name.
    pub name: String,
}

/// What a reply needs besides what the model says.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// A name of its own.
    pub id: &'a str,
    /// The model that replies.
    pub model: &'a str,
    /// When, in seconds since 1970.
    pub created: i64,
    /// What is answered.
    pub question: &'a ParsedModelRequest,
}

/// Why something could not be understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// It says that something went wrong.
    #[error("it is an error: {0}")]
    Error(Value),
    /// It is not what it should be.
    #[error("{0}")]
    Odd(String),
}

impl FormatError {
    fn odd(text: impl Into<String>) -> Self {
        Self::Odd(text.into())
    }
}

/// Understands a request.
pub fn question(format: WireFormat, body: &Value) -> Result<ParsedModelRequest, FormatError> {
    match format {
        WireFormat::Chat => chat::question(body),
        WireFormat::Responses => responses::question(body),
        WireFormat::Messages => messages::question(body),
        WireFormat::Gemini => gemini::question(body),
    }
}

/// Understands a reply that came whole, or was [gathered](Gathered). Ids of calls that the
/// conversation has used already are replaced.
pub fn reply(format: WireFormat, body: &Value, asked: &ModelRequest) -> Result<Reply, FormatError> {
    match format {
        WireFormat::Chat => chat::reply(body, asked),
        WireFormat::Responses => responses::reply(body, asked),
        WireFormat::Messages => messages::reply(body, asked),
        WireFormat::Gemini => gemini::reply(body, asked),
    }
}

/// A reply in the format's words, whole.
pub fn render(format: WireFormat, reply: &Reply, envelope: &Envelope<'_>) -> Value {
    match format {
        WireFormat::Chat => chat::render(reply, envelope),
        WireFormat::Responses => responses::render(reply, envelope),
        WireFormat::Messages => messages::render(reply, envelope),
        WireFormat::Gemini => gemini::render(reply, envelope),
    }
}

/// The same as a stream: one server-sent event after the other.
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

/// Events that are called what their `type` says.
fn named(events: &[Value]) -> Vec<String> {
    let event = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

/// A text in the pieces in which a stream brings it; an empty one has none.
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

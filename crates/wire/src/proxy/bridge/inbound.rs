//! Client messages, parsed as far as the bridge needs it.
//!
//! Its main type is [`Inbound`]. Messages stay unchanged except for line breaks: in JSON they are
//! white space, and on stdio they would end the message.

use std::borrow::Cow;

use crate::worker;
use data_encoding::BASE64;
use http::HeaderMap;
use proctor_record::json;
use proctor_record::message::{Id, Message, MessageKind};
use serde_json::value::RawValue;

use super::router::ClientRequest;

/// The protocol version of the stateless era.
const STATELESS: &str = "2026-07-28";
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const HEADER_MISMATCH: i64 = -32020;

/// A message or a batch of the client.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    pub(super) asks: Vec<ClientRequest>,
    /// The id of the request that it cancels.
    pub(super) cancels: Option<Id>,
    /// Whether it opens a session.
    pub(super) is_initialize: bool,
    /// Whether it asks which era the server supports.
    pub(super) is_discovery: bool,
    pub(super) is_stateless: bool,
}

/// Why the bridge rejects a message, in the words of the error response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageRejection {
    /// The JSON-RPC error code.
    pub(super) code: i64,
    pub(super) why: String,
    /// The raw JSON of the request's id.
    pub(super) id: String,
}

impl Inbound {
    /// Parses a request body.
    pub(super) fn read(body: &[u8], headers: &HeaderMap) -> Result<Self, MessageRejection> {
        let mut inbound = Self {
            is_stateless: header(headers, "mcp-protocol-version") == Some(STATELESS),
            ..Self::default()
        };
        let mut rejection = None;
        let parsed = worker::each_message(body, &mut |message| {
            if let Err(wrong) = inbound.take(message, headers) {
                rejection.get_or_insert(wrong);
            }
        });
        if let Err(unparsable) = parsed {
            return Err(MessageRejection::new(PARSE_ERROR, unparsable.reason));
        }
        if let Some(rejection) = rejection {
            return Err(rejection);
        }
        for ask in &mut inbound.asks {
            ask.ends_with_its_post = inbound.is_stateless;
        }
        Ok(inbound)
    }

    fn take(&mut self, message: &Message<'_>, headers: &HeaderMap) -> Result<(), MessageRejection> {
        let (method, id) = match (message.kind(), message.id) {
            (MessageKind::Request { id, method }, Some(written)) => {
                (method.to_owned(), (id, written))
            }
            (MessageKind::Notification { method }, _) => {
                if method == "notifications/cancelled" {
                    self.cancels = message.cancelled();
                }
                return Ok(());
            }
            (MessageKind::Answer { .. }, _) => return Ok(()),
            _ => {
                let why = "it is neither a request, a notification nor a response".to_owned();
                return Err(MessageRejection::new(INVALID_REQUEST, why));
            }
        };
        let (id, written) = (id.0, id.1.get().to_owned());
        if id == Id::Absent {
            let why = "a request must not have the id `null`".to_owned();
            return Err(MessageRejection::new(INVALID_REQUEST, why));
        }
        let about = message.params.map(RequestFields::of).unwrap_or_default();
        self.is_stateless |= about.version.is_some();
        self.is_initialize |= method == "initialize";
        self.is_discovery |= method == "server/discover";
        if self.is_stateless
            && let Err(why) = about.fits(&method, headers)
        {
            return Err(MessageRejection {
                code: HEADER_MISMATCH,
                why,
                id: written,
            });
        }
        if self.asks.iter().any(|ask| ask.id == id) {
            let why = format!("duplicate requests with {id}");
            return Err(MessageRejection::new(INVALID_REQUEST, why));
        }
        self.asks.push(ClientRequest {
            id,
            written,
            token: about.token,
            listens: method == "subscriptions/listen",
            ends_with_its_post: false,
        });
        Ok(())
    }
}

impl MessageRejection {
    /// Whether the body is not valid JSON-RPC: a lenient server might accept it.
    pub(super) fn is_unreadable(&self) -> bool {
        self.code == PARSE_ERROR
    }

    fn new(code: i64, why: String) -> Self {
        Self {
            code,
            why,
            id: "null".to_owned(),
        }
    }

    /// Rejects a request whose id is already in use.
    pub(super) fn taken(ask: Option<&ClientRequest>) -> Self {
        Self {
            code: INVALID_REQUEST,
            why: "its id or progress token is already in use".to_owned(),
            id: ask.map_or_else(|| "null".to_owned(), |ask| ask.written.clone()),
        }
    }
}

/// Returns the HTTP status of a response in the stateless era.
pub(super) fn status(error: Option<i64>) -> http::StatusCode {
    match error {
        Some(-32601) => http::StatusCode::NOT_FOUND,
        Some(-32022..=-32020) => http::StatusCode::BAD_REQUEST,
        _ => http::StatusCode::OK,
    }
}

/// Replaces the line breaks of a message with spaces.
pub(super) fn into_line(message: &mut [u8]) {
    for byte in message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Returns the value of a header, if it is text.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The fields of a request that the bridge reads.
#[derive(Default)]
struct RequestFields {
    name: Option<String>,
    uri: Option<String>,
    token: Option<Id>,
    version: Option<String>,
}

impl RequestFields {
    fn of(params: &RawValue) -> Self {
        #[derive(serde::Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            name: Option<&'a RawValue>,
            #[serde(borrow, default)]
            uri: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        #[derive(serde::Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, default, rename = "progressToken")]
            token: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
            version: Option<&'a RawValue>,
        }
        let Ok(params) = json::from_str::<Params>(params.get()) else {
            return Self::default();
        };
        let meta = params.meta.map(RawValue::get);
        let meta = meta.and_then(|meta| json::from_str::<Meta>(meta).ok());
        let (token, version) = meta.map_or((None, None), |meta| (meta.token, meta.version));
        Self {
            name: params.name.and_then(text),
            uri: params.uri.and_then(text),
            token: token.map(Id::of).filter(|token| *token != Id::Absent),
            version: version.and_then(text),
        }
    }

    /// Checks that the headers of the stateless era match the request; returns the difference. A
    /// missing header is left to the server.
    fn fits(&self, method: &str, headers: &HeaderMap) -> Result<(), String> {
        let name = match method {
            "tools/call" | "prompts/get" => self.name.as_deref(),
            "resources/read" => self.uri.as_deref(),
            _ => None,
        };
        let pairs = [
            ("mcp-protocol-version", self.version.as_deref()),
            ("mcp-method", Some(method)),
            ("mcp-name", name),
        ];
        for (header, meant) in pairs {
            let mut values = headers.get_all(header).iter();
            let (Some(said), Some(meant)) = (values.next(), meant) else {
                continue;
            };
            if values.next().is_some() {
                return Err(format!("duplicate header `{header}`"));
            }
            let said = String::from_utf8_lossy(said.as_bytes());
            if decoded(&said).as_deref() != Some(meant) {
                return Err(format!(
                    "the header `{header}` is `{said}`, but the body says `{meant}`"
                ));
            }
        }
        Ok(())
    }
}

/// Decodes a header value, which may be wrapped in base64.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let wrapped = value.strip_prefix("=?base64?");
    let Some(wrapped) = wrapped.and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = BASE64.decode(wrapped.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn text(raw: &RawValue) -> Option<String> {
    json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests;

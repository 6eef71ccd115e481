//! What HTTP headers say about the messages in bodies.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use proctor_record::json;
use proctor_record::message::{Message, MessageKind};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::edit::events::event;
use crate::web::{OutgoingResponse, whole};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The first version of the stateless era, in which headers repeat parts of the request.
const STATELESS: &str = "2026-07-28";

const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// Whether the parameters of a request belong to the stateless era.
pub(crate) fn is_stateless(params: Option<&Value>) -> bool {
    let meta = params.and_then(|params| params.get("_meta"));
    let version = meta.and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
    let version = version.and_then(Value::as_str);
    version.is_some_and(|version| version >= STATELESS)
}

/// Whether the headers match the request, as the stateless era requires. If not, the server must
/// refuse it.
pub(super) fn fits(message: Option<&Message<'_>>, headers: &HeaderMap) -> bool {
    let Some(message) = message else { return true };
    let (MessageKind::Request { method, .. } | MessageKind::Notification { method }) =
        message.kind()
    else {
        return true;
    };
    if let Some(named) = headers.get(METHOD) {
        return named.as_bytes() == method.as_bytes();
    }
    let params = message.params.map(RawValue::get);
    let params = params.and_then(|params| json::from_str(params).ok());
    !is_stateless(params.as_ref())
}

/// Returns a response in a content type that the client accepts.
pub(super) fn answered(answer: Vec<u8>, headers: &HeaderMap) -> OutgoingResponse {
    let accepted: Vec<String> = headers
        .get_all(ACCEPT)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase())
        .collect();
    let accepts = |kind: &str| accepted.iter().any(|value| value.contains(kind));
    let takes_json = accepted.is_empty() || [JSON, "application/*", "*/*"].into_iter().any(accepts);
    if !takes_json && accepts(EVENTS) {
        return whole(StatusCode::OK, EVENTS, event(answer));
    }
    whole(StatusCode::OK, JSON, answer)
}

/// Returns the session id of a request or response.
pub(super) fn session(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION)?;
    Some(String::from_utf8_lossy(id.as_bytes()).into_owned())
}

/// Whether the content type is `kind`.
pub(super) fn is(headers: &HeaderMap, kind: &str) -> bool {
    let value = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let value = value.and_then(|value| value.split(|byte| *byte == b';').next());
    value.is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(kind.as_bytes()))
}

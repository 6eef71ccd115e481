//! The HTTP responses of a bridge.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use serde_json::value::RawValue;

use crate::proxy::bridge::inbound::{Inbound, MessageRejection, status};
use crate::proxy::bridge::outlet::{BridgeEventStream, OutboundMessage};
use crate::rpc;
use crate::web::{OutgoingResponse, whole};

pub(super) const STREAM: &str = "text/event-stream";
pub(super) const JSON: &str = "application/json";

/// Returns all responses as a JSON body.
pub(super) fn json(mut answers: Vec<OutboundMessage>, inbound: &Inbound) -> OutgoingResponse {
    let error = answers.first().and_then(|answer| answer.error);
    let status = if inbound.is_stateless {
        status(error)
    } else {
        StatusCode::OK
    };
    if answers.len() == 1
        && let Some(answer) = answers.pop()
    {
        return whole(status, JSON, answer.bytes);
    }
    // A batch whose responses came one by one.
    let parts: Vec<&[u8]> = answers.iter().map(|answer| &answer.bytes[..]).collect();
    let batch = [&b"["[..], &parts.join(&b','), b"]"].concat();
    whole(status, JSON, batch)
}

pub(super) fn event_stream(events: BridgeEventStream) -> OutgoingResponse {
    let mut response = http::Response::new(events.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(STREAM));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    response
}

pub(super) fn gone(why: &str) -> OutgoingResponse {
    text(StatusCode::BAD_GATEWAY, why)
}

pub(super) fn not_allowed(allowed: &'static str) -> OutgoingResponse {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}

pub(super) fn text(status: StatusCode, why: &str) -> OutgoingResponse {
    whole(status, "text/plain", format!("{why}\n"))
}

pub(super) fn empty(status: StatusCode) -> OutgoingResponse {
    let mut response = whole(status, "text/plain", Bytes::new());
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// Returns the error response for a rejected message.
pub(super) fn rejection(rejection: &MessageRejection) -> OutgoingResponse {
    let id = RawValue::from_string(rejection.id.clone()).unwrap_or_default();
    let body = rpc::answer(&id, Err((rejection.code, &rejection.why)));
    whole(StatusCode::BAD_REQUEST, JSON, body)
}

//! Responses that don't need the script: errors, the list of models, token counts.

use std::path::Path;

use http::StatusCode;
use proctor_core::script::input_tokens;
use proctor_record::model::Usage;
use serde_json::{Value, json};

use super::{MODEL, ServedReply, ServedRequest};
use crate::wire::{self, ErrorKind, WireFormat, error_body};
use proctor_wire::web::{OutgoingResponse, whole};

/// The response, if one is sent, and the log entry about it.
pub(super) type LoggedResponse = (Option<OutgoingResponse>, ServedRequest);

/// The log entry of a request that has not been parsed yet.
pub(super) fn served(format: WireFormat) -> ServedRequest {
    ServedRequest {
        format: Some(format),
        path: String::new(),
        results: 0,
        is_side_call: false,
        said: ServedReply::About("nothing"),
        usage: Usage::default(),
        exchange: None,
    }
}

/// Rejects a malformed request.
pub(super) fn refuse(served: ServedRequest, why: String) -> LoggedResponse {
    refuse_as(served, ErrorKind::Invalid, why)
}

/// Rejects an unknown path.
pub(super) fn unknown(format: WireFormat, why: String) -> LoggedResponse {
    refuse_as(served(format), ErrorKind::NotFound, why)
}

fn refuse_as(mut served: ServedRequest, kind: ErrorKind, why: String) -> LoggedResponse {
    let format = served.format.unwrap_or(WireFormat::Chat);
    let response = refusal(format, kind, &why);
    served.said = ServedReply::Nothing(why);
    (Some(response), served)
}

/// An error response in the provider's format.
pub(crate) fn refusal(format: WireFormat, kind: ErrorKind, why: &str) -> OutgoingResponse {
    let status = StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let body = error_body(format, kind, why).to_string();
    whole(status, "application/json", body)
}

/// The number of tokens of a request.
pub(super) fn count(format: WireFormat, body: &Value) -> LoggedResponse {
    // Gemini may wrap the request.
    let body = body.get("generateContentRequest").unwrap_or(body);
    let question = match wire::question(format, body) {
        Ok(question) => question,
        Err(why) => return refuse(served(format), why.to_string()),
    };
    let tokens = input_tokens(&question.request);
    let body = match format {
        WireFormat::Gemini => json!({"totalTokens": tokens}),
        _ => json!({"input_tokens": tokens}),
    };
    about("token count", format, &body)
}

/// The list of models, which has one entry.
pub(super) fn models(format: WireFormat) -> LoggedResponse {
    let one = described(format, MODEL);
    let body = match format {
        WireFormat::Gemini => json!({"models": [one]}),
        // Codex expects its own list.
        _ => json!({
            "object": "list",
            "data": [one],
            "models": [],
            "first_id": MODEL,
            "last_id": MODEL,
            "has_more": false,
        }),
    };
    about("list of models", format, &body)
}

/// The description of a model. Every id is accepted.
pub(super) fn model(format: WireFormat, id: &str) -> LoggedResponse {
    about("model", format, &described(format, id))
}

pub(super) fn greet(script: &Path) -> LoggedResponse {
    let text = format!("proctor model serve: {}\n", script.display());
    let served = ServedRequest {
        format: None,
        said: ServedReply::About("greeting"),
        ..served(WireFormat::Chat)
    };
    (Some(whole(StatusCode::OK, "text/plain", text)), served)
}

fn about(what: &'static str, format: WireFormat, body: &Value) -> LoggedResponse {
    let served = ServedRequest {
        said: ServedReply::About(what),
        ..served(format)
    };
    let response = whole(StatusCode::OK, "application/json", body.to_string());
    (Some(response), served)
}

fn described(format: WireFormat, id: &str) -> Value {
    match format {
        WireFormat::Gemini => json!({
            "name": format!("models/{id}"),
            "displayName": id,
            "inputTokenLimit": 1_000_000,
            "outputTokenLimit": 100_000,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
        _ => json!({
            "id": id,
            "object": "model",
            "type": "model",
            "display_name": id,
            "created": 1_763_000_000,
            "created_at": "2025-11-13T00:00:00Z",
            "owned_by": "proctor",
        }),
    }
}

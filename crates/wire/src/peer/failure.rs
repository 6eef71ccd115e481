//! The outcome of a request.

use serde_json::value::RawValue;

use crate::rpc::RpcError;

/// The result of a request, or why it has none.
pub(crate) type RequestOutcome = Result<Box<RawValue>, RequestFailure>;

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RequestFailure {
    /// The server answered with a JSON-RPC error.
    #[error("{} (code {})", .0.message, .0.code)]
    Rpc(RpcError),
    /// The response exceeds the size limit.
    #[error("the response is too large: {bytes} bytes")]
    TooLarge { bytes: u64 },
    /// The server answered with an HTTP error status.
    #[error("the server answered with HTTP status {status}{}", shown_body(body))]
    Http {
        status: u16,
        /// The start of the response body.
        body: String,
    },
    /// The HTTP response ended without the JSON-RPC response.
    #[error("the response{} ended without an answer", shown_kind(what.as_deref()))]
    NoAnswer {
        /// The status and content type of the HTTP response.
        what: Option<String>,
    },
    /// There is no token that the server accepts.
    #[error("{0}")]
    Unauthorized(String),
    /// The connection failed before the response was complete.
    #[error("{0}")]
    Broken(String),
}

fn shown_kind(what: Option<&str>) -> String {
    what.map_or(String::new(), |what| format!(" ({what})"))
}

/// Returns a body as the last part of a message; empty if the body is.
pub(crate) fn shown_body(body: &str) -> String {
    match body.trim() {
        "" => String::new(),
        body => format!(": {body}"),
    }
}

//! What a request came to.

use serde_json::value::RawValue;

use crate::rpc::RpcError;

/// What a request came to.
pub(crate) type RequestOutcome = Result<Box<RawValue>, RequestFailure>;

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RequestFailure {
    /// The server says why.
    #[error("{} (code {})", .0.message, .0.code)]
    Rpc(RpcError),
    /// The answer was too large to be taken in.
    #[error("the response is too large: {bytes} bytes")]
    TooLarge {
        /// Its length.
        bytes: u64,
    },
    /// HTTP says why.
    #[error("the server answered with HTTP status {status}{}", shown_body(body))]
    Http {
        /// The status.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The response ended, and the answer was not in it.
    #[error("the response{} ended without an answer", shown_kind(what.as_deref()))]
    NoAnswer {
        /// What it claimed to be.
        what: Option<String>,
    },
    /// The network says why.
    #[error("{0}")]
    Broken(String),
}

fn shown_kind(what: Option<&str>) -> String {
    what.map_or(String::new(), |what| format!(" ({what})"))
}

/// A body, after what is said before it.
pub(crate) fn shown_body(body: &str) -> String {
    match body.trim() {
        "" => String::new(),
        body => format!(": {body}"),
    }
}

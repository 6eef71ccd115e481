//! Error responses in a provider's format.

use serde_json::{Value, json};

use super::WireFormat;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Invalid,
    Key,
    NotFound,
    TooLong,
    RateLimited,
    Unavailable,
}

impl ErrorKind {
    /// The HTTP status of the error.
    pub fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::TooLong => 400,
            Self::Key => 401,
            Self::NotFound => 404,
            Self::RateLimited => 429,
            Self::Unavailable => 503,
        }
    }
}

/// The body of the error response.
pub fn error_body(format: WireFormat, kind: ErrorKind, message: &str) -> Value {
    match format {
        WireFormat::Chat | WireFormat::Responses => {
            let (word, code) = match kind {
                ErrorKind::Invalid => ("invalid_request_error", Value::Null),
                ErrorKind::Key => ("invalid_request_error", "invalid_api_key".into()),
                ErrorKind::NotFound => ("invalid_request_error", "not_found".into()),
                ErrorKind::TooLong => ("invalid_request_error", "context_length_exceeded".into()),
                ErrorKind::RateLimited => ("requests", "rate_limit_exceeded".into()),
                ErrorKind::Unavailable => ("server_error", "server_error".into()),
            };
            json!({"error": {"message": message, "type": word, "param": null, "code": code}})
        }
        WireFormat::Messages => {
            let (word, message) = match kind {
                ErrorKind::Invalid => ("invalid_request_error", message.to_owned()),
                ErrorKind::TooLong => (
                    "invalid_request_error",
                    format!("prompt is too long: {message}"),
                ),
                ErrorKind::Key => ("authentication_error", message.to_owned()),
                ErrorKind::NotFound => ("not_found_error", message.to_owned()),
                ErrorKind::RateLimited => ("rate_limit_error", message.to_owned()),
                ErrorKind::Unavailable => ("overloaded_error", message.to_owned()),
            };
            json!({"type": "error", "error": {"type": word, "message": message}})
        }
        WireFormat::Gemini => {
            let (word, message) = match kind {
                ErrorKind::Invalid => ("INVALID_ARGUMENT", message.to_owned()),
                ErrorKind::TooLong => (
                    "INVALID_ARGUMENT",
                    format!(
                        "The input token count exceeds the maximum number of tokens allowed: {message}"
                    ),
                ),
                ErrorKind::Key => ("UNAUTHENTICATED", message.to_owned()),
                ErrorKind::NotFound => ("NOT_FOUND", message.to_owned()),
                ErrorKind::RateLimited => ("RESOURCE_EXHAUSTED", message.to_owned()),
                ErrorKind::Unavailable => ("UNAVAILABLE", message.to_owned()),
            };
            json!({"error": {"code": kind.status(), "message": message, "status": word}})
        }
    }
}

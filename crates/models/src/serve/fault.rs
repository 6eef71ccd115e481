//! Faults of a provider that a script asks for, as they look on the wire.

use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use proctor_core::script::Fault;
use serde_json::Value;

use super::about::refusal;
use crate::wire::{ErrorKind, Format};
use proctor_wire::web::{Response, whole};

/// A fault in words.
pub(super) fn fault_text(fault: &Fault) -> String {
    let (word, detail) = match fault {
        Fault::RateLimited { detail, .. } => ("rate limit", detail.as_str()),
        Fault::Unavailable { detail, .. } => ("unavailable", detail.as_str()),
        Fault::TimedOut => ("no reply", "the client waits in vain"),
        Fault::Key { detail } => ("wrong key", detail.as_str()),
        Fault::ContextOverflow { detail } => ("too long", detail.as_str()),
        Fault::Rejected { detail } => ("rejected", detail.as_str()),
        Fault::Malformed { detail } => ("malformed", detail.as_str()),
    };
    format!("{word}: {detail}")
}

/// A provider's fault; nothing where it never answers.
pub(super) fn fail(format: Format, fault: Fault) -> Option<Response> {
    let (kind, detail, wait) = match fault {
        Fault::RateLimited {
            retry_after,
            detail,
        } => (ErrorKind::RateLimited, detail, retry_after),
        Fault::Unavailable {
            retry_after,
            detail,
        } => (ErrorKind::Unavailable, detail, retry_after),
        Fault::Key { detail } => (ErrorKind::Key, detail, None),
        Fault::ContextOverflow { detail } => (ErrorKind::TooLong, detail, None),
        Fault::Rejected { detail } => (ErrorKind::Invalid, detail, None),
        Fault::TimedOut => return None,
        Fault::Malformed { detail } => {
            let body = format!("{{\"malformed\": {}", Value::String(detail));
            return Some(whole(StatusCode::OK, "application/json", body));
        }
    };
    let mut response = refusal(format, kind, &detail);
    if let Some(wait) = wait {
        response.headers_mut().insert(RETRY_AFTER, seconds(wait));
    }
    Some(response)
}

fn seconds(wait: Duration) -> HeaderValue {
    // Whole seconds are what everybody reads.
    HeaderValue::from(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

//! Faults of a provider that a script asks for, as they look on the wire.

use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use proctor_core::script::ProviderFault;
use serde_json::Value;

use super::about::refusal;
use crate::wire::{ErrorKind, WireFormat};
use proctor_wire::web::{OutgoingResponse, whole};

/// A fault in words.
pub(super) fn fault_text(fault: &ProviderFault) -> String {
    let (word, detail) = match fault {
        ProviderFault::RateLimited { detail, .. } => ("rate limit", detail.as_str()),
        ProviderFault::Unavailable { detail, .. } => ("unavailable", detail.as_str()),
        ProviderFault::TimedOut => ("no reply", "the client waits in vain"),
        ProviderFault::Key { detail } => ("wrong key", detail.as_str()),
        ProviderFault::ContextOverflow { detail } => ("too long", detail.as_str()),
        ProviderFault::Rejected { detail } => ("rejected", detail.as_str()),
        ProviderFault::Malformed { detail } => ("malformed", detail.as_str()),
    };
    format!("{word}: {detail}")
}

/// A provider's fault; nothing where it never answers.
pub(super) fn fail(format: WireFormat, fault: ProviderFault) -> Option<OutgoingResponse> {
    let (kind, detail, wait) = match fault {
        ProviderFault::RateLimited {
            retry_after,
            detail,
        } => (ErrorKind::RateLimited, detail, retry_after),
        ProviderFault::Unavailable {
            retry_after,
            detail,
        } => (ErrorKind::Unavailable, detail, retry_after),
        ProviderFault::Key { detail } => (ErrorKind::Key, detail, None),
        ProviderFault::ContextOverflow { detail } => (ErrorKind::TooLong, detail, None),
        ProviderFault::Rejected { detail } => (ErrorKind::Invalid, detail, None),
        ProviderFault::TimedOut => return None,
        ProviderFault::Malformed { detail } => {
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

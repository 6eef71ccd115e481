//! Provider faults that a script simulates, as responses on the wire.

use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use proctor_core::script::ProviderFault;
use serde_json::Value;

use super::metadata::refusal;
use crate::wire::{ErrorKind, WireFormat};
use proctor_wire::web::{OutgoingResponse, whole};

/// The description of a fault, for the log.
pub(super) fn fault_text(fault: &ProviderFault) -> String {
    let (word, detail) = match fault {
        ProviderFault::RateLimited { detail, .. } => ("rate limited", detail.as_str()),
        ProviderFault::Unavailable { detail, .. } => ("unavailable", detail.as_str()),
        ProviderFault::TimedOut => ("timeout", "the request times out"),
        ProviderFault::Key { detail } => ("unauthorized", detail.as_str()),
        ProviderFault::ContextOverflow { detail } => ("context overflow", detail.as_str()),
        ProviderFault::Rejected { detail } => ("rejected", detail.as_str()),
        ProviderFault::Malformed { detail } => ("malformed", detail.as_str()),
    };
    format!("{word}: {detail}")
}

/// The response for a fault; `None` if the provider never answers.
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
    // All clients support whole seconds.
    HeaderValue::from(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

//! The content types that a client accepts.

use http::HeaderMap;
use http::header::ACCEPT;

use super::responses::{JSON, STREAM};

/// The content types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptedFormats {
    Both,
    Json,
    Stream,
}

impl AcceptedFormats {
    /// Parses the `Accept` header; `None` if the client accepts neither JSON nor events.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        // Without the header, the client accepts anything.
        if values.peek().is_none() {
            return Some(Self::Both);
        }
        let all: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let has = |kind: &str, family: &str| {
            let mut kinds = all.iter().flat_map(|value| value.split(','));
            kinds.any(|named| {
                let named = named.split(';').next().unwrap_or_default().trim();
                [kind, family, "*/*"]
                    .iter()
                    .any(|kind| named.eq_ignore_ascii_case(kind))
            })
        };
        match (has(JSON, "application/*"), has(STREAM, "text/*")) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Json),
            (false, true) => Some(Self::Stream),
            (false, false) => None,
        }
    }
}

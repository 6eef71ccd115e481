//! The protocol version or era that a suite or a flag pins.
//!
//! Its main type is [`ProtocolPin`].

use std::fmt;
use std::str::FromStr;

use proctor_record::hint::{listed, nearest};
use proctor_record::problem::{Code, Problem};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::decode::{Context, Decode, Definitions};
use crate::document::Node;

/// The versions of the handshake era, oldest first.
pub const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version of the stateless era.
pub const STATELESS_VERSION: &str = "2026-07-28";

/// The protocol to use with a server, as `handshake`, `stateless` or a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolPin {
    /// The handshake era, with the version that the server negotiates.
    Handshake,
    /// This version of the handshake era, and no other.
    Version(&'static str),
    /// The stateless era, which has one version.
    Stateless,
}

/// A text that names no known version or era.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol `{text}`; {hint}")]
pub struct UnknownProtocol {
    text: String,
    hint: String,
}

impl ProtocolPin {
    fn words() -> impl Iterator<Item = &'static str> {
        let eras = ["handshake", "stateless"].into_iter();
        eras.chain(HANDSHAKE_VERSIONS).chain([STATELESS_VERSION])
    }
}

impl FromStr for ProtocolPin {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let known = HANDSHAKE_VERSIONS.into_iter().find(|known| *known == text);
        match (text, known) {
            ("handshake", _) => Ok(Self::Handshake),
            ("stateless" | STATELESS_VERSION, _) => Ok(Self::Stateless),
            (_, Some(version)) => Ok(Self::Version(version)),
            (_, None) => Err(UnknownProtocol {
                text: text.to_owned(),
                hint: match nearest(text, Self::words()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known: {}", listed(Self::words())),
                },
            }),
        }
    }
}

impl fmt::Display for ProtocolPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake => "handshake",
            Self::Version(version) => version,
            Self::Stateless => "stateless",
        })
    }
}

impl Serialize for ProtocolPin {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Decode for ProtocolPin {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = String::decode(node, cx)?;
        let parsed = text.parse();
        parsed
            .map_err(|UnknownProtocol { text, hint }| {
                let message = format!("unknown protocol `{text}`");
                cx.report(node.span, Problem::error(Code::Value, message).hint(hint));
            })
            .ok()
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": Self::words().collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_an_era_or_a_known_version() {
        let check = |text: &str, expected: ProtocolPin| {
            assert_eq!(text.parse(), Ok(expected));
        };
        check("handshake", ProtocolPin::Handshake);
        check("stateless", ProtocolPin::Stateless);
        check("2026-07-28", ProtocolPin::Stateless);
        check("2025-06-18", ProtocolPin::Version("2025-06-18"));
    }

    #[test]
    fn an_unknown_version_gets_a_suggestion() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<ProtocolPin>().unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(
            "2025-06-19",
            "unknown protocol `2025-06-19`; did you mean `2025-06-18`?",
        );
        check(
            "handshakes",
            "unknown protocol `handshakes`; did you mean `handshake`?",
        );
        check(
            "x",
            "unknown protocol `x`; known: `handshake`, `stateless`, `2024-11-05`, `2025-03-26`, \
             `2025-06-18`, `2025-11-25`, `2026-07-28`",
        );
    }
}

//! Parses client messages, as far as `evals serve` needs it.
//!
//! Its main type is [`ClientMessage`]. Batches and malformed messages go to the server.

use mcp_evals::METHOD;
use proctor_record::json;
use proctor_record::message::{Id, Message, MessageKind};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::proxy::is_stateless;

/// Where results of the stateless era hold the server's name and version.
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The kind of a client message.
#[derive(Debug)]
pub(super) enum ClientMessage<'a> {
    /// A request for the evals.
    List(ListRequest<'a>),
    /// A request whose response declares capabilities.
    Handshake(Handshake),
    /// The client has completed the handshake.
    Initialized,
    /// A message that passes to the server unchanged.
    Other,
}

/// A request whose response declares capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handshake {
    pub(super) id: Id,
    /// Whether the method is `initialize`, not `server/discover`.
    pub(super) is_initialize: bool,
}

#[derive(Debug)]
pub(super) struct ListRequest<'a> {
    /// The raw JSON of the id.
    pub(super) id: &'a RawValue,
    pub(super) params: Option<Value>,
}

impl ListRequest<'_> {
    /// Whether the request is of the stateless era.
    pub(super) fn is_stateless(&self) -> bool {
        is_stateless(self.params.as_ref())
    }
}

/// Parses a client message.
pub(super) fn read(message: &[u8]) -> ClientMessage<'_> {
    let Ok(message) = json::from_slice::<Message<'_>>(message) else {
        return ClientMessage::Other;
    };
    if message.jsonrpc.as_deref() != Some("2.0") {
        return ClientMessage::Other;
    }
    match (message.kind(), message.id) {
        (MessageKind::Request { id, method }, Some(raw)) if is_id(raw) => match method {
            METHOD => list(raw, message.params),
            "initialize" | "server/discover" => ClientMessage::Handshake(Handshake {
                id,
                is_initialize: method == "initialize",
            }),
            _ => ClientMessage::Other,
        },
        (
            MessageKind::Notification {
                method: "notifications/initialized",
            },
            _,
        ) => ClientMessage::Initialized,
        _ => ClientMessage::Other,
    }
}

fn list<'a>(id: &'a RawValue, params: Option<&RawValue>) -> ClientMessage<'a> {
    let params = params.map(|params| json::from_str(params.get()));
    match params.transpose() {
        Ok(params) => ClientMessage::List(ListRequest { id, params }),
        Err(_) => ClientMessage::Other,
    }
}

/// Whether this is a valid id: a string or a number.
fn is_id(raw: &RawValue) -> bool {
    raw.get()
        .starts_with(|c: char| matches!(c, '"' | '-' | '0'..='9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        let asked = match read(message.as_bytes()) {
            ClientMessage::List(list) => format!("list {} {}", list.id, list.is_stateless()),
            ClientMessage::Handshake(shake) => format!("{} {}", shake.id, shake.is_initialize),
            ClientMessage::Initialized => "initialized".to_owned(),
            ClientMessage::Other => "other".to_owned(),
        };
        assert_eq!(asked, expected, "{message}");
    }

    #[test]
    fn only_well_formed_requests_are_handled() {
        let list = r#""jsonrpc":"2.0","method":"evals/list""#;
        check(&format!(r#"{{{list},"id":1}}"#), "list 1 false");
        check(
            &format!(" {{ {list} ,\"id\" : 1e0 }}\r\n"),
            "list 1e0 false",
        );
        check(
            &format!(r#"{{"id":"a\n",{list},"x":1}}"#),
            r#"list "a\n" false"#,
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"evals\/list"}"#,
            "list 1 false",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"\u0065vals/list"}"#,
            "list 1 false",
        );
        let meta = |version: &str| {
            format!(
                r#""params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":{version}}}}}"#
            )
        };
        let new = meta(r#""2026-07-28""#);
        check(&format!(r#"{{{list},"id":1,{new}}}"#), "list 1 true");
        for version in [r#""2025-11-25""#, "5"] {
            let old = meta(version);
            check(&format!(r#"{{{list},"id":1,{old}}}"#), "list 1 false");
        }
        for wrong in [r#""id":null"#, r#""id":{}"#, r#""id":1,"id":2"#, r#""x":1"#] {
            check(&format!("{{{list},{wrong}}}"), "other");
        }
        check(&format!(r#"[{{{list},"id":1}}]"#), "other");
        check(&format!(r#"{{{list},"id":1}} x"#), "other");
        check(r#"{"id":1,"method":"evals/list"}"#, "other");
    }

    #[test]
    fn handshakes_are_told_from_other_messages() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, "other");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
            "id `1` true",
        );
        check(
            r#"{"jsonrpc":"2.0","id":"x","method":"server/discover"}"#,
            "id `\"x\"` false",
        );
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "initialized",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":{"method":"evals/list"}}"#,
            "other",
        );
        for noise in ["", "\n", "evals/list", "{", "null"] {
            check(noise, "other");
        }
    }
}

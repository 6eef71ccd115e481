//! What a client's message asks for, as far as that matters here.
//!
//! Its main type is [`ClientMessage`]. A message that is not well-formed, or a batch, asks for nothing that is
//! answered here: it is the server's.

use mcp_evals::METHOD;
use proctor_core::message::{Id, Message, MessageKind};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::proxy::is_stateless;

/// Where results of the stateless era carry the server's name for itself.
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What a client wants.
#[derive(Debug)]
pub(super) enum ClientMessage<'a> {
    /// The evals.
    List(ListRequest<'a>),
    /// What the server is and can: its answer declares the capability.
    Handshake(Handshake),
    /// Nothing: the client has finished the handshake.
    Initialized,
    /// Something that is not ours.
    Other,
}

/// A request whose answer declares capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handshake {
    pub(super) id: Id,
    /// Whether it is `initialize`, and not `server/discover`.
    pub(super) is_initialize: bool,
}

/// A request of `evals/list`.
#[derive(Debug)]
pub(super) struct ListRequest<'a> {
    /// As it is written.
    pub(super) id: &'a RawValue,
    pub(super) params: Option<Value>,
}

impl ListRequest<'_> {
    /// Whether it is of the era without a handshake.
    pub(super) fn is_stateless(&self) -> bool {
        is_stateless(self.params.as_ref())
    }
}

/// Reads a message of a client.
pub(super) fn read(message: &[u8]) -> ClientMessage<'_> {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(message) else {
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
    let params = params.map(|params| serde_json::from_str(params.get()));
    match params.transpose() {
        Ok(params) => ClientMessage::List(ListRequest { id, params }),
        Err(_) => ClientMessage::Other,
    }
}

/// An id is a text or a number.
fn is_id(raw: &RawValue) -> bool {
    raw.get()
        .starts_with(|c: char| matches!(c, '"' | '-' | '0'..='9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_requests_are_ours() {
        let check = |message: &str, expected: &str| {
            let asked = match read(message.as_bytes()) {
                ClientMessage::List(list) => format!("list {} {}", list.id, list.is_stateless()),
                ClientMessage::Handshake(shake) => format!("{} {}", shake.id, shake.is_initialize),
                ClientMessage::Initialized => "initialized".to_owned(),
                ClientMessage::Other => "other".to_owned(),
            };
            assert_eq!(asked, expected, "{message}");
        };
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

//! JSON-RPC messages: parsing requests, and the text of responses.
//!
//! The text is written by hand, because a recorder must preserve key order, white space and unknown
//! members.

use serde_json::Value;

use crate::payload::Payload;

/// Members that are unknown to all clients, with a number that does not fit a float.
pub const UNKNOWN: &str = r#""x-unknown":{"n":12345678901234567890, "z" :1.50,"a":1e2}"#;
const SERVER_INFO: &str =
    r#"{"version":"0.1.0","name":"fixture-server", "x-unknown":{"n":12345678901234567890}}"#;

pub const PARSE_ERROR: i64 = -32700;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const HEADER_MISMATCH: i64 = -32020;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The version of the stateless era.
pub const STATELESS: &str = "2026-07-28";
/// The versions of the handshake era, oldest first.
pub const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The protocol era of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    Handshake,
    Stateless,
}

/// A request of the client.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: Value,
    pub method: String,
    pub params: Value,
}

impl Request {
    /// Returns the version in a request of the stateless era.
    pub fn version(&self) -> Option<&str> {
        self.params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str()
    }

    /// Returns the name or URI in `tools/call`, `prompts/get` and `resources/read`.
    pub fn subject(&self) -> Option<&str> {
        match self.method.as_str() {
            "tools/call" | "prompts/get" => self.params["name"].as_str(),
            "resources/read" => self.params["uri"].as_str(),
            _ => None,
        }
    }

    pub fn argument(&self, name: &str) -> &Value {
        &self.params["arguments"][name]
    }
}

/// A message of the client.
#[derive(Debug)]
pub enum FixtureMessage {
    Request(Request),
    Notification { method: String, params: Value },
    Answer { id: Value, body: Value },
    Broken,
}

impl FixtureMessage {
    pub fn parse(bytes: &[u8]) -> Self {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(bytes) else {
            return Self::Broken;
        };
        let id = message.remove("id");
        let params = message.remove("params").unwrap_or(Value::Null);
        match (message.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => {
                Self::Request(Request { id, method, params })
            }
            (Some(Value::String(method)), None) => Self::Notification { method, params },
            (None, Some(id)) => Self::Answer {
                id,
                body: Value::Object(message),
            },
            _ => Self::Broken,
        }
    }
}

/// The content of a response.
pub enum Reply {
    /// The members of the result, without braces.
    Complete(Payload),
    /// The members of a result that requests input.
    InputRequired(String),
    Error {
        code: i64,
        message: String,
        data: Option<String>,
    },
}

impl Reply {
    pub fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Refuses a protocol version, and lists the supported ones.
    pub fn unsupported(requested: &str, supported: &[&str]) -> Self {
        let supported = serde_json::to_string(supported).unwrap_or_default();
        Self::Error {
            code: UNSUPPORTED_VERSION,
            message: "unsupported protocol version".to_owned(),
            data: Some(format!(
                r#"{{"supported":{supported}, "requested":{}}}"#,
                quote(requested)
            )),
        }
    }

    /// Returns the member of the response: `"result": …` or `"error": …`.
    pub fn member(&self, era: Era) -> Payload {
        match self {
            Self::Complete(members) => result("complete", members.clone(), era),
            Self::InputRequired(members) => result("input_required", members.as_str().into(), era),
            Self::Error {
                code,
                message,
                data,
            } => {
                let data = data
                    .as_ref()
                    .map_or_else(String::new, |data| format!(r#","data":{data}"#));
                let message = quote(message);
                format!(r#""error":{{ "code":{code},"message":{message}{data},{UNKNOWN}}}"#).into()
            }
        }
    }
}

fn result(kind: &str, members: Payload, era: Era) -> Payload {
    match era {
        Era::Handshake => Payload::from("\"result\":{ ").then(members).then(format!(",  {UNKNOWN}}}")),
        Era::Stateless => Payload::from(format!("\"result\":{{ \"resultType\" : \"{kind}\",")).then(members).then(
            format!(r#", "_meta":{{"x-unknown":1,"io.modelcontextprotocol/serverInfo":{SERVER_INFO}}},  {UNKNOWN}}}"#),
        ),
    }
}

/// Returns a response with the result first and the id last.
pub fn answer(id: &Value, member: Payload) -> Payload {
    Payload::from("{")
        .then(member)
        .then(format!(r#" ,"jsonrpc":"2.0",	"id":{id} }}"#))
}

/// Returns a response with unknown keys.
pub fn strange_answer(id: &Value, member: Payload) -> Payload {
    let head = format!("{{{UNKNOWN},");
    Payload::from(head)
        .then(member)
        .then(format!(r#" ,"jsonrpc":"2.0","id":{id},"zz": null }}"#))
}

pub fn notification(method: &str, params: &str) -> Payload {
    format!(r#"{{"method":"{method}", "jsonrpc":"2.0","params":{params}}}"#).into()
}

pub fn request(id: &str, method: &str, params: &str) -> Payload {
    format!(r#"{{"method":"{method}", "id":"{id}","jsonrpc":"2.0","params":{params}}}"#).into()
}

/// Returns the members of an `initialize` result.
pub fn initialized(version: &str, capabilities: &str, instructions: &str) -> String {
    let instructions = quote(instructions);
    format!(
        r#""serverInfo":{SERVER_INFO},"protocolVersion":"{version}", "capabilities":{capabilities},"instructions":{instructions}"#
    )
}

/// Encodes text as a JSON string.
pub fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

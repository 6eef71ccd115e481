//! JSON-RPC on bytes: what a message is, without taking it apart further than needed.
//!
//! Its main type is [`Message`]. Payloads stay as they were written: unknown fields, key order and
//! every digit of a number are the server's own. Knows nothing of MCP.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message of any sort, borrowed from its bytes.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    /// The version of JSON-RPC, which must be `2.0`.
    #[serde(borrow, default)]
    pub(crate) jsonrpc: Option<Cow<'a, str>>,
    /// What answers name, and requests ask to be answered with.
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    /// What is asked or told.
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    /// With what.
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    /// What was asked for.
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    /// Why it is not given.
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// What a message means.
pub(crate) enum Kind<'a> {
    /// Asks for something.
    Request {
        /// To be answered with.
        id: &'a RawValue,
        /// What is asked.
        method: &'a str,
    },
    /// Tells something.
    Notification {
        /// What is told.
        method: &'a str,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// Answers a request.
    Answer {
        /// Which.
        id: &'a RawValue,
        /// With what.
        outcome: Result<&'a RawValue, &'a RawValue>,
        /// Whether it claims both.
        both: bool,
    },
    /// None of these.
    Neither,
}

impl<'a> Message<'a> {
    /// The messages of a text: one, or those of a batch.
    pub(crate) fn parse(text: &'a str) -> Result<Vec<Self>, serde_json::Error> {
        if text.trim_start().starts_with('[') {
            serde_json::from_str(text)
        } else {
            serde_json::from_str(text).map(|message| vec![message])
        }
    }

    /// What the message means.
    pub(crate) fn kind(&'a self) -> Kind<'a> {
        match (&self.method, self.id, self.result, self.error) {
            (Some(method), Some(id), ..) => Kind::Request { id, method },
            (Some(method), None, ..) => Kind::Notification {
                method,
                params: self.params,
            },
            (None, Some(id), Some(result), error) => Kind::Answer {
                id,
                outcome: Ok(result),
                both: error.is_some(),
            },
            (None, Some(id), None, Some(error)) => Kind::Answer {
                id,
                outcome: Err(error),
                both: false,
            },
            _ => Kind::Neither,
        }
    }
}

/// An error as JSON-RPC writes it.
#[derive(Debug, Clone, Deserialize)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What went wrong.
    #[serde(default)]
    pub message: String,
    /// More of it.
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// A request, as bytes.
pub(crate) fn request(id: u64, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    message(Some(id), method, params)
}

/// A notification, as bytes.
pub(crate) fn notification(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    message(None, method, params)
}

fn message(id: Option<u64>, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    let message = Outgoing {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    // Texts, numbers and raw JSON always serialise.
    serde_json::to_vec(&message).unwrap_or_default()
}

/// An answer to a request of the other side, whose id is written as it came.
pub(crate) fn answer(id: &RawValue, outcome: Result<&str, (i64, &str)>) -> Vec<u8> {
    let id = id.get();
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err((code, message)) => {
            let message = serde_json::Value::from(message);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#
            )
        }
    }
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> &'static str {
        match Message::parse(text) {
            Err(_) => "malformed",
            Ok(messages) => match messages.first().map(Message::kind) {
                Some(Kind::Request { .. }) => "request",
                Some(Kind::Notification { .. }) => "notification",
                Some(Kind::Answer { both: true, .. }) => "both",
                Some(Kind::Answer { outcome: Ok(_), .. }) => "result",
                Some(Kind::Answer {
                    outcome: Err(_), ..
                }) => "error",
                Some(Kind::Neither) => "neither",
                None => "empty batch",
            },
        }
    }

    #[test]
    fn messages_are_told_apart() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#), "request");
        assert_eq!(kind(r#"{"method":"a","params":[1]}"#), "notification");
        assert_eq!(kind(r#"{"id":"x","result":null}"#), "neither");
        assert_eq!(kind(r#"{"id":"x","result":{}}"#), "result");
        assert_eq!(kind(r#"{"id":1,"error":{"code":1}}"#), "error");
        assert_eq!(kind(r#"{"id":1,"result":{},"error":{}}"#), "both");
        assert_eq!(kind(r#"{"id":null,"error":{}}"#), "neither");
        assert_eq!(kind("[]"), "empty batch");
        assert_eq!(kind(r#"[{"id":1,"result":1}]"#), "result");
        assert_eq!(kind("{"), "malformed");
        assert_eq!(kind("5"), "malformed");
        assert_eq!(kind(r#"{"id":1,"id":2,"result":1}"#), "malformed");
    }

    #[test]
    fn deep_nesting_is_no_danger() {
        let deep = format!(
            r#"{{"id":1,"result":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(kind(&deep), "result");
    }

    #[test]
    fn what_is_sent_is_one_line() {
        let params = RawValue::from_string(r#"{"a":12345678901234567890}"#.to_owned()).unwrap();
        assert_eq!(
            String::from_utf8(request(7, "tools/call", Some(&params))).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":12345678901234567890}}"#
        );
        let id: &RawValue = serde_json::from_str(r#""x""#).unwrap();
        assert_eq!(
            String::from_utf8(answer(id, Err((-32601, "no \"such\" method")))).unwrap(),
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no \"such\" method"}}"#
        );
    }
}

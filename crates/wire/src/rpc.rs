//! JSON-RPC without its streams: encodes messages, tracks pending [`Requests`], and passes incoming
//! messages to a [`MessageHandler`] with [`receive`]. `proctor_record::message` parses them. It has
//! no knowledge of MCP.

mod receive;
mod requests;

pub use self::receive::{FindingSubject, MessageHandler, receive};
pub(crate) use self::requests::REMEMBERED;
pub use self::requests::{PastRequest, PeerClose, Requests};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Deserialize)]
pub struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct RpcMessage<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

pub fn request(id: u64, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    message(Some(id), method, params)
}

pub fn notification(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    message(None, method, params)
}

fn message(id: Option<u64>, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    let message = RpcMessage {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    // Strings, numbers and raw JSON always serialize.
    serde_json::to_vec(&message).unwrap_or_default()
}

/// Encodes a response to a request of the other side, with the raw JSON of its id.
pub fn answer(id: &RawValue, outcome: Result<&str, (i64, &str)>) -> Vec<u8> {
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

    #[test]
    fn messages_are_one_line() {
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

//! JSON-RPC messages, parsed no further than is needed.
//!
//! Its main type is [`Message`]. Live connections and the fold of a record read the same bytes the same way.
//! [`tolerant`] handles messages that implementations may read in different ways.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

pub mod tolerant;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;

/// The reason in a cancellation that is not a timeout: the requester has gone.
pub const UNWANTED: &str = "no longer wanted";

/// The maximum number of messages in a batch.
const MAX_BATCH: usize = 10_000;

/// The maximum length of an id that is kept. Ids are only compared and shown.
const MAX_ID: usize = 256;

/// The parts of a message. Params, result and error stay unparsed.
#[derive(Debug, serde::Deserialize)]
pub struct Message<'a> {
    /// The version of JSON-RPC.
    #[serde(borrow, default)]
    pub jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

/// The type of a message.
#[derive(Debug)]
pub enum MessageKind<'a> {
    Request { id: Id, method: &'a str },
    Notification { method: &'a str },
    Answer { id: Id },
    Neither,
}

/// An id, by its type and value: `1` and `1.0` are one, `1` and `"1"` are two.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// The id is absent or `null`.
    Absent,
    Value(String),
}

/// Why bytes are not a message.
#[derive(Debug)]
pub struct MessageParseError {
    /// Whether the bytes start like a message.
    pub looks_like_json: bool,
    pub reason: String,
}

impl Message<'_> {
    /// Classifies the message by its parts.
    pub fn kind(&self) -> MessageKind<'_> {
        let has_answer = self.result.is_some() || self.error.is_some();
        match (&self.method, self.id) {
            (Some(method), Some(id)) => MessageKind::Request {
                id: Id::of(id),
                method,
            },
            (Some(method), None) => MessageKind::Notification { method },
            (None, Some(id)) if has_answer => MessageKind::Answer { id: Id::of(id) },
            // A server that could not read the request can't name it.
            (None, None) if self.error.is_some() => MessageKind::Answer { id: Id::Absent },
            (None, _) => MessageKind::Neither,
        }
    }

    /// Whether the reason of a cancellation is [`UNWANTED`]. A server that answers such a request
    /// anyway does nothing wrong.
    pub fn is_unwanted(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct CancelledParams {
            reason: Option<String>,
        }
        let params = self.params.map(RawValue::get);
        let params = params.and_then(|params| json::from_str::<CancelledParams>(params).ok());
        params.is_some_and(|params| params.reason.as_deref() == Some(UNWANTED))
    }

    /// The id that a cancellation names.
    pub fn cancelled(&self) -> Option<Id> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelledParams<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let params: CancelledParams = json::from_str(self.params?.get()).ok()?;
        Some(Id::of(params.request_id))
    }
}

impl Id {
    /// Parses an id. Progress tokens are compared in the same way.
    pub fn of(raw: &RawValue) -> Self {
        if raw.get() == "null" {
            return Self::Absent;
        }
        let mut text = match json::from_str::<Value>(raw.get()) {
            Ok(value) => whole_number(&value).unwrap_or_else(|| json::canonical(&value)),
            Err(_) => raw.get().to_owned(),
        };
        if text.len() > MAX_ID {
            let hash =
                sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix(&text));
            text = data_encoding::HEXLOWER.encode(&hash);
        }
        Self::Value(text)
    }
}

/// A number without a fraction as people write it; its canonical form is hard to read.
fn whole_number(value: &Value) -> Option<String> {
    /// The largest integer up to which floats are exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let digits = value.as_number()?.as_str();
    if let Ok(number) = digits.parse::<i64>() {
        return Some(number.to_string());
    }
    let number: f64 = digits.parse().ok()?;
    (json::is_integer(value.as_number()?) && number.abs() < EXACT).then(|| format!("{number:.0}"))
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no id"),
            Self::Value(id) => write!(f, "id `{id}`"),
        }
    }
}

/// Passes the message, or each message of a batch, to `take`. Bytes that are not UTF-8 are read as far
/// as possible, and reported as an error too.
pub fn each(bytes: &[u8], take: &mut dyn FnMut(&Message<'_>)) -> Result<(), MessageParseError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first = bytes.trim_ascii_start().first();
    let looks_like_json = matches!(first, Some(b'{' | b'['));
    let unparsable = |reason: String| MessageParseError {
        looks_like_json,
        reason,
    };
    // The check alone takes a fraction of the time that the lossy conversion takes for the same result.
    let text = str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let not_utf8 = match &text {
        Cow::Borrowed(_) => None,
        Cow::Owned(_) => Some(unparsable("it is not UTF-8".to_owned())),
    };
    if first == Some(&b'[') {
        let batch: Batch = json::from_str(&text).map_err(|error| unparsable(error.to_string()))?;
        let mut wrong = not_utf8;
        for raw in batch.0 {
            match json::from_str(raw.get()) {
                // A list in the place of a message would be read by position.
                Ok(message) if raw.get().starts_with('{') => take(&message),
                Ok(_) => wrong = Some(unparsable("it is not an object".to_owned())),
                Err(error) => wrong = Some(unparsable(error.to_string())),
            }
        }
        return wrong.map_or(Ok(()), Err);
    }
    if first.is_some() && !looks_like_json {
        return Err(unparsable("it is neither an object nor a list".to_owned()));
    }
    let message = json::from_str(&text).map_err(|error| unparsable(error.to_string()))?;
    take(&message);
    not_utf8.map_or(Ok(()), Err)
}

/// The messages of a batch, up to the maximum.
struct Batch<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Batch<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = seq.next_element()? {
                    if messages.len() == MAX_BATCH {
                        return Err(A::Error::custom(format!("more than {MAX_BATCH} messages")));
                    }
                    messages.push(message);
                }
                if messages.is_empty() {
                    return Err(A::Error::custom("an empty batch"));
                }
                Ok(messages)
            }
        }
        deserializer.deserialize_seq(Messages).map(Batch)
    }
}

/// Deserializes a part that is present, even if it is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

//! Requests to models and their replies, independent of the provider.
//!
//! Main types: [`ModelRequest`] and [`Reply`]. The record stores conversations in this form too.

mod fingerprint;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

pub use self::fingerprint::Fingerprints;

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub messages: Vec<ModelMessage>,
    /// The available tools. Their names are valid for every provider.
    #[serde(default, skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// The tool that the model must call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_call: Option<String>,
    /// The maximum length of the reply in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The sampling temperature, if the provider supports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// The tools of a request. Clones share them: each turn of a conversation has the same.
#[derive(Debug, Clone, Default)]
pub struct Tools(Arc<ToolList>);

#[derive(Debug, Default)]
struct ToolList {
    tools: Box<[Tool]>,
    json: OnceLock<Box<RawValue>>,
}

impl Tools {
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }

    /// All of them as JSON.
    pub fn text(&self) -> &str {
        self.json().get()
    }

    fn json(&self) -> &RawValue {
        self.0
            .json
            .get_or_init(|| to_raw_value(&self.0.tools).unwrap_or_default())
    }

    /// Whether both are the same list, not only an equal one.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Tools {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        &self.0.tools
    }
}

impl From<Vec<Tool>> for Tools {
    fn from(tools: Vec<Tool>) -> Self {
        tools.into_iter().collect()
    }
}

impl FromIterator<Tool> for Tools {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Self {
        Self(Arc::new(ToolList {
            tools: tools.into_iter().collect(),
            json: OnceLock::new(),
        }))
    }
}

impl PartialEq for Tools {
    fn eq(&self, other: &Self) -> bool {
        self.is(other) || self.0.tools == other.0.tools
    }
}

impl Serialize for Tools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

/// A tool, as models see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// A letter, then letters, digits, `_` and `-`, at most 64 characters.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments, as the server sent it.
    pub schema: Value,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelMessage {
    /// A text of the user.
    User(String),
    /// An image or a sound of the user.
    Media(Media),
    Assistant(Turn),
    /// The results of all calls of the turn before.
    Results(Vec<ToolResult>),
}

/// An image or a sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Media {
    /// The MIME type, such as `image/png`.
    pub mime_type: String,
    /// The content in base64.
    pub data: String,
}

/// One turn of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The model's reasoning in the provider's own form, to be sent back unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<Thinking>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
}

/// A part of the model's reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// The text, as far as the provider shows it.
    pub text: String,
    /// The provider's own block, which must be sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The model's id for this call.
    pub id: String,
    /// The tool's name, as the model sees it.
    pub name: String,
    pub arguments: Arguments,
}

impl ModelRequest {
    /// The approximate size in bytes, which tells how long it takes to process.
    pub fn text_bytes(&self) -> usize {
        let of = |message: &ModelMessage| match message {
            ModelMessage::User(text) => text.len(),
            ModelMessage::Media(media) => media.data.len(),
            ModelMessage::Assistant(turn) => turn.text.len(),
            ModelMessage::Results(results) => results.iter().map(|result| result.text.len()).sum(),
        };
        let messages: usize = self.messages.iter().map(of).sum();
        messages + self.system.as_ref().map_or(0, String::len)
    }
}

/// The arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arguments {
    Object(Map<String, Value>),
    /// Not a JSON object. The model gets an error message about it.
    Malformed {
        /// The text that the model wrote.
        text: String,
        reason: String,
    },
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The model's id for the call.
    pub id: String,
    /// The tool's name, as the model sees it.
    pub name: String,
    /// The result as text.
    pub text: String,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// The images and sounds in the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
}

/// A reply of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub turn: Turn,
    pub stop: StopReason,
    pub usage: Usage,
    /// The original reply of the provider, if any.
    pub raw: Option<Vec<u8>>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    Done,
    /// The model waits for the results of its calls.
    Calls,
    /// The reply reached the length limit.
    Length,
    /// The model or a filter refused.
    Refusal,
    /// Another reason, in the provider's word.
    Other(String),
}

/// Token usage. `None` means unknown, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All input tokens, including cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// All output tokens, including reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The part of the input that was read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The part of the input that was written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
    /// The part of the output that was thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// The most tokens that one reply, or one session of an external agent, can use: a hundred times
/// the largest context window. A higher number is wrong.
pub const MAX_REPORTED_TOKENS: u64 = 1_000_000_000;

impl Usage {
    /// The sum of the known input and output tokens.
    pub fn total(&self) -> u64 {
        let (input, output) = (self.input.unwrap_or(0), self.output.unwrap_or(0));
        input.saturating_add(output)
    }

    /// Whether both the input and the output are known.
    pub fn is_known(&self) -> bool {
        self.input.is_some() && self.output.is_some()
    }

    /// The usage if it is plausible; otherwise the implausible number.
    pub fn believable(self) -> Result<Self, u64> {
        let Self {
            input,
            output,
            cached,
            cache_written,
            reasoning,
        } = self;
        let counts = [input, output, cached, cache_written, reasoning];
        match counts.into_iter().flatten().max() {
            Some(most) if most > MAX_REPORTED_TOKENS => Err(most),
            _ => Ok(self),
        }
    }

    /// Adds another usage. A number that only one of them knows is kept.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut Option<u64>, b: Option<u64>| {
            if let Some(more) = b {
                *a = Some(a.unwrap_or(0).saturating_add(more));
            }
        };
        sum(&mut self.input, other.input);
        sum(&mut self.output, other.output);
        sum(&mut self.cached, other.cached);
        sum(&mut self.cache_written, other.cache_written);
        sum(&mut self.reasoning, other.reasoning);
    }
}

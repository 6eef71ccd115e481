//! What is said to a model, and what it says, in no provider's words.
//!
//! Main types: [`ModelRequest`] and [`Reply`]. They are also how a conversation is written to the record.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    /// What it is told before the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation.
    pub messages: Vec<ModelMessage>,
    /// The tools that it may call. Their names fit every provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// The one tool that it must call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_call: Option<String>,
    /// How long the reply may be, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How free the model is, where the provider has that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// A tool, as models are told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name: a letter, then letters, digits, `_` and `-`, 64 at most.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, as the server gives it.
    pub schema: Value,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelMessage {
    /// What the user says.
    User(String),
    /// What the user shows.
    Media(Media),
    /// What the model said.
    Assistant(Turn),
    /// What came of the calls of the turn before, all of them.
    Results(Vec<ToolResult>),
}

/// A picture or a sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Media {
    /// What it is, such as `image/png`.
    pub mime_type: String,
    /// Its bytes, in base64.
    pub data: String,
}

/// What a model says at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Its text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What it thought, in the provider's own form, to be sent back as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<Thinking>,
    /// The tools that it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
}

/// What a model thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// In words, as far as they are shown.
    pub text: String,
    /// The provider's own block, which it wants back untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// A call that a model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The model's name for this call.
    pub id: String,
    /// The tool, by the name that the model was told.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

impl ModelRequest {
    /// About how many bytes it holds: what it takes to read it once.
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

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arguments {
    /// As they should be.
    Object(Map<String, Value>),
    /// Not a JSON object: the model's mistake, which it is told of.
    Malformed {
        /// What the model wrote.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The model's name for the call.
    pub id: String,
    /// The tool, by the name that the model was told.
    pub name: String,
    /// What it gave, as text.
    pub text: String,
    /// Whether that says that it failed.
    #[serde(default)]
    pub is_error: bool,
    /// Pictures and sounds in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
}

/// What a model replied.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What it said.
    pub turn: Turn,
    /// Why it stopped.
    pub stop: StopReason,
    /// How many tokens it took.
    pub usage: Usage,
    /// The reply as it came over the wire, where there is one.
    pub raw: Option<Vec<u8>>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It was done.
    Done,
    /// It waits for what its calls give.
    Calls,
    /// The reply was cut off: it would have become too long.
    Length,
    /// It declined, or a filter did.
    Refusal,
    /// Something else, in the provider's word.
    Other(String),
}

/// How many tokens something took. Absent is unknown, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// What went in, everything included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// What came out, thinking included.
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

/// The most tokens that one reply, or one session of an external agent, can have taken: a hundred times
/// what the largest models read at once. Whoever reports more is wrong.
pub const MAX_REPORTED_TOKENS: u64 = 1_000_000_000;

impl Usage {
    /// Everything that went in and came out, as far as it is known.
    pub fn total(&self) -> u64 {
        let (input, output) = (self.input.unwrap_or(0), self.output.unwrap_or(0));
        input.saturating_add(output)
    }

    /// Whether both what went in and what came out are known.
    pub fn is_known(&self) -> bool {
        self.input.is_some() && self.output.is_some()
    }

    /// The usage, if it can be true; otherwise nothing of it is known, and the absurd number is given.
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

    /// Adds what something else took. What is known of either is known of both.
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

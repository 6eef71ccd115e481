//! The transcript of a trial, which checks read.
//!
//! The main type is [`Transcript`]. It holds only what the agent did while it worked. Every attempt
//! is a call, successful or not.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::ToolName;
use crate::excerpt::excerpt;

/// The actions of an agent in a trial, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// Tool calls, resource reads and prompt gets, in the order in which they reached the tap.
    pub calls: Vec<Call>,
    /// The skills that the agent loaded, in order; `None` if it does not report them.
    pub skills: Option<Vec<SkillLoad>>,
    /// Messages of the agent that may be calls, but that `calls` lacks or does not fully describe:
    /// the record truncated them, or servers may read them differently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadMessage>,
    /// The tools that the agent chose, in a selection trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<ToolSelection>,
    /// The messages of the user, in order. Checks on one turn need them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<UserMessage>,
}

/// The place of a message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The sequence number of the event in the trial's record.
    pub seq: u64,
    /// The turn that it belongs to; the prompt is turn 1.
    pub turn: u32,
}

/// The tools that an agent chose in its first turn, without calling them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSelection {
    /// The calls, in order.
    pub calls: Vec<ChosenTool>,
    /// The calls of an external agent that Proctor answered itself, in order.
    pub withheld: Vec<ToolName>,
}

/// A call that an agent asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChosenTool {
    /// The server that offers the tool; `None` if no server does.
    pub server: Option<String>,
    pub tool: String,
    pub arguments: Payload,
}

/// A message of the agent that may be a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadMessage {
    /// The sequence number of the message in the trial's record.
    pub seq: u64,
    /// The server it was sent to, by its name in the suite.
    pub server: String,
    /// The kind of call, if it is clear.
    pub kind: Option<CallKind>,
    /// The tool, URI or prompt, if it is clear.
    pub name: Option<String>,
    /// Why the message can't be read.
    pub reason: String,
}

impl fmt::Display for UnreadMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = excerpt(&self.server);
        match (self.kind, &self.name) {
            (Some(kind), Some(name)) => {
                write!(f, "a `{}` of `{server}` `{}`", kind.method(), excerpt(name))?;
            }
            (Some(kind), None) => write!(f, "a `{}` on `{server}`", kind.method())?,
            (None, _) => write!(f, "a call on `{server}`")?,
        }
        write!(f, ": {}", excerpt(&self.reason))
    }
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    Tool,
    Resource,
    Prompt,
}

impl CallKind {
    pub const ALL: [Self; 3] = [Self::Tool, Self::Resource, Self::Prompt];

    /// The JSON-RPC method of the request.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/call",
            Self::Resource => "resources/read",
            Self::Prompt => "prompts/get",
        }
    }

    /// The kind of call of a method.
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The parameter that holds the target.
    pub(crate) fn target_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
        }
    }
}

/// A request of the agent to a server, with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The sequence number of the request in the trial's record.
    pub seq: u64,
    /// The server, by its name in the suite.
    pub server: String,
    pub request: CallRequest,
    pub answer: CallOutcome,
    /// The time from the request to its response; `None` if it was not measured.
    pub duration: Option<Duration>,
}

/// The target and arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallRequest {
    /// A request with the method `tools/call`.
    Tool { name: String, arguments: Payload },
    /// A request with the method `resources/read`.
    Resource { uri: String },
    /// A request with the method `prompts/get`.
    Prompt { name: String, arguments: Payload },
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// The whole result: for a tool `content`, `structuredContent`, `isError`.
    Result(Payload),
    Error {
        code: i64,
        message: String,
    },
    /// The call was never answered.
    None,
}

/// A part of a message, as far as it can be read.
///
/// Derived equality compares the spelling of numbers; checks use [`crate::json::equal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// The message has no such part.
    Absent,
    Value(Value),
    /// Truncated in the record, so its content is unknown.
    Cut {
        /// The length before it was truncated.
        bytes: u64,
    },
    /// In the record, but not read: together with the calls before, it exceeds the size limit.
    Omitted {
        bytes: u64,
    },
    /// Not JSON, so its meaning is unknown.
    Unreadable {
        reason: String,
    },
}

/// Why a part of a message can't be read; `Display` continues a text such as "its arguments".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadablePart {
    #[error("({bytes} bytes) can't be read: truncated in the record")]
    Cut { bytes: u64 },
    #[error("({bytes} bytes) can't be read: all calls together exceed the size limit")]
    Omitted { bytes: u64 },
    #[error("could not be parsed as JSON: {}", excerpt(reason))]
    NotJson { reason: String },
}

impl Payload {
    /// The part, if the message has one, or why it can't be read.
    pub fn read(&self) -> Result<Option<&Value>, UnreadablePart> {
        match self {
            Self::Absent => Ok(None),
            Self::Value(value) => Ok(Some(value)),
            Self::Cut { bytes } => Err(UnreadablePart::Cut { bytes: *bytes }),
            Self::Omitted { bytes } => Err(UnreadablePart::Omitted { bytes: *bytes }),
            Self::Unreadable { reason } => Err(UnreadablePart::NotJson {
                reason: reason.clone(),
            }),
        }
    }
}

/// A skill that the agent loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillLoad {
    /// The sequence number of the event in the trial's record.
    pub seq: u64,
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_survives_being_written_and_read() {
        let value = serde_json::from_str(r#"{"id": 18446744073709551617, "x": 0.10}"#).unwrap();
        let call = |seq, request, answer| Call {
            seq,
            server: "fs".to_owned(),
            request,
            answer,
            duration: Some(Duration::from_millis(12)),
        };
        let transcript = Transcript {
            calls: vec![
                call(
                    1,
                    CallRequest::Tool {
                        name: "read".to_owned(),
                        arguments: Payload::Value(value),
                    },
                    CallOutcome::Result(Payload::Cut { bytes: 7 }),
                ),
                call(
                    2,
                    CallRequest::Prompt {
                        name: "greet".to_owned(),
                        arguments: Payload::Absent,
                    },
                    CallOutcome::Error {
                        code: -32602,
                        message: "no".to_owned(),
                    },
                ),
                call(
                    3,
                    CallRequest::Resource {
                        uri: "file:///a".to_owned(),
                    },
                    CallOutcome::None,
                ),
            ],
            skills: Some(vec![SkillLoad {
                seq: 4,
                name: "pdf".to_owned(),
            }]),
            unread: Vec::new(),
            selection: Some(ToolSelection {
                calls: vec![ChosenTool {
                    server: None,
                    tool: "x".to_owned(),
                    arguments: Payload::Absent,
                }],
                withheld: Vec::new(),
            }),
            messages: Vec::new(),
        };
        let text = serde_json::to_string(&transcript).unwrap();
        assert_eq!(
            serde_json::from_str::<Transcript>(&text).unwrap(),
            transcript
        );
    }
}

//! What happened in a trial, as checks read it.
//!
//! Its main type is [`Transcript`]. Only what the agent did while it worked is in here: an
//! attempt is a call, whether or not it succeeded.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::excerpt::excerpt;

/// What an agent did in a trial, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// Tool calls, resource reads and prompt gets, in the order in which they reached the tap.
    pub calls: Vec<Call>,
    /// The skills that the agent loaded, in order; `None` if it does not tell.
    pub skills: Option<Vec<SkillLoad>>,
    /// Messages of the agent that may be calls, and are missing or not fully described in `calls`:
    /// the record had to cut them, or servers may read them in different ways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadMessage>,
}

/// A message of the agent that may be a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadMessage {
    /// The number of the message in the trial's record.
    pub seq: u64,
    /// The server it was sent to, by its name in the suite.
    pub server: String,
    /// What it calls, if that is clear.
    pub kind: Option<CallKind>,
    /// The tool, URI or prompt, if that is clear.
    pub name: Option<String>,
    /// Why it can't be read.
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

/// What a call asks a server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// To call a tool.
    Tool,
    /// To read a resource.
    Resource,
    /// To get a prompt.
    Prompt,
}

impl CallKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tool, Self::Resource, Self::Prompt];

    /// The method of JSON-RPC.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tool => "tools/call",
            Self::Resource => "resources/read",
            Self::Prompt => "prompts/get",
        }
    }

    /// The kind of call that a method makes.
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The parameter that names what is called.
    pub(crate) fn target_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
        }
    }
}

/// A request of the agent to a server, with what came back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The number of the request in the trial's record.
    pub seq: u64,
    /// The server, by its name in the suite.
    pub server: String,
    /// What was asked for.
    pub request: CallRequest,
    /// What came back.
    pub answer: CallOutcome,
    /// From the request's arrival to its answer's; `None` if that was not measured.
    pub duration: Option<Duration>,
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallRequest {
    /// `tools/call`.
    Tool {
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Payload,
    },
    /// `resources/read`.
    Resource {
        /// The resource.
        uri: String,
    },
    /// `prompts/get`.
    Prompt {
        /// The prompt.
        name: String,
        /// Its arguments.
        arguments: Payload,
    },
}

/// What came back for a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// The whole result: for a tool `content`, `structuredContent`, `isError`.
    Result(Payload),
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The call was never answered.
    None,
}

/// A part of a message, as far as it can be read.
///
/// Derived equality compares how numbers are spelled; checks use [`crate::json::equal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// The message has no such part.
    Absent,
    /// The part.
    Value(Value),
    /// The record had to cut it: nothing can be said about what it held.
    Cut {
        /// How long it was.
        bytes: u64,
    },
    /// The record holds it, but together with the calls before it is more than is read at once.
    Omitted {
        /// How long it is.
        bytes: u64,
    },
    /// It is not JSON: nothing can be said about what it meant.
    Unreadable {
        /// What the parser said.
        reason: String,
    },
}

/// Why a part of a message can't be read from the record; `Display` goes on after "its arguments".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadablePart {
    /// The record does not hold it.
    #[error("({bytes} bytes) had to be cut from the record")]
    Cut {
        /// How long it was.
        bytes: u64,
    },
    /// It was not read.
    #[error("({bytes} bytes) had to be left out: all calls together are more than is read at once")]
    Omitted {
        /// How long it is.
        bytes: u64,
    },
    /// It is not JSON.
    #[error("could not be read as JSON: {}", excerpt(reason))]
    NotJson {
        /// What the parser said.
        reason: String,
    },
}

impl Payload {
    /// The part, if the message has one, or why nobody can tell.
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
    /// The number of the event in the trial's record.
    pub seq: u64,
    /// The skill.
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
        };
        let text = serde_json::to_string(&transcript).unwrap();
        assert_eq!(
            serde_json::from_str::<Transcript>(&text).unwrap(),
            transcript
        );
    }
}

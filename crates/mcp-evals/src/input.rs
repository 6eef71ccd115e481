//! The input of an eval. Its type is the level.
//!
//! Its main type is [`Input`].

use serde_json::{Map, Number, Value};

use crate::fields::{Fields, ShapeFault, below, fault, members, object, serde_by_hand};
use crate::matching::whole_number;
use crate::message::Message;

/// The input of an eval.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A model gets messages and the server's tools, and must call the right one.
    Invocation(InvocationInput),
    /// The client calls a tool.
    Execution(ExecutionInput),
    /// A full agent loop runs from messages.
    Scenario(ScenarioInput),
    /// An input of an unknown type, unchanged.
    Other(Map<String, Value>),
}

/// The input of an invocation eval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InvocationInput {
    /// The messages for the model.
    pub messages: Vec<Message>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// The input of an execution eval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecutionInput {
    /// The tool to call.
    pub tool_name: String,
    /// The arguments of the call, sent exactly as written.
    pub arguments: Map<String, Value>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// The input of a scenario eval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScenarioInput {
    /// The messages at the start of the loop.
    pub messages: Vec<Message>,
    /// The maximum number of turns, as written. Without it the client decides.
    pub max_turns: Option<Number>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

impl ScenarioInput {
    /// The limit as an integer; `None` if it is absent or not a whole number of at least 1.
    ///
    /// A number above `u64::MAX` counts as `u64::MAX`.
    pub fn turn_limit(&self) -> Option<u64> {
        whole_number(self.max_turns.as_ref()?).filter(|turns| *turns > 0)
    }
}

impl Input {
    /// An invocation eval's input.
    pub fn invocation(messages: impl IntoIterator<Item = Message>) -> Self {
        Self::Invocation(InvocationInput {
            messages: messages.into_iter().collect(),
            extra: Map::new(),
        })
    }

    /// An execution eval's input. Arguments that are not an object are dropped.
    pub fn execution(tool_name: impl Into<String>, arguments: Value) -> Self {
        Self::Execution(ExecutionInput {
            tool_name: tool_name.into(),
            arguments: members(arguments),
            extra: Map::new(),
        })
    }

    /// A scenario eval's input, without a limit of its own.
    pub fn scenario(messages: impl IntoIterator<Item = Message>) -> Self {
        Self::Scenario(ScenarioInput {
            messages: messages.into_iter().collect(),
            max_turns: None,
            extra: Map::new(),
        })
    }

    /// A scenario eval's input, with a limit.
    pub fn scenario_within(messages: impl IntoIterator<Item = Message>, max_turns: u32) -> Self {
        Self::Scenario(ScenarioInput {
            messages: messages.into_iter().collect(),
            max_turns: Some(max_turns.into()),
            extra: Map::new(),
        })
    }

    /// The value of `type`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Invocation(_) => "invocation",
            Self::Execution(_) => "execution",
            Self::Scenario(_) => "scenario",
            Self::Other(members) => members.get("type").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// The messages, for levels that have messages.
    pub fn messages(&self) -> &[Message] {
        match self {
            Self::Invocation(input) => &input.messages,
            Self::Scenario(input) => &input.messages,
            Self::Execution(_) | Self::Other(_) => &[],
        }
    }

    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let kind = match members.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(_) => {
                fault(faults, &below(path, "type"), "must be a string");
                return None;
            }
            None => {
                fault(faults, &below(path, "type"), "is missing");
                return None;
            }
        };
        if !matches!(kind.as_str(), "invocation" | "execution" | "scenario") {
            return Some(Self::Other(members));
        }
        let mut fields = Fields::new(members, path, faults);
        fields.take("type");
        match kind.as_str() {
            "invocation" => {
                let messages = fields.read("messages", Message::read_all);
                Some(Self::Invocation(InvocationInput {
                    extra: fields.rest()?,
                    messages: messages?,
                }))
            }
            "execution" => {
                let tool_name = fields.text("toolName");
                let arguments = fields.object("arguments");
                Some(Self::Execution(ExecutionInput {
                    extra: fields.rest()?,
                    tool_name: tool_name?,
                    arguments: arguments?,
                }))
            }
            _ => {
                let messages = fields.read("messages", Message::read_all);
                let max_turns = fields.optional_number("maxTurns");
                Some(Self::Scenario(ScenarioInput {
                    extra: fields.rest()?,
                    messages: messages?,
                    max_turns,
                }))
            }
        }
    }

    pub(crate) fn write(&self) -> Value {
        let mut members = match self {
            Self::Invocation(input) => input.extra.clone(),
            Self::Execution(input) => input.extra.clone(),
            Self::Scenario(input) => input.extra.clone(),
            Self::Other(members) => return Value::Object(members.clone()),
        };
        members.insert("type".to_owned(), self.kind().into());
        match self {
            Self::Invocation(input) => {
                members.insert("messages".to_owned(), Message::write_all(&input.messages));
            }
            Self::Execution(input) => {
                members.insert("toolName".to_owned(), input.tool_name.as_str().into());
                members.insert("arguments".to_owned(), input.arguments.clone().into());
            }
            Self::Scenario(input) => {
                members.insert("messages".to_owned(), Message::write_all(&input.messages));
                if let Some(max_turns) = &input.max_turns {
                    members.insert("maxTurns".to_owned(), max_turns.clone().into());
                }
            }
            Self::Other(_) => {}
        }
        Value::Object(members)
    }
}

serde_by_hand!(Input);

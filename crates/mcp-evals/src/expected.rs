//! The expected outcome of an eval.
//!
//! Its main type is [`Expected`]. Which fields of an exact match have an effect depends on the
//! eval's level; [`validate`](crate::validate) warns of the others.

use serde_json::{Map, Value};

use crate::fields::{Fields, ShapeFault, below, fault, members, object, serde_by_hand};

/// The expected outcome of an eval.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// Values that must be equal.
    ExactMatch(ExactMatch),
    /// A rubric for a judge.
    LlmJudge(LlmJudge),
    /// An expectation of an unknown type, unchanged.
    Other(Map<String, Value>),
}

/// Values that must be equal: `tool_name` and `arguments` for an invocation, `content` for an
/// execution.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExactMatch {
    /// The tool that must be called; any tool if absent.
    pub tool_name: Option<String>,
    /// The arguments that the call must have. Other arguments are ignored.
    pub arguments: Option<Map<String, Value>>,
    /// The expected `content` of the tool's result.
    pub content: Option<Value>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// A rubric for a judge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LlmJudge {
    /// The criterion for the judge, in plain words.
    pub rubric: String,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

impl LlmJudge {
    /// Whether the rubric is still a TODO note for its author. A judge could agree with anything by it.
    pub fn is_unfinished(&self) -> bool {
        self.rubric.trim_start().starts_with("TODO")
    }
}

impl Expected {
    /// Expects a tool call with at least these arguments. Arguments that are not an object are dropped.
    pub fn call(tool_name: impl Into<String>, arguments: Value) -> Self {
        Self::ExactMatch(ExactMatch {
            tool_name: Some(tool_name.into()),
            arguments: Some(members(arguments)),
            ..ExactMatch::default()
        })
    }

    /// Expects a tool result with exactly this content.
    pub fn content(content: Value) -> Self {
        Self::ExactMatch(ExactMatch {
            content: Some(content),
            ..ExactMatch::default()
        })
    }

    /// Expects that a judge accepts the outcome by this rubric.
    pub fn rubric(rubric: impl Into<String>) -> Self {
        Self::LlmJudge(LlmJudge {
            rubric: rubric.into(),
            extra: Map::new(),
        })
    }

    /// The value of `type`.
    pub fn kind(&self) -> &str {
        match self {
            Self::ExactMatch(_) => "exact-match",
            Self::LlmJudge(_) => "llm-as-judge",
            Self::Other(members) => members.get("type").and_then(Value::as_str).unwrap_or(""),
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
        if !matches!(kind.as_str(), "exact-match" | "llm-as-judge") {
            return Some(Self::Other(members));
        }
        let mut fields = Fields::new(members, path, faults);
        fields.take("type");
        if kind == "llm-as-judge" {
            let rubric = fields.text("rubric");
            return Some(Self::LlmJudge(LlmJudge {
                extra: fields.rest()?,
                rubric: rubric?,
            }));
        }
        let tool_name = fields.optional_text("toolName");
        let arguments = fields.optional_object("arguments");
        let content = fields.take("content");
        Some(Self::ExactMatch(ExactMatch {
            extra: fields.rest()?,
            tool_name,
            arguments,
            content,
        }))
    }

    pub(crate) fn write(&self) -> Value {
        let members = match self {
            Self::ExactMatch(expected) => expected.members(),
            Self::LlmJudge(expected) => {
                let mut members = expected.extra.clone();
                members.insert("rubric".to_owned(), expected.rubric.as_str().into());
                members
            }
            Self::Other(members) => return Value::Object(members.clone()),
        };
        let mut members = members;
        members.insert("type".to_owned(), self.kind().into());
        Value::Object(members)
    }
}

impl ExactMatch {
    fn members(&self) -> Map<String, Value> {
        let mut members = self.extra.clone();
        if let Some(tool_name) = &self.tool_name {
            members.insert("toolName".to_owned(), tool_name.as_str().into());
        }
        if let Some(arguments) = &self.arguments {
            members.insert("arguments".to_owned(), arguments.clone().into());
        }
        if let Some(content) = &self.content {
            members.insert("content".to_owned(), content.clone());
        }
        members
    }
}

serde_by_hand!(Expected);

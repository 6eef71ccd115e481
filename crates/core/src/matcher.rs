//! Matchers: patterns for JSON values, written as JSON and compiled once.
//!
//! Its main type is [`Matcher`]. A plain object requires its own keys at every depth, an array
//! for its elements one by one, a scalar for an equal one; keys that start with `$` are operators.
//! Absent is not `null`: only `$exists` and `$not` can accept an absent value.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod compile;
mod distance;
mod evaluate;
mod reach;
mod reads;
mod schema;
#[cfg(test)]
mod tests;

use std::fmt;

use proctor_record::json;
use serde_json::{Number, Value};

use self::schema::Schema;
use crate::pattern::Pattern;

/// A compiled matcher, with its source.
#[derive(Debug, Clone)]
pub struct Matcher {
    written: Value,
    node: MatcherNode,
}

impl serde::Serialize for Matcher {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(to)
    }
}

/// Why a value is not a matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MatcherError {
    /// The path to the mistake inside the source.
    pub path: Vec<PathStep>,
    pub message: String,
    /// A suggestion for the user.
    pub hint: Option<String>,
}

/// One step into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// To a member of an object.
    Key(String),
    /// To an element of an array.
    Index(usize),
}

/// Where and how a value differs from the matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMismatch {
    /// The place inside the value, like `items[2].name`; empty for the value itself.
    pub path: String,
    /// The expected and the found value, as text.
    pub reason: String,
}

impl Matcher {
    /// Compiles a matcher, or returns all mistakes in it.
    pub fn compile(written: &Value) -> Result<Self, Vec<MatcherError>> {
        Ok(Self {
            written: written.clone(),
            node: compile::compile(written)?,
        })
    }

    /// The source of the matcher.
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// Whether a value matches; `None` is an absent value.
    pub fn evaluate(&self, value: Option<&Value>) -> Result<(), ValueMismatch> {
        evaluate::evaluate(&self.node, value)
    }

    /// Whether the result depends on a string that contains half of a surrogate pair, which
    /// parsers read differently.
    pub fn reads_lone_surrogate(&self, value: Option<&Value>) -> bool {
        value.is_some_and(|value| {
            json::has_lone_surrogate(value) && reads::lone_surrogate(&self.node, value)
        })
    }

    /// The number of differences from a match, to rank near misses: 0 for a match.
    pub fn distance(&self, value: Option<&Value>) -> usize {
        distance::distance(&self.node, value)
    }

    /// Whether some JSON object may match. `false` is certain, `true` is not.
    pub fn can_match_object(&self) -> bool {
        reach::can_match_object(&self.node)
    }

    /// Whether any value may match. `false` is certain, `true` is not.
    pub fn can_match(&self) -> bool {
        reach::can_match(&self.node)
    }

    /// Whether every JSON object matches. `true` is certain, `false` is not.
    pub fn matches_every_object(&self) -> bool {
        reach::matches_every_object(&self.node)
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        json::equal(&self.written, &other.written)
    }
}

impl ValueMismatch {
    /// The same mismatch, with `member` added before its path.
    #[must_use]
    pub fn under(self, member: &str) -> Self {
        let path = match self.path.chars().next() {
            None => member.to_owned(),
            Some('[') => format!("{member}{}", self.path),
            Some(_) => format!("{member}.{}", self.path),
        };
        Self { path, ..self }
    }
}

impl fmt::Display for ValueMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(&self.reason)
    }
}

/// The condition on one value.
#[derive(Debug, Clone)]
enum MatcherNode {
    Literal(Value),
    Object(Vec<(String, MatcherNode)>),
    /// An array of the same length with elements that match.
    Array(Vec<MatcherNode>),
    All(Vec<Operator>),
}

#[derive(Debug, Clone)]
enum Operator {
    Exact(Value),
    Contains(ContainsOperand),
    Match(Pattern),
    OneOf(Vec<Operand>),
    Type(Vec<JsonKind>),
    Exists(bool),
    Approx { value: Number, tolerance: Number },
    Min(Number),
    Max(Number),
    Unordered(Vec<Operand>),
    Schema(Schema),
    Not(Box<Operand>),
}

#[derive(Debug, Clone)]
struct ContainsOperand {
    /// The substring to find; only set if the operand is a string.
    text: Option<String>,
    /// The matcher for an element of an array.
    element: Operand,
}

/// A matcher inside an operator, with its short form for messages.
#[derive(Debug, Clone)]
struct Operand {
    node: MatcherNode,
    brief: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonKind {
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array,
    Null,
}

impl JsonKind {
    const ALL: [Self; 7] = [
        Self::String,
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Object,
        Self::Array,
        Self::Null,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Null => "null",
        }
    }

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => matches!(value, Value::Number(number) if json::is_integer(number)),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::Null => value.is_null(),
        }
    }
}

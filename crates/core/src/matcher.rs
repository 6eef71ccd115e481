//! What a JSON value must look like: written as JSON, compiled once, asked many times.
//!
//! Its main type is [`Matcher`]. A plain object asks for its own keys at every depth, an array
//! for its elements one by one, a scalar for an equal one; keys that start with `$` are operators.
//! Absent is not `null`: only `$exists` and `$not` can accept a value that is not there.

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

use serde_json::{Number, Value};

use self::schema::Schema;
use crate::json;
use crate::pattern::Pattern;

/// A compiled matcher that remembers how it was written.
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
    /// The way to the offending place inside the written value.
    pub path: Vec<PathStep>,
    /// What is wrong there.
    pub message: String,
    /// What to write instead.
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

/// Where and how a value differs from what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMismatch {
    /// The place inside the value, like `items[2].name`; empty for the value itself.
    pub path: String,
    /// What was expected and found there.
    pub reason: String,
}

impl Matcher {
    /// Compiles a written matcher, or says everything that is wrong with it.
    pub fn compile(written: &Value) -> Result<Self, Vec<MatcherError>> {
        Ok(Self {
            written: written.clone(),
            node: compile::compile(written)?,
        })
    }

    /// The matcher as it was written.
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// Whether a value matches; `None` is one that is not there.
    pub fn evaluate(&self, value: Option<&Value>) -> Result<(), ValueMismatch> {
        evaluate::evaluate(&self.node, value)
    }

    /// Whether the answer depends on a text of the value that holds half of a surrogate pair, which
    /// readers take for different texts.
    pub fn reads_lone_surrogate(&self, value: Option<&Value>) -> bool {
        value.is_some_and(|value| {
            json::has_lone_surrogate(value) && reads::lone_surrogate(&self.node, value)
        })
    }

    /// How much of a value is in the way of a match: 0 for a match, and to rank near misses.
    pub fn distance(&self, value: Option<&Value>) -> usize {
        distance::distance(&self.node, value)
    }

    /// Whether some JSON object may match. `false` is certain, `true` is not.
    pub fn can_match_object(&self) -> bool {
        reach::can_match_object(&self.node)
    }

    /// Whether anything may match. `false` is certain, `true` is not.
    pub fn can_match(&self) -> bool {
        reach::can_match(&self.node)
    }

    /// Whether no JSON object fails to match. `true` is certain, `false` is not.
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
    /// The same mismatch, seen from a value that holds this one as `member`.
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

/// What a matcher asks of one value.
#[derive(Debug, Clone)]
enum MatcherNode {
    /// To be equal.
    Literal(Value),
    /// To be an object with members that match.
    Object(Vec<(String, MatcherNode)>),
    /// To be an array of this length with elements that match.
    Array(Vec<MatcherNode>),
    /// To satisfy every operator.
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
    /// What a string must have in it; only a string operand asks for that.
    text: Option<String>,
    /// What an element of an array must match.
    element: Operand,
}

/// A matcher inside an operator, with what a message calls it.
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

//! One eval: its input and its expected outcome.
//!
//! Its main type is [`Eval`]. Reading and writing preserve every field, known or not.

use std::fmt;

use serde_json::{Map, Value};

use crate::expected::Expected;
use crate::fields::{Fields, ShapeFault, object, serde_by_hand};
use crate::input::Input;

/// One evaluation that a server ships.
///
/// `==` compares numbers by their spelling; [`matching::equal`](crate::matching::equal) by value.
#[derive(Debug, Clone, PartialEq)]
pub struct Eval {
    /// A stable name, unique in the server's list.
    pub id: String,
    /// A label for people.
    pub name: String,
    /// The behaviour that the eval verifies.
    pub description: Option<String>,
    /// How the outcome is graded. Equals the type of `expected`.
    pub grading_type: GradingType,
    /// The input. Its type is the eval's level.
    pub input: Input,
    /// What must be true of the outcome for the eval to pass.
    pub expected: Expected,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

impl Eval {
    /// An eval without a description, graded as `expected` says.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        input: Input,
        expected: Expected,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: None,
            grading_type: GradingType::from(expected.kind()),
            input,
            expected,
            extra: Map::new(),
        }
    }

    /// The same eval, with a description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The level, unless the input is of a type that this crate does not know.
    pub fn level(&self) -> Option<Level> {
        Level::from_name(self.input.kind())
    }

    /// The eval as the object that goes over the wire.
    pub fn to_value(&self) -> Value {
        self.write()
    }

    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let mut fields = Fields::new(members, path, faults);
        let id = fields.text("id");
        let name = fields.text("name");
        let description = fields.optional_text("description");
        let grading_type = fields.text("gradingType");
        let input = fields.read("input", Input::read);
        let expected = fields.read("expected", Expected::read);
        Some(Self {
            extra: fields.rest()?,
            id: id?,
            name: name?,
            description,
            grading_type: GradingType::from(grading_type?.as_str()),
            input: input?,
            expected: expected?,
        })
    }

    pub(crate) fn write(&self) -> Value {
        let mut members = self.extra.clone();
        members.insert("id".to_owned(), self.id.as_str().into());
        members.insert("name".to_owned(), self.name.as_str().into());
        if let Some(description) = &self.description {
            members.insert("description".to_owned(), description.as_str().into());
        }
        members.insert("gradingType".to_owned(), self.grading_type.as_str().into());
        members.insert("input".to_owned(), self.input.write());
        members.insert("expected".to_owned(), self.expected.write());
        Value::Object(members)
    }
}

serde_by_hand!(Eval);

/// How an outcome is graded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GradingType {
    /// The client compares values.
    ExactMatch,
    /// A model decides by a rubric.
    LlmJudge,
    /// An unknown grading type. Clients skip such evals.
    Other(String),
}

impl GradingType {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::ExactMatch => "exact-match",
            Self::LlmJudge => "llm-as-judge",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for GradingType {
    fn from(name: &str) -> Self {
        match name {
            "exact-match" => Self::ExactMatch,
            "llm-as-judge" => Self::LlmJudge,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The level of an eval: how much of a task it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Does a model call the right tool?
    Invocation,
    /// Does a tool return the right result?
    Execution,
    /// Can a task be done with the server's tools?
    Scenario,
}

impl Level {
    /// All levels, in the order of the proposal.
    pub const ALL: [Self; 3] = [Self::Invocation, Self::Execution, Self::Scenario];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invocation => "invocation",
            Self::Execution => "execution",
            Self::Scenario => "scenario",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

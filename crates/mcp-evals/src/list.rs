//! The request and the result of `evals/list`.
//!
//! Its main type is [`ListResult`]. One malformed item does not break a list: it is
//! kept unchanged, with its faults.

use serde_json::{Map, Value};

use crate::eval::{Eval, GradingType, Level};
use crate::fields::{Fields, ShapeFault, object, serde_by_hand};

/// The params of `evals/list`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListParams {
    /// The `nextCursor` of the previous page. The empty string is a valid cursor.
    pub cursor: Option<String>,
    /// Selects only evals of this level.
    pub level: Option<Level>,
    /// Fields that this crate does not know, `_meta` among them.
    pub extra: Map<String, Value>,
}

impl ListParams {
    /// Params that select one level.
    pub fn of_level(level: Level) -> Self {
        Self {
            level: Some(level),
            ..Self::default()
        }
    }

    /// The same params, for the page after `cursor`.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let mut fields = Fields::new(members, path, faults);
        let cursor = fields.optional_text("cursor");
        let level = fields.optional_text("level").and_then(|name| {
            let level = Level::from_name(&name);
            if level.is_none() {
                fields.fault("level", "must be `invocation`, `execution` or `scenario`");
            }
            level
        });
        Some(Self {
            extra: fields.rest()?,
            cursor,
            level,
        })
    }

    pub(crate) fn write(&self) -> Value {
        let mut members = self.extra.clone();
        if let Some(cursor) = &self.cursor {
            members.insert("cursor".to_owned(), cursor.as_str().into());
        }
        if let Some(level) = self.level {
            members.insert("level".to_owned(), level.as_str().into());
        }
        Value::Object(members)
    }
}

/// The result of `evals/list`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListResult {
    /// The evals, including malformed ones.
    pub evals: Vec<ListedEval>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

impl ListResult {
    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let mut fields = Fields::new(members, path, faults);
        let evals = fields.array("evals");
        let next_cursor = fields.optional_text("nextCursor");
        Some(Self {
            extra: fields.rest()?,
            evals: evals?.into_iter().map(ListedEval::from).collect(),
            next_cursor,
        })
    }

    /// The result as the object that goes over the wire.
    pub fn to_value(&self) -> Value {
        self.write()
    }

    pub(crate) fn write(&self) -> Value {
        let mut members = self.extra.clone();
        let evals = self.evals.iter().map(ListedEval::to_value).collect();
        members.insert("evals".to_owned(), evals);
        if let Some(cursor) = &self.next_cursor {
            members.insert("nextCursor".to_owned(), cursor.as_str().into());
        }
        Value::Object(members)
    }
}

serde_by_hand!(ListParams, ListResult);

/// One item of a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ListedEval {
    /// An eval of the right shape. It may still be invalid.
    Eval(Box<Eval>),
    /// An item that does not have the shape of an eval.
    Broken(MalformedEval),
}

/// An item that does not have the shape of an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedEval {
    /// The item as the server sent it.
    pub value: Value,
    /// All faults in its shape.
    pub faults: Vec<ShapeFault>,
}

impl MalformedEval {
    /// The unknown type or grading type, which may explain the unexpected shape.
    pub fn unknown_type(&self) -> Option<String> {
        let text = |path: &str| self.value.pointer(path).and_then(Value::as_str);
        text("/id")?;
        let input = text("/input/type").filter(|name| Level::from_name(name).is_none());
        let grading = text("/gradingType")
            .filter(|name| matches!(GradingType::from(*name), GradingType::Other(_)));
        if let Some(name) = input {
            return Some(format!("input type `{name}`"));
        }
        grading.map(|name| format!("grading type `{name}`"))
    }
}

impl From<Value> for ListedEval {
    fn from(value: Value) -> Self {
        let mut faults = Vec::new();
        match Eval::read(value.clone(), "", &mut faults) {
            Some(eval) => Self::Eval(Box::new(eval)),
            None => Self::Broken(MalformedEval { value, faults }),
        }
    }
}

impl From<Eval> for ListedEval {
    fn from(eval: Eval) -> Self {
        Self::Eval(Box::new(eval))
    }
}

impl ListedEval {
    /// The eval's id, if it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Eval(eval) => Some(&eval.id),
            Self::Broken(broken) => broken.value.get("id")?.as_str(),
        }
    }

    /// The eval, if it has the right shape.
    pub fn eval(&self) -> Option<&Eval> {
        match self {
            Self::Eval(eval) => Some(eval),
            Self::Broken(_) => None,
        }
    }

    /// The item as it is sent over the wire.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Eval(eval) => eval.to_value(),
            Self::Broken(broken) => broken.value.clone(),
        }
    }
}

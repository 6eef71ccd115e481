//! A file of evals, in JSON: `{"evals": […]}`, or just the list.
//!
//! Its main type is [`EvalFile`].

use serde_json::{Map, Value};

use crate::list::ListedEval;
use crate::suite::{InvalidSuite, Suite};
use crate::validate::validate;

/// Evals as an author keeps them beside a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalFile {
    /// The evals, and what should have been some.
    pub evals: Vec<ListedEval>,
    /// Fields beside `evals` that this crate does not know, `$schema` among them.
    pub extra: Map<String, Value>,
}

/// Why a file has no list of evals.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON, but neither a list nor an object with one.
    #[error("neither a list of evals nor an object with a list `evals`")]
    Shape,
}

impl EvalFile {
    /// Reads the text of a file.
    pub fn from_json(text: &str) -> Result<Self, FileError> {
        Self::from_value(serde_json::from_str(text)?)
    }

    /// Reads a value that something else has parsed, YAML for instance.
    pub fn from_value(value: Value) -> Result<Self, FileError> {
        let (list, extra) = match value {
            Value::Object(mut members) => {
                let list = members.remove("evals").ok_or(FileError::Shape)?;
                (list, members)
            }
            list => (list, Map::new()),
        };
        let Value::Array(items) = list else {
            return Err(FileError::Shape);
        };
        let evals = items.into_iter().map(ListedEval::from).collect();
        Ok(Self { evals, extra })
    }

    /// The file as a value: always an object with a list.
    pub fn to_value(&self) -> Value {
        let mut members = self.extra.clone();
        let evals = self.evals.iter().map(ListedEval::to_value).collect();
        members.insert("evals".to_owned(), evals);
        Value::Object(members)
    }

    /// The evals, ready to be listed; or everything that is wrong with them.
    pub fn into_suite(self) -> Result<Suite, InvalidSuite> {
        let report = validate(&self.evals);
        if report.is_valid() {
            Ok(Suite::of_items(self.evals))
        } else {
            Err(InvalidSuite(report))
        }
    }
}

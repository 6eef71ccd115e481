//! An eval file in JSON: `{"evals": […]}`, or just the list.
//!
//! Its main type is [`EvalFile`].

use serde_json::{Map, Value};

use crate::list::ListedEval;
use crate::suite::{InvalidSuite, Suite};
use crate::validate::validate;

/// The eval file of a server's author.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalFile {
    /// The evals, including malformed ones.
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
    #[error("expected a list of evals, or an object with a list `evals`")]
    Shape,
}

impl EvalFile {
    /// Parses the text of a file.
    pub fn from_json(text: &str) -> Result<Self, FileError> {
        Self::from_value(serde_json::from_str(text)?)
    }

    /// Reads a value that is already parsed, for example from YAML.
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

    /// Validates the evals of the file. The error contains all problems.
    pub fn into_suite(self) -> Result<Suite, InvalidSuite> {
        let report = validate(&self.evals);
        if report.is_valid() {
            Ok(Suite::of_items(self.evals))
        } else {
            Err(InvalidSuite(report))
        }
    }
}

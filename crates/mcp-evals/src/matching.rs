//! The exact-match rules for calls and results.
//!
//! Pure functions on JSON. Numbers are compared by value, however they are written: `1`, `1.0` and
//! `10e-1` are one number, and integers of any size are exact. Arrays are compared in order, objects
//! whatever the order of their keys.

mod decimal;

use std::fmt;

use serde_json::{Map, Number, Value};

use self::decimal::Decimal;
use crate::expected::ExactMatch;
use crate::fields::below;

/// The maximum number of characters of a value in a message.
const SHOWN_CHARS: usize = 120;

/// Whether two values are the same.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers_equal(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

/// Whether two numbers have the same value.
pub fn numbers_equal(a: &Number, b: &Number) -> bool {
    let (a, b) = (a.to_string(), b.to_string());
    a == b || Decimal::from(a.as_str()) == Decimal::from(b.as_str())
}

/// The number as an integer of at least 0, if it is one. Past the range of `u64` it is the bound.
pub(crate) fn whole_number(number: &Number) -> Option<u64> {
    Decimal::from(number.to_string().as_str()).whole()
}

/// Where two values first differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The place, as a JSON pointer.
    pub path: String,
    /// The expected value; `None` if no value is expected.
    pub expected: Option<Value>,
    /// The found value; `None` if there is no value.
    pub actual: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        match (&self.expected, &self.actual) {
            (Some(expected), Some(actual)) => {
                write!(f, "expected {}, found {}", shown(expected), shown(actual))
            }
            (Some(expected), None) => write!(f, "expected {}, found nothing", shown(expected)),
            (None, Some(actual)) => write!(f, "expected nothing, found {}", shown(actual)),
            (None, None) => f.write_str("no difference"),
        }
    }
}

/// The first difference between `expected` and `actual`; `None` if they are [`equal`].
pub fn difference(expected: &Value, actual: &Value) -> Option<Difference> {
    difference_at(expected, actual, "")
}

fn difference_at(expected: &Value, actual: &Value, path: &str) -> Option<Difference> {
    match (expected, actual) {
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|index| {
            let path = below(path, &index.to_string());
            differing(a.get(index), b.get(index), &path)
        }),
        (Value::Object(a), Value::Object(b)) => {
            let missing = a
                .iter()
                .find_map(|(key, value)| differing(Some(value), b.get(key), &below(path, key)));
            missing.or_else(|| {
                let (key, value) = b.iter().find(|(key, _)| !a.contains_key(*key))?;
                differing(None, Some(value), &below(path, key))
            })
        }
        _ if equal(expected, actual) => None,
        _ => Some(Difference {
            path: path.to_owned(),
            expected: Some(expected.clone()),
            actual: Some(actual.clone()),
        }),
    }
}

fn differing(expected: Option<&Value>, actual: Option<&Value>, path: &str) -> Option<Difference> {
    if let (Some(expected), Some(actual)) = (expected, actual) {
        return difference_at(expected, actual, path);
    }
    Some(Difference {
        path: path.to_owned(),
        expected: expected.cloned(),
        actual: actual.cloned(),
    })
}

/// A tool call in a model's answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelToolCall<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The arguments of the call.
    pub arguments: &'a Map<String, Value>,
}

/// Why an outcome does not match. Clients can show its text as the reason.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Mismatch {
    /// The model made no tool call.
    #[error("no tool was called")]
    NoCall,
    /// The model called other tools.
    #[error("`{wanted}` was not called, but {}", listed(.called))]
    OtherTool {
        /// The tool that should have been called.
        wanted: String,
        /// The tools that were called.
        called: Vec<String>,
    },
    /// The tool was called with other arguments. The difference is that of its first call.
    #[error("`{tool}` was called with other arguments: {difference}")]
    Arguments {
        /// The tool that was called.
        tool: String,
        /// The first difference between the arguments.
        difference: Box<Difference>,
    },
    /// The result has other content.
    #[error("the content differs: {0}")]
    Content(Box<Difference>),
    /// The eval has no expected content.
    #[error("the eval has no expected content, so no result can match")]
    NothingExpected,
}

/// Whether some call has the expected tool and, for each expected argument, an equal value.
pub fn match_invocation(
    expected: &ExactMatch,
    calls: &[ModelToolCall<'_>],
) -> Result<(), Mismatch> {
    if calls.is_empty() {
        return Err(Mismatch::NoCall);
    }
    let wanted = expected.tool_name.as_deref();
    let mut candidates = calls
        .iter()
        .filter(|call| wanted.is_none_or(|name| name == call.name))
        .map(|call| (call, argument_difference(expected, call)));
    let mut nearest = None;
    for (call, difference) in &mut candidates {
        match difference {
            None => return Ok(()),
            Some(difference) => nearest = nearest.or(Some((call.name, difference))),
        }
    }
    Err(match nearest {
        Some((tool, difference)) => Mismatch::Arguments {
            tool: tool.to_owned(),
            difference: Box::new(difference),
        },
        None => Mismatch::OtherTool {
            wanted: wanted.unwrap_or_default().to_owned(),
            called: calls.iter().map(|call| call.name.to_owned()).collect(),
        },
    })
}

fn argument_difference(expected: &ExactMatch, call: &ModelToolCall<'_>) -> Option<Difference> {
    let arguments = expected.arguments.as_ref()?;
    arguments
        .iter()
        .find_map(|(key, value)| differing(Some(value), call.arguments.get(key), &below("", key)))
}

/// Whether a tool result's `content` is the expected one.
pub fn match_content(expected: &ExactMatch, content: &Value) -> Result<(), Mismatch> {
    let wanted = expected.content.as_ref().ok_or(Mismatch::NothingExpected)?;
    match difference(wanted, content) {
        None => Ok(()),
        Some(difference) => Err(Mismatch::Content(Box::new(difference))),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("`{}…`", &text[..at]),
        None => format!("`{text}`"),
    }
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [one] => format!("{one} was"),
        many => format!("{} were", many.join(", ")),
    }
}

//! Reads objects field by field, and collects everything that has the wrong shape.
//!
//! Its main type is [`Fields`]. Fields that are not read remain, and a type keeps them as `extra`.

use std::fmt;

use serde_json::{Map, Number, Value};

/// A value of the wrong shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeFault {
    /// The place, as a JSON pointer from the eval: `/input/messages/0/role`. Empty for the eval itself.
    pub path: String,
    /// The fault in words, for people.
    pub text: String,
}

impl fmt::Display for ShapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.text)
        } else {
            write!(f, "`{}`: {}", self.path, self.text)
        }
    }
}

/// The fields of one object that have not been read yet.
pub(crate) struct Fields<'a> {
    rest: Map<String, Value>,
    path: &'a str,
    faults: &'a mut Vec<ShapeFault>,
    faults_before: usize,
}

/// The members of `value`, or a fault.
pub(crate) fn object(
    value: Value,
    path: &str,
    faults: &mut Vec<ShapeFault>,
) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        other => {
            fault(faults, path, wrong("an object", &other));
            None
        }
    }
}

/// A path with one more step.
pub(crate) fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

pub(crate) fn fault(faults: &mut Vec<ShapeFault>, path: &str, text: impl Into<String>) {
    faults.push(ShapeFault {
        path: path.to_owned(),
        text: text.into(),
    });
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        members: Map<String, Value>,
        path: &'a str,
        faults: &'a mut Vec<ShapeFault>,
    ) -> Self {
        Self {
            rest: members,
            path,
            faults_before: faults.len(),
            faults,
        }
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.rest.remove(key)
    }

    pub(crate) fn required(&mut self, key: &str) -> Option<Value> {
        let value = self.take(key);
        if value.is_none() {
            self.fault(key, "is missing");
        }
        value
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let value = self.required(key)?;
        self.as_text(key, value)
    }

    pub(crate) fn optional_text(&mut self, key: &str) -> Option<String> {
        let value = self.take(key)?;
        self.as_text(key, value)
    }

    pub(crate) fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        let value = self.required(key)?;
        object(value, &below(self.path, key), self.faults)
    }

    pub(crate) fn optional_object(&mut self, key: &str) -> Option<Map<String, Value>> {
        let value = self.take(key)?;
        object(value, &below(self.path, key), self.faults)
    }

    pub(crate) fn array(&mut self, key: &str) -> Option<Vec<Value>> {
        match self.required(key)? {
            Value::Array(elements) => Some(elements),
            other => {
                self.fault(key, wrong("an array", &other));
                None
            }
        }
    }

    pub(crate) fn optional_bool(&mut self, key: &str) -> Option<bool> {
        match self.take(key)? {
            Value::Bool(value) => Some(value),
            other => {
                self.fault(key, wrong("a boolean", &other));
                None
            }
        }
    }

    pub(crate) fn optional_number(&mut self, key: &str) -> Option<Number> {
        match self.take(key)? {
            Value::Number(value) => Some(value),
            other => {
                self.fault(key, wrong("a number", &other));
                None
            }
        }
    }

    /// Reads a field with a function that takes its path.
    pub(crate) fn read<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Value, &str, &mut Vec<ShapeFault>) -> Option<T>,
    ) -> Option<T> {
        let value = self.required(key)?;
        read(value, &below(self.path, key), self.faults)
    }

    pub(crate) fn fault(&mut self, key: &str, text: impl Into<String>) {
        fault(self.faults, &below(self.path, key), text);
    }

    /// The fields that were not read; `None` if anything in this object was wrong.
    pub(crate) fn rest(self) -> Option<Map<String, Value>> {
        (self.faults.len() == self.faults_before).then_some(self.rest)
    }

    fn as_text(&mut self, key: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            other => {
                self.fault(key, wrong("a string", &other));
                None
            }
        }
    }
}

fn wrong(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("must be {wanted}, but is {found}")
}

/// Derives serde's traits from a type's `read` and `write`.
///
/// Derived code would go through serde's buffer for tagged and flattened types, in which numbers
/// lose their digits.
macro_rules! serde_by_hand {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.write(), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                let mut faults = Vec::new();
                Self::read(value, "", &mut faults).ok_or_else(|| {
                    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    serde::de::Error::custom(texts.join("; "))
                })
            }
        }
    )+};
}
pub(crate) use serde_by_hand;

pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

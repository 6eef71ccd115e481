//! JSON Schema inside a matcher: compiled once, and never reaching out for a reference.

use jsonschema::Validator;
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::{MatcherError, Step};
use crate::excerpt::excerpt;
use crate::json;

/// A compiled schema.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    validator: Validator,
    written: Value,
}

impl Schema {
    /// Compiles a schema; draft 2020-12 unless it names another one.
    pub(super) fn compile(written: &Value) -> Result<Self, MatcherError> {
        if !written.is_object() && !written.is_boolean() {
            return Err(MatcherError {
                path: Vec::new(),
                message: format!(
                    "`$schema` takes a JSON Schema, found {}",
                    json::brief(written)
                ),
                hint: None,
            });
        }
        let built = jsonschema::options().offline().build(written);
        let validator = built.map_err(|error| MatcherError {
            path: steps(error.instance_path(), written),
            message: format!(
                "this is not a JSON Schema that can be used: {}",
                excerpt(&error.to_string())
            ),
            hint: matches!(
                error.kind(),
                jsonschema::error::ValidationErrorKind::Referencing(_)
            )
            .then(|| "references must stay inside the schema: nothing is fetched".to_owned()),
        })?;
        Ok(Self {
            validator,
            written: written.clone(),
        })
    }

    /// The first place where a value does not fit, and why.
    pub(super) fn violation(&self, value: &Value) -> Option<(Vec<Step>, String)> {
        let error = self.validator.validate(value).err()?;
        Some((
            steps(error.instance_path(), value),
            excerpt(&error.to_string()).into_owned(),
        ))
    }

    /// Whether the schema's own `type` leaves room for an object.
    pub(super) fn may_be_object(&self) -> bool {
        match &self.written {
            Value::Bool(allowed) => *allowed,
            schema => match schema.get("type") {
                Some(Value::String(name)) => name == "object",
                Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
                _ => true,
            },
        }
    }

    /// Whether the schema asks for nothing.
    pub(super) fn accepts_all(&self) -> bool {
        match &self.written {
            Value::Bool(allowed) => *allowed,
            schema => schema.as_object().is_some_and(serde_json::Map::is_empty),
        }
    }
}

/// A location as steps. Only the value can tell an index from a key that looks like one.
fn steps(location: &Location, root: &Value) -> Vec<Step> {
    let mut at = Some(root);
    location
        .segments()
        .map(|segment| {
            let text = match segment {
                LocationSegment::Property(name) => name.into_owned(),
                LocationSegment::Index(index) => index.to_string(),
            };
            match (at, text.parse::<usize>()) {
                (Some(Value::Array(elements)), Ok(index)) => {
                    at = elements.get(index);
                    Step::Index(index)
                }
                (value, _) => {
                    at = value.and_then(|value| value.get(&text));
                    Step::Key(text)
                }
            }
        })
        .collect()
}

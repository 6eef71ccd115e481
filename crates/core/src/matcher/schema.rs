//! JSON Schema inside a matcher: compiled once, without fetching references.

mod keywords;

use jsonschema::Validator;
use jsonschema::paths::{Location, LocationSegment};
use proctor_record::excerpt::excerpt;
use proctor_record::json;
use serde_json::Value;

use super::reach::Kinds;
use super::{MatcherError, PathStep};

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
        if let Some(unknown) = keywords::unknown(written) {
            return Err(unknown);
        }
        let built = jsonschema::options().offline().build(written);
        let validator = built.map_err(|error| MatcherError {
            path: steps(error.instance_path(), written),
            message: format!("invalid JSON Schema: {}", excerpt(&error.to_string())),
            hint: matches!(
                error.kind(),
                jsonschema::error::ValidationErrorKind::Referencing(_)
            )
            .then(|| "references must stay inside the schema: Proctor fetches none".to_owned()),
        })?;
        Ok(Self {
            validator,
            written: written.clone(),
        })
    }

    /// The first place where a value violates the schema, and the reason.
    pub(super) fn violation(&self, value: &Value) -> Option<(Vec<PathStep>, String)> {
        let error = self.validator.validate(value).err()?;
        Some((
            steps(error.instance_path(), value),
            excerpt(&error.to_string()).into_owned(),
        ))
    }

    /// The kinds of value that may be valid; those left out certainly aren't.
    pub(super) fn kinds(&self) -> Kinds {
        kinds(&self.written)
    }

    /// Whether the schema accepts every value.
    pub(super) fn accepts_all(&self) -> bool {
        accepts_all(&self.written)
    }
}

/// The kinds that a schema may accept, judged by its own keywords.
fn kinds(schema: &Value) -> Kinds {
    let Value::Object(keywords) = schema else {
        return if *schema == Value::Bool(false) {
            Kinds::NONE
        } else {
            Kinds::PRESENT
        };
    };
    let list = |key: &str| keywords.get(key).and_then(Value::as_array);
    let mut all = Kinds::PRESENT;
    match keywords.get("type") {
        Some(Value::String(name)) => all = all & Kinds::named(name),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            all = all & Kinds::any(names.map(Kinds::named));
        }
        _ => {}
    }
    if let Some(values) = list("enum") {
        all = all & Kinds::any(values.iter().map(Kinds::of));
    }
    if let Some(value) = keywords.get("const") {
        all = all & Kinds::of(value);
    }
    for part in list("allOf").into_iter().flatten() {
        all = all & kinds(part);
    }
    for choice in ["anyOf", "oneOf"].into_iter().filter_map(list) {
        all = all & Kinds::any(choice.iter().map(kinds));
    }
    for (least, most, kind) in [
        ("minimum", "maximum", "number"),
        ("minLength", "maxLength", "string"),
        ("minItems", "maxItems", "array"),
        ("minProperties", "maxProperties", "object"),
    ] {
        if let (Some(Value::Number(least)), Some(Value::Number(most))) =
            (keywords.get(least), keywords.get(most))
            && json::compare_numbers(least, most).is_gt()
        {
            all = all.and_not(Kinds::named(kind));
        }
    }
    let properties = keywords.get("properties");
    let is_impossible = |name: &Value| {
        let schema = name.as_str().and_then(|name| properties?.get(name));
        schema.is_some_and(|schema| kinds(schema).is_empty())
    };
    if list("required").into_iter().flatten().any(is_impossible) {
        all = all.and_not(Kinds::named("object"));
    }
    match keywords.get("not") {
        Some(not) if accepts_all(not) => Kinds::NONE,
        _ => all,
    }
}

fn accepts_all(schema: &Value) -> bool {
    let is_empty = schema.as_object().is_some_and(serde_json::Map::is_empty);
    is_empty || *schema == Value::Bool(true)
}

/// A location as steps. The value decides whether a number is an index or a key.
fn steps(location: &Location, root: &Value) -> Vec<PathStep> {
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
                    PathStep::Index(index)
                }
                (value, _) => {
                    at = value.and_then(|value| value.get(&text));
                    PathStep::Key(text)
                }
            }
        })
        .collect()
}

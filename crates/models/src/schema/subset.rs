//! Schemas for a provider that takes some keywords only. What it does not take goes into the
//! description of the place where it stood.

use proctor_core::model::Tool;
use serde_json::{Map, Value, json};

use super::{ProviderToolSchema, described, fit};

/// What Gemini documents that it takes.
const TAKEN: [&str; 22] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
    "nullable",
];

/// Says nothing to a model.
const SILENT: [&str; 2] = ["$schema", "$comment"];

/// Makes a tool fit that provider.
pub(crate) fn fit_subset(tool: &Tool) -> ProviderToolSchema {
    let mut fitted = fit(tool);
    if let Value::Object(schema) = &mut fitted.schema {
        let taken = reduce(schema);
        fitted.description = described(fitted.description.as_deref(), taken);
    }
    fitted
}

/// Takes out what is not taken, at this level; below, it is noted where it stood.
fn reduce(schema: &mut Map<String, Value>) -> Map<String, Value> {
    if let Some(old) = schema.remove("definitions") {
        schema.entry("$defs").or_insert(old);
    }
    if let Some(reference) = schema.get_mut("$ref")
        && let Some(name) = reference
            .as_str()
            .and_then(|r| r.strip_prefix("#/definitions/"))
    {
        *reference = format!("#/$defs/{name}").into();
    }
    if let Some(constant) = schema.remove("const") {
        schema.insert("enum".to_owned(), json!([constant]));
    }
    let mut taken = Map::new();
    let keys: Vec<String> = schema.keys().cloned().collect();
    for key in keys.iter().filter(|key| !TAKEN.contains(&key.as_str())) {
        if let Some(value) = schema.remove(key)
            && !SILENT.contains(&key.as_str())
        {
            taken.insert(key.clone(), value);
        }
    }
    let is_plain = |value: &Value| value.is_string() || value.is_number();
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.iter().all(is_plain)
        && let Some(values) = schema.remove("enum")
    {
        taken.insert("enum".to_owned(), values);
    }
    below(schema);
    taken
}

fn below(schema: &mut Map<String, Value>) {
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                named.values_mut().for_each(reduce_value);
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(several)) => {
                several.iter_mut().for_each(reduce_value);
            }
            ("items", value) | ("additionalProperties", value @ Value::Object(_)) => {
                reduce_value(value);
            }
            _ => {}
        }
    }
}

fn reduce_value(value: &mut Value) {
    let Value::Object(schema) = value else {
        // `true`, which takes anything, or `false`, which nobody means.
        *value = json!({});
        return;
    };
    let taken = reduce(schema);
    let description = schema.get("description").and_then(Value::as_str);
    if schema.contains_key("$ref") {
        // Nothing may stand beside a reference.
        schema.retain(|key, _| key.starts_with('$'));
    } else if !taken.is_empty() {
        let note = format!("(JSON Schema: {})", Value::Object(taken));
        let text = description.map_or(note.clone(), |said| format!("{said} {note}"));
        schema.insert("description".to_owned(), text.into());
    }
}

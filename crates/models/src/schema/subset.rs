//! Tool schemas for a provider that accepts only some keywords. Other keywords move into the
//! description of the schema where they were.

use proctor_record::model::Tool;
use serde_json::{Map, Value, json};

use super::{ProviderToolSchema, described, fit};

/// The keywords that Gemini documents as accepted.
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

/// Keywords that carry no information for a model.
const SILENT: [&str; 2] = ["$schema", "$comment"];

/// Adapts a tool's schema to such a provider.
pub(crate) fn fit_subset(tool: &Tool) -> ProviderToolSchema {
    let mut fitted = fit(tool);
    if let Value::Object(schema) = &mut fitted.schema {
        let taken = reduce(schema);
        fitted.description = described(fitted.description.as_deref(), taken);
    }
    fitted
}

/// Removes unsupported keywords at this level and returns them. Those of nested schemas move into
/// their descriptions.
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
        // `true` accepts anything; `false` does not occur in practice.
        *value = json!({});
        return;
    };
    let taken = reduce(schema);
    let description = schema.get("description").and_then(Value::as_str);
    if schema.contains_key("$ref") {
        // A `$ref` allows no other keyword beside it.
        schema.retain(|key, _| key.starts_with('$'));
    } else if !taken.is_empty() {
        let note = format!("(JSON Schema: {})", Value::Object(taken));
        let text = description.map_or(note.clone(), |said| format!("{said} {note}"));
        schema.insert("description".to_owned(), text.into());
    }
}

//! Adapts tool schemas to providers.
//!
//! Providers accept schemas of type `object`, in plain JSON Schema 2020-12. Other keywords move
//! into the description, so that the model still sees them. Only `$schema`, which carries no
//! information for a model, is dropped.

mod renamed;
mod subset;
#[cfg(test)]
mod tests;

use proctor_record::json;
use proctor_record::model::Tool;
use serde_json::{Map, Value};

pub(super) use self::renamed::RenamedArguments;
pub(super) use self::subset::fit_subset;

/// Keywords that providers reject at the top level of a schema.
const NOT_AT_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// A tool's description and schema in a form that all providers accept.
pub(super) struct ProviderToolSchema {
    pub(super) description: Option<String>,
    pub(super) schema: Value,
}

/// Adapts a tool: schemas of servers use keywords that some providers refuse.
pub(super) fn fit(tool: &Tool) -> ProviderToolSchema {
    let mut taken = Map::new();
    let mut schema = match &tool.schema {
        Value::Object(schema) => schema.clone(),
        Value::Null | Value::Bool(true) => Map::new(),
        other => {
            taken.insert("schema".to_owned(), other.clone());
            Map::new()
        }
    };
    schema.remove("$schema");
    inline_reference(&mut schema, &mut taken);
    modernise(&mut schema);
    if let Some(kind) = schema.remove("type")
        && kind.as_str() != Some("object")
    {
        taken.insert("type".to_owned(), kind);
    }
    for key in NOT_AT_TOP {
        if let Some(part) = schema.remove(key) {
            taken.insert(key.to_owned(), part);
        }
    }
    schema.insert("type".to_owned(), "object".into());
    let mut properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        Some(other) => {
            taken.insert("properties".to_owned(), other);
            Map::new()
        }
        None => Map::new(),
    };
    add_branches(&mut properties, &taken);
    schema.insert("properties".to_owned(), Value::Object(properties));
    ProviderToolSchema {
        description: described(tool.description.as_deref(), taken),
        schema: Value::Object(schema),
    }
}

/// Replaces a `$ref` at the top level by its target.
fn inline_reference(schema: &mut Map<String, Value>, taken: &mut Map<String, Value>) {
    let Some(reference) = schema.remove("$ref") else {
        return;
    };
    let root = Value::Object(schema.clone());
    let target = reference
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'))
        .and_then(|pointer| root.pointer(pointer));
    if let Some(Value::Object(target)) = target {
        for (key, value) in target {
            schema.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    } else {
        taken.insert("$ref".to_owned(), reference);
    }
}

/// Adds the properties that occur only in removed alternatives, so that the model can use them.
fn add_branches(properties: &mut Map<String, Value>, taken: &Map<String, Value>) {
    let branches = ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|key| taken.get(*key)?.as_array())
        .flatten();
    let mut found: Vec<(&String, Vec<&Value>)> = Vec::new();
    for (name, schema) in branches
        .filter_map(|b| b.get("properties")?.as_object())
        .flatten()
    {
        if properties.contains_key(name) {
            continue;
        }
        match found.iter_mut().find(|(known, _)| *known == name) {
            None => found.push((name, vec![schema])),
            Some((_, schemas)) if schemas.iter().any(|known| json::equal(known, schema)) => {}
            Some((_, schemas)) => schemas.push(schema),
        }
    }
    for (name, schemas) in found {
        let schema = match schemas[..] {
            [one] => one.clone(),
            _ => Value::from_iter([("anyOf", schemas.into_iter().cloned().collect::<Value>())]),
        };
        properties.insert(name.clone(), schema);
    }
}

/// Converts keywords of older drafts: providers validate against the latest.
fn modernise(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(_)) = schema.get("items") {
        let positions = schema.remove("items").unwrap_or_default();
        schema.insert("prefixItems".to_owned(), positions);
        // A list would be read as positional items again.
        let is_schema = |rest: &Value| rest.is_object() || rest.is_boolean();
        if schema.get("additionalItems").is_some_and(is_schema)
            && let Some(rest) = schema.remove("additionalItems")
        {
            schema.insert("items".to_owned(), rest);
        }
    }
    for (flag, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(Value::Bool(is_exclusive)) = schema.get(flag) {
            let is_exclusive = *is_exclusive;
            schema.remove(flag);
            if is_exclusive && let Some(limit) = schema.remove(bound) {
                schema.insert(flag.to_owned(), limit);
            }
        }
    }
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            (
                "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                Value::Object(named),
            ) => {
                named.values_mut().for_each(modernise_value);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(several)) => {
                several.iter_mut().for_each(modernise_value);
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "contains"
                | "if"
                | "then"
                | "else"
                | "propertyNames",
                value,
            ) => {
                modernise_value(value);
            }
            _ => {}
        }
    }
}

fn modernise_value(value: &mut Value) {
    if let Value::Object(schema) = value {
        modernise(schema);
    }
}

fn described(description: Option<&str>, taken: Map<String, Value>) -> Option<String> {
    if taken.is_empty() {
        return description.map(str::to_owned);
    }
    let note = format!(
        "The arguments must also satisfy this JSON Schema: {}",
        Value::Object(taken)
    );
    Some(match description {
        Some(description) if !description.is_empty() => format!("{description}\n\n{note}"),
        _ => note,
    })
}

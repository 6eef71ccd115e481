//! Whether one JSON Schema accepts every value of another.
//!
//! Main function: [`covers`]. Only [`Containment::Yes`] is a proof. An error, an unknown keyword or a schema that
//! is too complex gives [`Containment::Unknown`].

use jsonschema::Validator;
use jsonschema::canonical::{self, CanonicalSchema, Containment};
use serde_json::{Map, Value};

/// Keywords whose meaning depends on the version of JSON Schema.
const BY_VERSION: [&str; 14] = [
    "$ref",
    "$id",
    "prefixItems",
    "additionalItems",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "$dynamicRef",
    "$recursiveRef",
];

/// Whether every value that `premise` accepts is accepted by `goal`.
pub(super) fn covers(goal: &Value, premise: &Value) -> Containment {
    let (mut goal, mut premise) = (goal.clone(), premise.clone());
    if dialect(&goal) != dialect(&premise) {
        let is_old = |schema: &Value| dialect(schema).contains("draft-04");
        if [&goal, &premise]
            .into_iter()
            .any(|schema| is_old(schema) || depends_on_version(schema))
        {
            return Containment::Unknown;
        }
        for schema in [&mut goal, &mut premise] {
            if let Value::Object(map) = schema {
                map.remove("$schema");
            }
        }
    }
    let canonical = |schema: &Value| -> Option<CanonicalSchema> {
        let options = canonical::options().offline().should_validate_formats(true);
        options.canonicalize(schema).ok()
    };
    let (Some(goal), Some(premise)) = (canonical(&goal), canonical(&premise)) else {
        return Containment::Unknown;
    };
    goal.covers(&premise).unwrap_or(Containment::Unknown)
}

fn dialect(schema: &Value) -> &str {
    let named = schema.get("$schema").and_then(Value::as_str);
    let named = named.map_or("https://json-schema.org/draft/2020-12/schema", |name| {
        name.trim_end_matches('#')
    });
    named
        .trim_start_matches("http://")
        .trim_start_matches("https://")
}

fn depends_on_version(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| {
            BY_VERSION.contains(&key.as_str())
                || (key == "items" && value.is_array())
                || depends_on_version(value)
        }),
        Value::Array(list) => list.iter().any(depends_on_version),
        _ => false,
    }
}

/// Compiles a schema; formats are checked, since servers check them.
pub(super) fn validator(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().offline();
    let built = options.should_validate_formats(true).build(schema);
    built.map_err(|error| error.to_string())
}

/// The goal without the properties that the premise leaves open: it neither names them nor says anything about
/// properties that it does not name. Clients send the arguments that a schema names.
pub(super) fn without_new_names(goal: &Value, premise: &Value) -> Value {
    let mut goal = goal.clone();
    drop_new_names(&mut goal, premise, premise);
    goal
}

fn drop_new_names(goal: &mut Value, premise: &Value, root: &Value) {
    let (Value::Object(goal), Value::Object(premise)) = (goal, premise) else {
        return;
    };
    if is_open(premise)
        && let Some(Value::Object(properties)) = goal.get_mut("properties")
    {
        let named = names(premise, root, 0);
        let keeps = |name: &String, schema: &Value| {
            *schema == Value::Bool(false) || named.as_ref().is_none_or(|all| all.contains(name))
        };
        properties.retain(|name, schema| keeps(name, schema));
    }
    if let (Some(Value::Object(goal)), Some(Value::Object(premise))) =
        (goal.get_mut("properties"), premise.get("properties"))
    {
        for (name, goal) in goal.iter_mut() {
            if let Some(premise) = premise.get(name) {
                drop_new_names(goal, premise, root);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let (Some(goal), Some(premise)) = (goal.get_mut(key), premise.get(key)) {
            drop_new_names(goal, premise, root);
        }
    }
}

/// Whether a schema says nothing about properties that it does not name.
fn is_open(schema: &Map<String, Value>) -> bool {
    let is_any =
        |value: &Value| *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty);
    let closing = [
        "patternProperties",
        "unevaluatedProperties",
        "propertyNames",
    ];
    schema.get("additionalProperties").is_none_or(is_any)
        && !closing.iter().any(|key| schema.contains_key(*key))
}

/// All properties that a schema names for the same value, in its alternatives too; `None` if that is unknown.
fn names(schema: &Map<String, Value>, root: &Value, depth: usize) -> Option<Vec<String>> {
    if depth > 16 || schema.contains_key("$dynamicRef") || schema.contains_key("$recursiveRef") {
        return None;
    }
    let mut found: Vec<String> = Vec::new();
    if let Some(Value::Object(properties)) = schema.get("properties") {
        found.extend(properties.keys().cloned());
    }
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    found.extend(required.map(str::to_owned));
    let mut parts: Vec<&Value> = Vec::new();
    for key in ["allOf", "anyOf", "oneOf"] {
        parts.extend(
            schema
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten(),
        );
    }
    for key in ["not", "if", "then", "else"] {
        parts.extend(schema.get(key));
    }
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    parts.extend(dependent.into_iter().flat_map(Map::values));
    if let Some(reference) = schema.get("$ref") {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        parts.push(root.pointer(pointer)?);
    }
    for part in parts {
        match part {
            Value::Object(part) => {
                if !is_open(part) {
                    return None;
                }
                found.extend(names(part, root, depth + 1)?);
            }
            Value::Bool(_) => {}
            _ => return None,
        }
    }
    Some(found)
}

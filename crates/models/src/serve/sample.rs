//! Makes a minimal JSON value for a schema, for side calls that expect JSON.

use serde_json::{Map, Value, json};

/// The depth limit for nested schemas.
const DEPTH: usize = 8;

/// A value that matches a simple schema. It may not match a complex one.
pub(super) fn sample(schema: &Value) -> Value {
    within(schema, DEPTH)
}

fn within(schema: &Value, depth: usize) -> Value {
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(first) = schema[key].as_array().and_then(|all| all.first()) {
            return within(first, depth.saturating_sub(1));
        }
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.to_lowercase(),
        Value::Array(kinds) => kinds
            .first()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_lowercase(),
        _ => "object".to_owned(),
    };
    match &*kind {
        "string" => "scripted".into(),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
        "boolean" => false.into(),
        "array" => json!([]),
        "null" => Value::Null,
        _ if depth == 0 => json!({}),
        _ => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let value = |name: &str| within(&schema["properties"][name], depth - 1);
            Value::Object(
                names
                    .map(|name| (name.to_owned(), value(name)))
                    .collect::<Map<_, _>>(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_what_is_required() {
        for (schema, expected) in [
            (json!({}), json!({})),
            (
                json!({"type": "object", "required": ["title", "n", "o"], "properties": {
                    "title": {"type": "string"}, "n": {"type": "INTEGER"}, "not": {},
                    "o": {"enum": ["user", "model"]},
                }}),
                json!({"title": "scripted", "n": 0, "o": "user"}),
            ),
            (json!({"type": "array", "items": {}}), json!([])),
            (json!({"type": ["null", "string"]}), Value::Null),
            (json!({"anyOf": [{"const": "x"}]}), json!("x")),
        ] {
            assert!(
                proctor_record::json::equal(&sample(&schema), &expected),
                "{schema}"
            );
        }
    }
}

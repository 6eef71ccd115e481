//! Generates arguments for a tool from its schema: first from examples and defaults, then from formats,
//! names and descriptions.
//!
//! Its main function is [`make`]. The arguments match the schema, or it returns a reason.

use proctor_core::matcher::Matcher;
use serde_json::{Map, Value, json};

mod texts;

/// The maximum depth of a schema.
const DEEPEST: usize = 12;

/// The maximum number of elements in an array.
const ELEMENTS: u64 = 20;

/// Generates arguments that match a tool's input schema, with required properties only.
pub(super) fn make(schema: &Value) -> Result<Map<String, Value>, String> {
    let maker = ArgumentMaker { root: schema };
    let mut arguments = Map::new();
    for name in required(schema) {
        let property = schema.pointer("/properties").and_then(|all| all.get(name));
        let value = maker.value(property.unwrap_or(&Value::Bool(true)), name, 0);
        let value =
            value.ok_or_else(|| format!("can't generate a value for `{name}` from its schema"))?;
        arguments.insert(name.to_owned(), value);
    }
    let arguments = Value::Object(arguments);
    // An invalid schema can't reject the arguments.
    if (schema.is_object() || schema.is_boolean())
        && let Ok(matcher) = Matcher::compile(&json!({"$schema": schema}))
        && let Err(mismatch) = matcher.evaluate(Some(&arguments))
    {
        return Err(format!(
            "can't generate arguments that match its schema: {}",
            mismatch.reason
        ));
    }
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.collect()
}

struct ArgumentMaker<'a> {
    root: &'a Value,
}

impl ArgumentMaker<'_> {
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let below = self.root.pointer(reference.strip_prefix('#')?)?;
            return self.value(below, name, depth + 1);
        }
        if let Some(value) = named_value(schema) {
            return Some(value.clone());
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.value(&merged(schema, parts), name, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(options) = schema.get(key).and_then(Value::as_array) {
                let made = options
                    .iter()
                    .map(|option| self.value(option, name, depth + 1));
                return made.flatten().find(|value| !value.is_null());
            }
        }
        self.of_kind(kind(schema), schema, name, depth)
    }

    fn of_kind(&self, kind: &str, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        match kind {
            "object" => {
                let mut members = Map::new();
                for key in required(schema) {
                    let property = schema.get("properties").and_then(|all| all.get(key));
                    let property = property.unwrap_or(&Value::Bool(true));
                    members.insert(key.to_owned(), self.value(property, key, depth + 1)?);
                }
                Some(Value::Object(members))
            }
            "array" => {
                let least = schema
                    .get("minItems")
                    .and_then(Value::as_u64)
                    .unwrap_or(1)
                    .max(1);
                let most = schema.get("maxItems").and_then(Value::as_u64);
                if most == Some(0) {
                    return Some(json!([]));
                }
                if least > ELEMENTS {
                    return None;
                }
                let element = schema.get("items").unwrap_or(&Value::Bool(true));
                // The elements of `paths` are paths.
                let element =
                    self.value(element, name.strip_suffix('s').unwrap_or(name), depth + 1)?;
                Some(Value::Array(vec![element; usize::try_from(least).ok()?]))
            }
            "integer" | "number" => number(schema, kind == "integer"),
            "boolean" => Some(Value::Bool(false)),
            "null" => Some(Value::Null),
            _ => texts::make(schema, name).map(Value::String),
        }
    }
}

/// A value that the schema itself contains: a constant, default, example or enum value.
fn named_value(schema: &Value) -> Option<&Value> {
    let first = |key: &str| {
        schema
            .get(key)?
            .as_array()?
            .iter()
            .find(|value| !value.is_null())
    };
    let given = |key: &str| schema.get(key).filter(|value| !value.is_null());
    schema
        .get("const")
        .or_else(|| given("default"))
        .or_else(|| first("examples"))
        .or_else(|| given("example"))
        .or_else(|| first("enum"))
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

/// A schema and the parts that all hold for it, as one as far as keys go.
fn merged(schema: &Value, parts: &[Value]) -> Value {
    let mut all = schema.as_object().cloned().unwrap_or_default();
    all.remove("allOf");
    for (key, value) in parts.iter().filter_map(Value::as_object).flatten() {
        match (all.get_mut(key), value) {
            (Some(Value::Object(members)), Value::Object(more)) => {
                members.extend(more.clone());
            }
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more.clone()),
            (Some(_), _) => {}
            (None, value) => {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(all)
}

fn number(schema: &Value, is_integer: bool) -> Option<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let low = bound("minimum").or(bound("exclusiveMinimum"));
    let high = bound("maximum").or(bound("exclusiveMaximum"));
    let unit = step.unwrap_or(1.0);
    let start = low.map(|low| (low / unit).ceil() * unit);
    let end = high.map(|high| (high / unit).floor() * unit);
    let middle = low.zip(high).map(|(low, high)| f64::midpoint(low, high));
    let candidates = [
        Some(1.0),
        Some(unit),
        start,
        start.map(|start| start + unit),
        end,
        end.map(|end| end - unit),
        Some(0.0),
        middle,
    ];
    let fits = |value: &f64| {
        (!is_integer || value.fract() == 0.0)
            && bound("minimum").is_none_or(|bound| *value >= bound)
            && bound("maximum").is_none_or(|bound| *value <= bound)
            && bound("exclusiveMinimum").is_none_or(|bound| *value > bound)
            && bound("exclusiveMaximum").is_none_or(|bound| *value < bound)
            && step.is_none_or(|step| (value / step).fract() == 0.0)
    };
    let value = candidates.into_iter().flatten().find(fits)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value was checked before"
    )]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(json!(value as i64));
    }
    Some(json!(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e38_arguments_are_made_from_a_schema() {
        let check = |property: Value, expected: Value| {
            let schema = json!({
                "type": "object", "required": ["x"], "properties": {"x": property, "optional": {}},
                "$defs": {"level": {"enum": ["low", "high"]}, "loop": {"$ref": "#/$defs/loop"}},
            });
            let made = make(&schema).map(|arguments| arguments["x"].clone());
            assert_eq!(
                made.map_err(|_| ()).unwrap_or(json!("none")),
                expected,
                "{property}"
            );
        };
        check(json!({"type": "string"}), json!("example"));
        check(json!(true), json!("example"));
        check(
            json!({"type": "string", "default": "d", "examples": ["e"]}),
            json!("d"),
        );
        check(json!({"type": "string", "examples": ["e"]}), json!("e"));
        check(json!({"enum": ["a", "b"]}), json!("a"));
        check(json!({"const": 5}), json!(5));
        check(json!({"$ref": "#/$defs/level"}), json!("low"));
        check(json!({"$ref": "#/$defs/loop"}), json!("none"));
        check(json!({"type": "integer"}), json!(1));
        check(json!({"type": "integer", "minimum": 10}), json!(10));
        check(
            json!({"type": "integer", "exclusiveMinimum": 10, "multipleOf": 5}),
            json!(15),
        );
        check(json!({"type": "number", "maximum": -2}), json!(-2));
        check(
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            json!(0.5),
        );
        check(
            json!({"type": "integer", "minimum": 2, "maximum": 1}),
            json!("none"),
        );
        check(json!({"type": ["null", "boolean"]}), json!(false));
        check(
            json!({"anyOf": [{"type": "null"}, {"type": "integer"}]}),
            json!(1),
        );
        check(
            json!({"allOf": [{"type": "integer"}, {"minimum": 3}]}),
            json!(3),
        );
        check(
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}),
            json!([1, 1]),
        );
        check(
            json!({"type": "array", "items": {}, "minItems": 2, "uniqueItems": true}),
            json!("none"),
        );
        check(json!({"type": "array", "maxItems": 0}), json!([]));
        check(
            json!({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}),
            json!({"a": 1}),
        );
        check(
            json!({"type": "integer", "not": {"const": 1}}),
            json!("none"),
        );
    }

    #[test]
    fn a_tool_that_asks_for_nothing_gets_nothing() {
        for schema in [
            json!({"type": "object"}),
            Value::Null,
            json!({"required": []}),
        ] {
            assert_eq!(make(&schema), Ok(Map::new()));
        }
    }
}

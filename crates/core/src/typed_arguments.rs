//! Tool arguments from the command line, `a=2 text=hello`, typed by the tool's schema.
//!
//! Its main function is [`resolve`]. A value is JSON where it parses as such and the schema agrees, and
//! string otherwise, so that `id=007`, `id=7` and `name=true` become what the tool expects.

use jsonschema::Validator;
use proctor_record::excerpt::excerpt;
use proctor_record::hint::{listed, nearest_hint};
use proctor_record::json;
use serde_json::{Map, Value};

use crate::pattern::Pattern;

/// The arguments of a call, with their types.
#[derive(Debug, PartialEq)]
pub struct TypedArguments {
    /// The arguments of the call.
    pub arguments: Map<String, Value>,
    /// Arguments that the schema allows neither as JSON nor as text, each with the reason.
    pub unfit: Vec<String>,
}

/// Why arguments can't be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// The schema has no such argument.
    #[error("the tool has no argument `{name}`{}", after_semicolon(.hint.as_deref()))]
    Unknown { name: String, hint: Option<String> },
    /// Arguments that the schema requires were not given.
    #[error("missing {}", .0.join(", "))]
    Missing(Vec<String>),
    /// An argument was given more than once.
    #[error("duplicate argument `{0}`; to pass a list, write JSON, such as `{0}='[1, 2]'`")]
    Repeated(String),
}

fn after_semicolon(hint: Option<&str>) -> String {
    hint.map_or(String::new(), |hint| format!("; {hint}"))
}

/// Converts the values to the types of the tool's schema, if it is known.
pub fn resolve(
    typed: &[(String, String)],
    schema: Option<&Value>,
) -> Result<TypedArguments, ArgumentError> {
    let validator = schema.and_then(of_single_arguments);
    let mut resolved = TypedArguments {
        arguments: Map::new(),
        unfit: Vec::new(),
    };
    for (name, text) in typed {
        if schema.is_some_and(|schema| !may_have(schema, name)) {
            let known = schema.and_then(properties).into_iter().flatten();
            let hint = nearest_hint(name, known.map(|(name, _)| name.as_str()));
            let name = name.clone();
            return Err(ArgumentError::Unknown { name, hint });
        }
        let (value, unfit) = meant(name, text, validator.as_ref());
        resolved.unfit.extend(unfit);
        if resolved.arguments.insert(name.clone(), value).is_some() {
            return Err(ArgumentError::Repeated(name.clone()));
        }
    }
    let missing = schema.map(required).unwrap_or_default();
    let missing: Vec<String> = missing
        .into_iter()
        .filter(|(name, _)| !resolved.arguments.contains_key(*name))
        .map(|(_, shown)| shown)
        .collect();
    if missing.is_empty() {
        Ok(resolved)
    } else {
        Err(ArgumentError::Missing(missing))
    }
}

/// The required arguments of a tool: each name, and its text for messages, with its type.
pub fn required(schema: &Value) -> Vec<(&str, String)> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let kind = |name: &str| match properties(schema)?.get(name)?.get("type")? {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            Some(kinds.join(" or "))
        }
        _ => None,
    };
    names
        .map(|name| match kind(name) {
            Some(kind) => (name, format!("`{name}` ({kind})")),
            None => (name, listed([name])),
        })
        .collect()
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// Whether a tool can have an argument of this name. If the schema uses keywords that are not checked
/// here, the answer is yes and the server decides.
fn may_have(schema: &Value, name: &str) -> bool {
    const ELSEWHERE: [&str; 7] = [
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "$ref",
        "$dynamicRef",
        "dependentSchemas",
    ];
    if ELSEWHERE.iter().any(|key| schema.get(key).is_some()) {
        return true;
    }
    let listed = properties(schema);
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let fits = |pattern: &String| Pattern::compile(pattern).map_or(true, |p| p.is_match(name));
    if listed.is_some_and(|listed| listed.contains_key(name))
        || patterns.is_some_and(|patterns| patterns.keys().any(fits))
    {
        return true;
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(allowed)) => *allowed,
        Some(_) => true,
        // JSON Schema would allow any; a name beside a list of others is a typing mistake.
        None => listed.is_none_or(Map::is_empty),
    }
}

/// A validator for objects with some of the arguments.
fn of_single_arguments(schema: &Value) -> Option<Validator> {
    let mut single = schema.as_object()?.clone();
    for key in ["required", "minProperties", "dependentRequired"] {
        single.remove(key);
    }
    // A schema that can't be used decides nothing.
    let single = Value::Object(single);
    jsonschema::options().offline().build(&single).ok()
}

/// The value of a text, and the reason if the schema allows neither the JSON value nor the string.
fn meant(name: &str, text: &str, validator: Option<&Validator>) -> (Value, Option<String>) {
    let unfit = |value: &Value| {
        let object = Value::from(Map::from_iter([(name.to_owned(), value.clone())]));
        let error = validator?.validate(&object).err()?;
        Some(format!("`{name}`: {}", excerpt(&error.to_string())))
    };
    let plain = Value::from(text);
    match json::from_str(text) {
        Ok(json) if unfit(&json).is_none() => (json, None),
        Ok(json) => match unfit(&plain) {
            None => (plain, None),
            Some(_) => (plain, unfit(&json)),
        },
        Err(_) => {
            let why = unfit(&plain);
            (plain, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(words: &[&str]) -> Vec<(String, String)> {
        let pairs = words.iter().filter_map(|word| word.split_once('='));
        pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
    }

    #[track_caller]
    fn check(property: &Value, text: &str, expected: &Value) {
        let schema = json!({"type": "object", "properties": {"v": property}, "required": ["v"],
            "$defs": {"count": {"type": "integer"}}});
        let resolved = resolve(&[("v".to_owned(), text.to_owned())], Some(&schema)).unwrap();
        assert_eq!(resolved.arguments["v"], *expected, "{property} {text}");
        assert_eq!(resolved.unfit, Vec::<String>::new());
    }

    #[test]
    fn a_value_is_json_where_the_schema_agrees_and_text_otherwise() {
        let number = json!({"type": "number"});
        check(&number, "2", &json!(2));
        check(&number, "-1.5e3", &serde_json::from_str("-1.5e3").unwrap());
        let string = json!({"type": "string"});
        for text in ["2", "true", "null", "[1]", "007", "a=b", "", "{", "it's"] {
            check(&string, text, &json!(text));
        }
        check(&string, "\"quoted\"", &json!("quoted"));
        check(&string, "\"@file\"", &json!("@file"));
        check(&json!({"type": "boolean"}), "true", &json!(true));
        check(&json!({"type": "array"}), "[1, 2]", &json!([1, 2]));
        check(&json!({"type": ["string", "null"]}), "null", &json!(null));
        check(&json!({"$ref": "#/$defs/count"}), "7", &json!(7));
        check(&json!({"enum": ["1", "2"]}), "1", &json!("1"));
        check(&json!({"enum": [1, 2]}), "1", &json!(1));
        check(&json!({}), "1", &json!(1));
        check(&json!({}), "one", &json!("one"));
        let long = "123456789012345678901234567890";
        check(&number, long, &serde_json::from_str(long).unwrap());
    }

    #[test]
    fn without_a_schema_what_parses_is_json() {
        let words = typed(&["a=1", "b=one", "c={\"d\": []}"]);
        for schema in [None, Some(&json!({"$ref": "http://elsewhere/schema"}))] {
            let resolved = resolve(&words, schema).unwrap();
            let expected = json!({"a": 1, "b": "one", "c": {"d": []}});
            assert_eq!(Value::from(resolved.arguments), expected);
        }
    }

    #[test]
    fn a_value_that_fits_no_type_is_a_string_with_a_note() {
        let schema = json!({"properties": {"a": {"type": "number"}, "b": {"enum": ["x"]}}});
        let resolved = resolve(&typed(&["a=two", "b=3"]), Some(&schema)).unwrap();
        assert_eq!(
            Value::from(resolved.arguments),
            json!({"a": "two", "b": "3"})
        );
        assert_eq!(resolved.unfit.len(), 2);
        assert!(
            resolved.unfit[0].starts_with("`a`: "),
            "{:?}",
            resolved.unfit
        );
    }

    #[test]
    fn mistakes_come_with_suggestions() {
        let schema = json!({"properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
            "required": ["path", "depth"]});
        let error = |words: &[&str]| {
            resolve(&typed(words), Some(&schema))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(&["paht=/tmp"]),
            "the tool has no argument `paht`; did you mean `path`?"
        );
        assert_eq!(
            error(&["zebra=1"]),
            "the tool has no argument `zebra`; known: `path`, `depth`"
        );
        assert_eq!(error(&["path=/"]), "missing `depth` (integer)");
        assert_eq!(error(&[]), "missing `path` (string), `depth` (integer)");
        assert_eq!(
            error(&["path=/", "path=/tmp"]),
            "duplicate argument `path`; to pass a list, write JSON, such as `path='[1, 2]'`"
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_decides_nothing_and_harms_nothing() {
        for schema in [
            json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
            json!({"$ref": "#"}),
            json!({"properties": {"a": {"anyOf": [{"$ref": "#/$defs/x"}]}},
                "$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}}),
            json!({"properties": {"a": {"$dynamicRef": "#m", "$dynamicAnchor": "m"}}}),
            json!({"properties": 5, "required": 7, "additionalProperties": "x"}),
            json!([]),
        ] {
            let resolved = resolve(&typed(&["a=1"]), Some(&schema)).unwrap();
            assert_eq!(resolved.arguments["a"], 1, "{schema}");
        }
    }

    #[test]
    fn a_name_is_unknown_only_if_the_schema_is_sure() {
        let check = |schema: Value, expected: bool| {
            assert_eq!(may_have(&schema, "x-1"), expected, "{schema}");
        };
        check(json!({}), true);
        check(json!(true), true);
        check(json!({"properties": {}}), true);
        check(
            json!({"properties": {}, "additionalProperties": false}),
            false,
        );
        check(json!({"properties": {"a": {}}}), false);
        check(
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
            true,
        );
        check(
            json!({"properties": {"a": {}}, "patternProperties": {"^x-": {}}}),
            true,
        );
        check(
            json!({"properties": {"a": {}}, "patternProperties": {"^y-": {}}}),
            false,
        );
        check(json!({"properties": {"a": {}}, "anyOf": [{}]}), true);
    }
}

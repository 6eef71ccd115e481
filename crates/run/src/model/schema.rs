//! Tools, as providers take them.
//!
//! Providers want a schema that is an object at the top and plain JSON Schema 2020-12 below. What
//! has to be taken out goes into the description, so that the model still knows it; nothing is lost
//! but `$schema`, which says nothing to a model.

use proctor_core::json;
use proctor_core::model::Tool;
use serde_json::{Map, Value};

/// Not accepted at the top of a schema.
const NOT_AT_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// A tool's description and schema, as every provider takes them.
pub(super) struct Fitted {
    pub(super) description: Option<String>,
    pub(super) schema: Value,
}

/// Makes a tool fit.
pub(super) fn fit(tool: &Tool) -> Fitted {
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
    Fitted {
        description: described(tool.description.as_deref(), taken),
        schema: Value::Object(schema),
    }
}

/// Puts what a `$ref` at the top refers to in its place.
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

/// Lets the model use the properties that stand only in alternatives that were taken out.
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

/// Rewrites what older drafts say otherwise: providers check schemas against the newest.
fn modernise(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(_)) = schema.get("items") {
        let positions = schema.remove("items").unwrap_or_default();
        schema.insert("prefixItems".to_owned(), positions);
        if let Some(rest) = schema.remove("additionalItems") {
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

/// Arguments whose names a provider does not take, and the names that it is told instead.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Renamed(Vec<(String, String)>);

impl Renamed {
    /// Renames the arguments of a fitted schema where that is needed.
    pub(super) fn in_schema(schema: &mut Value) -> Self {
        let names = schema["properties"].as_object();
        let names: Vec<String> = names.into_iter().flat_map(Map::keys).cloned().collect();
        let mut renamed = Self::default();
        for name in names.iter().filter(|name| !is_argument_name(name)) {
            let mut number = 1;
            let mut told = "argument_1".to_owned();
            while names.contains(&told) || renamed.original(&told).is_some() {
                number += 1;
                told = format!("argument_{number}");
            }
            if let Some(properties) = schema["properties"].as_object_mut()
                && let Some(mut property) = properties.remove(name)
            {
                let note = format!("The argument `{name}`.");
                if let Value::Object(property) = &mut property {
                    let said = property.get("description").and_then(Value::as_str);
                    let said = said.map_or(note.clone(), |said| format!("{note} {said}"));
                    property.insert("description".to_owned(), said.into());
                }
                properties.insert(told.clone(), property);
            }
            let required = schema.get_mut("required").and_then(Value::as_array_mut);
            for one in required
                .into_iter()
                .flatten()
                .filter(|one| one.as_str() == Some(name))
            {
                *one = told.clone().into();
            }
            renamed.0.push((told, name.clone()));
        }
        renamed
    }

    /// The arguments as the server knows them.
    pub(super) fn back(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        let back = arguments.into_iter().map(|(name, value)| {
            let original = self.original(&name).map(str::to_owned);
            (original.unwrap_or(name), value)
        });
        back.collect()
    }

    fn original(&self, told: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == told);
        found.map(|(_, original)| original.as_str())
    }
}

fn is_argument_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(is_legal)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, expected: &Value, note: Option<&str>) {
        let tool = Tool {
            name: "t".to_owned(),
            description: Some("does it".to_owned()),
            schema,
        };
        let fitted = fit(&tool);
        assert!(json::equal(&fitted.schema, expected), "{}", fitted.schema);
        let description = match note {
            None => "does it".to_owned(),
            Some(note) => {
                format!("does it\n\nThe arguments must also satisfy this JSON Schema: {note}")
            }
        };
        assert_eq!(fitted.description, Some(description));
    }

    #[test]
    fn what_fits_is_left_alone() {
        let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}]}},
            "required": ["a"], "additionalProperties": false, "$defs": {"x": {"enum": [1]}}});
        check(schema.clone(), &schema, None);
    }

    #[test]
    fn an_empty_schema_becomes_an_object() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [
            json!({}),
            json!(true),
            Value::Null,
            json!({"type": "object"}),
        ] {
            check(schema, &empty, None);
        }
        check(json!(false), &empty, Some(r#"{"schema":false}"#));
        check(
            json!({"type": ["object", "null"]}),
            &empty,
            Some(r#"{"type":["object","null"]}"#),
        );
    }

    #[test]
    fn alternatives_at_the_top_go_into_the_description() {
        check(
            json!({"type": "object", "oneOf": [
                {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
                {"properties": {"kind": {"const": "b"}, "n": {"type": "integer"}}},
            ]}),
            &json!({"type": "object", "properties": {
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
                "n": {"type": "integer"},
            }}),
            Some(
                r#"{"oneOf":[{"properties":{"kind":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"kind":{"const":"b"},"n":{"type":"integer"}}}]}"#,
            ),
        );
        check(
            json!({"properties": {"a": {}}, "not": {"required": ["a"]}, "enum": [1]}),
            &json!({"type": "object", "properties": {"a": {}}}),
            Some(r#"{"enum":[1],"not":{"required":["a"]}}"#),
        );
    }

    #[test]
    fn a_reference_at_the_top_is_put_in_its_place() {
        let definitions = json!({"X": {"type": "object", "properties": {"a": {}}}});
        check(
            json!({"$ref": "#/$defs/X", "$defs": definitions}),
            &json!({"type": "object", "properties": {"a": {}}, "$defs": definitions}),
            None,
        );
        check(
            json!({"$ref": "https://example.com/x"}),
            &json!({"type": "object", "properties": {}}),
            Some(r#"{"$ref":"https://example.com/x"}"#),
        );
    }

    #[test]
    fn names_of_arguments_are_made_legal_and_mapped_back() {
        let mut schema = json!({"type": "object", "required": ["a b", "ok"], "properties": {
            "a b": {"type": "string", "description": "Text."}, "ok": {}, "é": true, "argument_1": {},
        }});
        let renamed = Renamed::in_schema(&mut schema);
        let expected = json!({"type": "object", "required": ["argument_2", "ok"], "properties": {
            "argument_2": {"type": "string", "description": "The argument `a b`. Text."},
            "ok": {}, "argument_3": true, "argument_1": {},
        }});
        assert!(json::equal(&schema, &expected), "{schema}");
        let told = json!({"argument_2": 1, "ok": 2, "argument_3": 3, "argument_1": 4, "other": 5});
        let back = renamed.back(told.as_object().unwrap().clone());
        let expected = json!({"a b": 1, "ok": 2, "é": 3, "argument_1": 4, "other": 5});
        assert!(json::equal(&Value::Object(back), &expected));
        let mut legal = json!({"type": "object", "properties": {"a.b-c_1": {}}});
        assert_eq!(Renamed::in_schema(&mut legal), Renamed::default());
    }

    /// Schemas as nobody should write them.
    fn schemas() -> impl Strategy<Value = Value> {
        let key = select(vec![
            "type",
            "properties",
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "not",
            "items",
            "$ref",
            "$defs",
            "required",
            "exclusiveMinimum",
            "minimum",
            "additionalItems",
            "x y",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            select(vec!["object", "string", "#", "#/$defs/type", "a"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::Array),
                vec((key.clone(), inner), 0..6).prop_map(|pairs| {
                    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_server_says_becomes_an_object_and_loses_nothing_at_the_top(schema in schemas()) {
            let tool = Tool { name: "t".to_owned(), description: None, schema: schema.clone() };
            let fitted = fit(&tool);
            prop_assert_eq!(&fitted.schema["type"], "object");
            prop_assert!(fitted.schema["properties"].is_object());
            let note = fitted.description.unwrap_or_default();
            for key in NOT_AT_TOP {
                prop_assert!(fitted.schema.get(key).is_none());
                if schema.get(key).is_some() {
                    let quoted = format!("\"{key}\":");
                    prop_assert!(note.contains(&quoted));
                }
            }
            let again = fit(&Tool { schema: fitted.schema.clone(), ..tool });
            prop_assert!(json::equal(&again.schema, &fitted.schema));
            prop_assert_eq!(again.description, None);
        }
    }

    #[test]
    fn older_drafts_are_rewritten() {
        check(
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {
                "pair": {"type": "array", "items": [{"type": "string"}, {"minimum": 0, "exclusiveMinimum": true}], "additionalItems": false},
                "items": {"maximum": 3, "exclusiveMaximum": false},
            }}),
            &json!({"type": "object", "properties": {
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"exclusiveMinimum": 0}], "items": false},
                "items": {"maximum": 3},
            }}),
            None,
        );
    }
}

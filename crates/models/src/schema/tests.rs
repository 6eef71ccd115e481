//! Usual and unusual schemas of servers.

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
fn valid_schemas_are_unchanged() {
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
fn top_level_alternatives_move_into_the_description() {
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
fn a_top_level_reference_is_inlined() {
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
    let renamed = RenamedArguments::in_schema(&mut schema);
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
    assert_eq!(
        RenamedArguments::in_schema(&mut legal),
        RenamedArguments::default()
    );
}

/// Strange schemas.
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
            vec((key.clone(), inner), 0..6)
                .prop_map(|pairs| { pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect() }),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_becomes_an_object_without_losing_top_level_keywords(schema in schemas()) {
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
fn additional_items_that_are_not_a_schema_are_unchanged() {
    let odd = json!({"type": "object", "properties": {}, "prefixItems": [], "additionalItems": []});
    let given = json!({"items": [], "additionalItems": []});
    check(given, &odd, None);
}

fn subset(schema: Value) -> ProviderToolSchema {
    fit_subset(&Tool {
        name: "t".to_owned(),
        description: Some("does it".to_owned()),
        schema,
    })
}

#[test]
fn keywords_that_gemini_rejects_move_into_descriptions() {
    let fitted = subset(
        json!({"type": "object", "minProperties": 1, "definitions": {"d": {"type": "string"}}, "properties": {
        "n": {"type": "integer", "default": 5, "exclusiveMinimum": 0, "description": "how many"},
        "c": {"const": "x"},
        "b": {"enum": [true, null]},
        "r": {"$ref": "#/definitions/d", "description": "gone"},
        "a": {"type": "array", "items": {"pattern": "^a", "$comment": "x"}},
        "any": true,
    }, "additionalProperties": false}),
    );
    let expected = json!({"type": "object", "$defs": {"d": {"type": "string"}}, "properties": {
        "n": {"type": "integer", "description": "how many (JSON Schema: {\"default\":5,\"exclusiveMinimum\":0})"},
        "c": {"enum": ["x"]},
        "b": {"description": "(JSON Schema: {\"enum\":[true,null]})"},
        "r": {"$ref": "#/$defs/d"},
        "a": {"type": "array", "items": {"description": "(JSON Schema: {\"pattern\":\"^a\"})"}},
        "any": {},
    }, "additionalProperties": false});
    assert!(json::equal(&fitted.schema, &expected), "{}", fitted.schema);
    let note = "does it\n\nThe arguments must also satisfy this JSON Schema: {\"minProperties\":1}";
    assert_eq!(fitted.description.as_deref(), Some(note));
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

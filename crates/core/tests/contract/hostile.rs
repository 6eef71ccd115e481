//! Pairs of schemas that a careless comparison would call safe.

use proctor_record::event::ChangeClass;
use serde_json::{Value, json};

use super::{arguments, results};

fn worst(old: &Value, new: &Value) -> Option<ChangeClass> {
    arguments(old, new).iter().map(|change| change.class).max()
}

#[test]
fn a_change_that_is_not_proved_safe_is_never_safe() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let pairs = [
        // The same words behind a reference to another definition.
        (
            json!({"$defs": {"x": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
            json!({"$defs": {"x": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
        ),
        // A property that only an alternative names.
        (
            json!({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["b"]}]}),
            json!({"properties": {"a": {"type": "integer"}}}),
        ),
        (
            object(json!({"a": {"type": "string"}})),
            json!({"not": {"required": ["a"]}}),
        ),
        (
            object(json!({"a": {"type": "string"}})),
            json!({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}),
        ),
        (
            object(json!({"a": {"type": "string"}})),
            json!({"type": "object", "dependentRequired": {"a": ["b"]}}),
        ),
        (
            object(json!({"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}})),
            object(
                json!({"a": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]}}),
            ),
        ),
        (
            json!({"type": "object", "required": ["a"]}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}),
        ),
        (object(json!({"a": {}})), object(json!({"a": false}))),
        (object(json!({})), object(json!({"a": false}))),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {"type": "integer"}}}),
        ),
        (
            object(json!({"a": {"type": "string", "format": "email"}})),
            object(json!({"a": {"type": "string", "format": "uri"}})),
        ),
        (
            object(json!({})),
            json!({"type": "object", "maxProperties": 0}),
        ),
        (object(json!({})), json!(false)),
        (
            object(json!({"a": {"type": "integer"}})),
            object(json!({"a": {"type": "integer", "maximum": 9_007_199_254_740_993_i64}})),
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/definitions/x", "type": "string"}}, "definitions": {"x": {}}}),
            json!({"properties": {"a": {"$ref": "#/definitions/x", "type": "string"}}, "definitions": {"x": {}}}),
        ),
    ];
    for (old, new) in pairs {
        let worst = worst(&old, &new);
        assert!(
            worst >= Some(ChangeClass::Review),
            "{old}\n{new}\n{worst:?}"
        );
    }
}

#[test]
fn a_recursive_schema_is_compared() {
    let tree = |kind: &str| {
        json!({"type": "object", "properties": {"node": {"$ref": "#/$defs/n"}}, "$defs": {"n": {
            "type": "object",
            "properties": {"value": {"type": kind}, "next": {"$ref": "#/$defs/n"}},
        }}})
    };
    assert_eq!(worst(&tree("string"), &tree("string")), None);
    let found = arguments(&tree("string"), &tree("integer"));
    let broken = found
        .iter()
        .find(|change| change.class == ChangeClass::Breaking);
    assert!(
        broken.is_some_and(|change| change.witness.is_some()),
        "{found:#?}"
    );
}

#[test]
fn an_output_enum_that_grows_is_breaking() {
    let of = |values: Value| json!({"type": "object", "properties": {"s": {"enum": values}}, "required": ["s"]});
    let found = results(&of(json!(["a"])), &of(json!(["a", "b"])));
    assert_eq!(found[0].class, ChangeClass::Breaking, "{found:?}");
    assert_eq!(found[0].witness, Some(json!({"s": "b"})));
    let found = results(&of(json!(["a", "b"])), &of(json!(["a"])));
    assert_eq!(found[0].class, ChangeClass::Safe, "{found:?}");
}

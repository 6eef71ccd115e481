//! Files with random changes are refused by both or by neither.

use proctor_core::suite::schema::schema;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::complete::complete;
use crate::{KINDS, decode, pointers};

#[derive(Debug, Clone)]
enum Change {
    Replace(Value),
    Remove,
    Rename(&'static str),
    Add(&'static str, Value),
}

const KEYS: [&str; 17] = [
    "unknown",
    "file",
    "inline",
    "path",
    "glob",
    "exact",
    "raw",
    "url",
    "command",
    "env",
    "agent",
    "agentFile",
    "steps",
    "id",
    "script",
    "a.b",
    "$match",
];

/// Values of every kind, valid in some places and in most of them not.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(5),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("30s"),
        json!("file"),
        json!("1/2"),
        json!("Task"),
        json!([]),
        json!(["x"]),
        json!([{}]),
        json!({}),
        json!({"x": 1}),
        json!({"$x": 1}),
        json!({"$exists": true}),
        json!({"$exists": true, "x": 1}),
        json!({"inline": "x"}),
        json!({"file": "x", "inline": null}),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let key = || prop::sample::select(&KEYS[..]);
    let value = || prop::sample::select(values());
    prop_oneof![
        4 => value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        1 => key().prop_map(Change::Rename),
        2 => (key(), value()).prop_map(|(key, value)| Change::Add(key, value)),
    ]
}

fn apply(value: &mut Value, pointer: &str, change: &Change) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return;
    };
    match change {
        Change::Replace(new) => {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = new.clone();
            }
        }
        Change::Add(key, new) => {
            if let Some(Value::Object(map)) = value.pointer_mut(pointer) {
                map.insert((*key).to_owned(), new.clone());
            }
        }
        Change::Remove | Change::Rename(_) => match value.pointer_mut(parent) {
            Some(Value::Object(map)) => {
                let removed = map.remove(key);
                if let (Change::Rename(new), Some(removed)) = (change, removed) {
                    map.insert((*new).to_owned(), removed);
                }
            }
            Some(Value::Array(items)) => {
                items.remove(key.parse().expect("an index"));
            }
            _ => {}
        },
    }
}

thread_local! {
    static VALIDATORS: Vec<jsonschema::Validator> = KINDS
        .iter()
        .map(|kind| jsonschema::validator_for(&schema(*kind)).expect("a schema"))
        .collect();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn a_broken_file_is_refused_by_both_or_by_neither(
        kind in 0..KINDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 1..3),
    ) {
        let mut value = complete(KINDS[kind]);
        for (index, change) in changes {
            let mut found = Vec::new();
            pointers(&value, "", &mut found);
            apply(&mut value, &found[index.index(found.len())], &change);
        }
        let decoded = decode(KINDS[kind], &value);
        let by_schema = VALIDATORS.with(|all| {
            all[kind].validate(&value).map_err(|e| format!("{}: {e}", e.instance_path()))
        });
        prop_assert_eq!(
            decoded.is_ok(), by_schema.is_ok(),
            "decoder: {:?}\nschema: {:?}\n{}", decoded, by_schema, value
        );
    }
}

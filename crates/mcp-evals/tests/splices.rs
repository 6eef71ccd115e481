//! The capability is put into a message, and nothing else of the message changes.

use mcp_evals::splice::{SpliceError, declare, insertions};
use mcp_evals::{CAPABILITY, Capability, EXTENSION, matching};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn declared(message: &str) -> String {
    let capability = Capability::with_list_changed();
    let bytes = declare(message.as_bytes(), &capability).expect("a message with capabilities");
    String::from_utf8(bytes).expect("UTF-8 stays UTF-8")
}

#[test]
fn e1_the_capability_is_declared_in_three_places() {
    let out = declared(
        "{\"jsonrpc\": \"2.0\",\"id\":1,\"result\":{ \"capabilities\" : { \"tools\":{} }, \"n\":1.50e1}}\r\n",
    );
    let ours = r#""evals":{"listChanged":true},"experimental":{"evals":{"listChanged":true}},"extensions":{"dev.mcp-proctor/evals":{"listChanged":true}},"#;
    let expected = format!(
        "{{\"jsonrpc\": \"2.0\",\"id\":1,\"result\":{{ \"capabilities\" : {{{ours} \"tools\":{{}} }}, \"n\":1.50e1}}}}\r\n"
    );
    assert_eq!(out, expected);
}

#[test]
fn e1_what_is_there_wins() {
    let cases = [
        (
            "{}",
            json!({"listChanged": true}),
            json!({"evals": {"listChanged": true}}),
        ),
        (
            r#"{"evals":{}}"#,
            json!({"listChanged": true}),
            json!({"evals": {"listChanged": true}}),
        ),
        (
            r#"{"evals":{"listChanged":false,"x":1},"experimental":{"other":{}}}"#,
            json!({"listChanged": false, "x": 1}),
            json!({"other": {}, "evals": {"listChanged": true}}),
        ),
        (
            r#"{"evals":true,"experimental":null}"#,
            json!(true),
            Value::Null,
        ),
        (
            r#"{"\u0065vals":{"a":1}}"#,
            json!({"a": 1, "listChanged": true}),
            json!({"evals": {"listChanged": true}}),
        ),
    ];
    for (capabilities, evals, experimental) in cases {
        let out = declared(&format!(
            r#"{{"result":{{"capabilities":{capabilities}}}}}"#
        ));
        let out: Value = serde_json::from_str(&out).unwrap();
        let out = &out["result"]["capabilities"];
        assert_eq!(out["evals"], evals, "{capabilities}");
        assert_eq!(out["experimental"], experimental, "{capabilities}");
        assert_eq!(out["extensions"][EXTENSION], json!({"listChanged": true}));
    }
}

#[test]
fn e1_declaring_twice_changes_nothing() {
    let once = declared(r#"{"result":{"capabilities":{}}}"#);
    assert_eq!(declared(&once), once);
}

#[test]
fn other_messages_are_refused() {
    let capability = Capability::default();
    for message in ["", "{", "nul", "{\"result\":{\"capabilities\":{}}} x"] {
        let result = declare(message.as_bytes(), &capability);
        assert!(matches!(result, Err(SpliceError::Json(_))), "{message}");
    }
    for message in [
        "[]",
        "3",
        r#"{"result":{}}"#,
        r#"{"result":{"capabilities":null}}"#,
        r#"{"params":{"capabilities":{}}}"#,
        r#"{"result":"{\"capabilities\":{}}"}"#,
        r#"{"error":{"code":1,"message":"\"result\":{\"capabilities\":{}}"}}"#,
    ] {
        let result = declare(message.as_bytes(), &capability);
        assert!(
            matches!(result, Err(SpliceError::NoCapabilities)),
            "{message}"
        );
    }
}

/// What the message must mean afterwards.
fn merged(mut message: Value, capability: &Capability) -> Value {
    let ours = Value::Object(capability.to_map());
    let capabilities = message["result"]["capabilities"]
        .as_object_mut()
        .expect("capabilities");
    fill(capabilities, CAPABILITY, &ours);
    for (group, key) in [("experimental", CAPABILITY), ("extensions", EXTENSION)] {
        let group = capabilities.entry(group).or_insert_with(|| json!({}));
        if let Some(group) = group.as_object_mut() {
            fill(group, key, &ours);
        }
    }
    message
}

fn fill(object: &mut Map<String, Value>, key: &str, ours: &Value) {
    let present = object.entry(key).or_insert_with(|| json!({}));
    if let (Some(present), Some(ours)) = (present.as_object_mut(), ours.as_object()) {
        for (key, value) in ours {
            present.entry(key).or_insert_with(|| value.clone());
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "evals",
        "experimental",
        "extensions",
        EXTENSION,
        "listChanged",
        "capabilities",
        "result",
        "tools",
        "a\"b",
        "ü\\",
        "{",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("}{\"][,:\\")),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 30, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(k, v)| (k.to_owned(), v))
                        .collect(),
                )
            }),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    any_json().prop_map(|value| {
        if value.is_object() {
            value
        } else {
            json!({"x": value})
        }
    })
}

proptest! {
    #[test]
    fn e1_only_the_capability_is_added(
        capabilities in any_object(),
        around in any_object(),
        pretty in any::<bool>(),
        list_changed in any::<Option<bool>>(),
    ) {
        let mut message = json!({"id": 1, "z": around});
        message["result"] = around;
        message["result"]["capabilities"] = capabilities;
        let text = if pretty {
            serde_json::to_string_pretty(&message).unwrap()
        } else {
            message.to_string()
        };
        let mut capability = Capability { list_changed, ..Capability::default() };
        capability.extra.insert("mo\"re".to_owned(), json!([1]));
        let out = declare(text.as_bytes(), &capability).unwrap();
        let parsed: Value = serde_json::from_slice(&out).unwrap();
        prop_assert!(matching::equal(&parsed, &merged(message, &capability)), "{}", parsed);

        // Taken out again from the front, every insertion is at the place it says.
        let mut rest = out;
        for insertion in insertions(text.as_bytes(), &capability).unwrap() {
            let end = insertion.at + insertion.text.len();
            let removed: Vec<u8> = rest.drain(insertion.at..end).collect();
            prop_assert_eq!(removed, insertion.text.into_bytes());
        }
        prop_assert_eq!(rest, text.into_bytes());
    }

    #[test]
    fn no_bytes_make_it_panic(message in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = declare(&message, &Capability::default());
    }
}

//! Lone surrogates, which Rust strings can't hold, and ambiguous JSON.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::RESERVED_KEY;

#[test]
fn half_pairs_are_kept_without_loss() {
    for text in [
        r#"{"a":"x\ud800y","b":[1.50,true,null]}"#,
        r#"["\udc00\ud83d","\ud83d\ud83d"]"#,
        r#"{"\udfff":"\\ud800"}"#,
    ] {
        let value = decode(text).unwrap();
        assert!(has_lone_surrogate(&value), "{text}");
        assert_eq!(spelled(&value.to_string()), text);
    }
    let whole = decode(r#"["\ud83d\ude00","\\ud800","\\\\ud800"]"#).unwrap();
    assert_eq!(whole, json!(["😀", r"\ud800", r"\\ud800"]));
    assert!(!has_lone_surrogate(&whole));
    let brief = crate::json::brief(&decode(r#""a\uD800""#).unwrap());
    assert_eq!(brief, r#""a\ud800""#);
}

#[test]
fn duplicate_keys_are_refused() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"[{"b":{"a":1,"\u0061":2}}]"#,
        r#"{"\ud800":1,"\uD800":2}"#,
    ] {
        let error = decode(text).unwrap_err().to_string();
        assert!(error.contains("duplicate key"), "{error}");
    }
    assert!(decode(r#"{"a":{"a":1},"A":{"a":1e400}}"#).is_ok());
    assert!(decode(r#"{"a":NaN}"#).is_err());
}

/// Other parsers read an object where `serde_json` would read a number or the JSON in a text.
#[test]
fn a_value_is_what_other_parsers_read() {
    for text in [
        r#"{"x":{"$serde_json::private::Number":"5"}}"#,
        r#"{"$serde_json::private::RawValue":"{\"path\":\"ok.txt\"}"}"#,
        // Its text has as many members as the object has too many.
        r#"{"path":"/etc/passwd","path":"ok.txt","pad":{"$serde_json::private::RawValue":"{\"x\":1,\"y\":2}"}}"#,
    ] {
        let error = decode(text).unwrap_err().to_string();
        assert!(error.contains("reserved"), "{error}");
    }
}

/// JSON with keys that repeat and strings that look like members, and text that is not JSON.
fn texts() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(vec![
        "1",
        "1e400",
        "null",
        r#""a\":""#,
        r#""\\""#,
        r#"":{\"a\":1}""#,
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"{"$serde_json::private::RawValue":"{}"}"#,
        r#"{"$serde_json::private::RawValue":"{\"a\":1,\"b\":2}"}"#,
        r#"{"\u0024serde_json::private::RawValue":"{\"a\":1}"}"#,
        r#""\ud800""#,
        "NaN",
    ]);
    let key = prop::sample::select(vec![
        r#""a""#,
        r#""\u0061""#,
        r#""b:""#,
        r#""\"""#,
        r#""c""#,
    ]);
    scalar
        .prop_map(str::to_owned)
        .prop_recursive(4, 24, 4, move |inner| {
            let members = prop::collection::vec((key.clone(), inner.clone()), 0..4);
            let object = members.prop_map(|members| {
                let members = members
                    .into_iter()
                    .map(|(key, value)| format!("{key} : {value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            });
            let list = prop::collection::vec(inner, 0..3);
            prop_oneof![
                object,
                list.prop_map(|list| format!("[{}]", list.join(",")))
            ]
        })
}

proptest! {
    #[test]
    fn counting_members_finds_what_a_parser_of_keys_finds(text in texts()) {
        let spelled = with_stand_ins(&text);
        let checked = if spelled.contains("serde_json::private") {
            Err(serde_json::Error::custom(RESERVED_KEY))
        } else {
            serde_json::from_str::<UnambiguousValue>(&spelled)
                .and_then(|_| serde_json::from_str::<Value>(&spelled))
        };
        let (decoded, expected) = (decode(&text), checked);
        prop_assert_eq!(
            decoded.map_err(|error| error.to_string()),
            expected.map_err(|error| error.to_string())
        );
    }
}

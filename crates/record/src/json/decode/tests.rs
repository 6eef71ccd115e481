//! Lone surrogates, which Rust strings can't hold, and ambiguous JSON.

use serde_json::json;

use super::*;

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

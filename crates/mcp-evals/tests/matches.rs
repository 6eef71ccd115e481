//! The exact-match rules.

use mcp_evals::matching::{
    Mismatch, ModelToolCall, difference, equal, match_content, match_invocation,
};
use mcp_evals::{ExactMatch, Expected};
use serde_json::{Value, json};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the test's JSON is well-formed")
}

#[test]
fn e21_numbers_are_equal_by_value() {
    let same = [
        ("1", "1.0"),
        ("1", "10e-1"),
        ("0", "-0.0"),
        ("100", "1E+2"),
        ("9007199254740993", "9007199254740993.0"),
        (
            "123456789012345678901234567890",
            "1.2345678901234567890123456789e29",
        ),
        ("1e400", "10e399"),
    ];
    for (a, b) in same {
        assert!(equal(&parse(a), &parse(b)), "{a} = {b}");
        assert_eq!(difference(&parse(a), &parse(b)), None);
    }
    let different = [
        ("1", "-1"),
        ("9007199254740993", "9007199254740992"),
        ("18446744073709551617", "18446744073709551616"),
        ("0.1", "0.10000000000000000001"),
        ("1e400", "1e401"),
        ("1", "\"1\""),
        ("0", "false"),
        ("0", "null"),
    ];
    for (a, b) in different {
        assert!(!equal(&parse(a), &parse(b)), "{a} ≠ {b}");
        assert!(difference(&parse(a), &parse(b)).is_some());
    }
}

#[test]
fn e21_arrays_are_in_order_and_keys_are_not() {
    assert!(equal(
        &parse(r#"{"a":1,"b":[1,2]}"#),
        &parse(r#"{"b":[1.0,2],"a":1}"#)
    ));
    assert!(!equal(&json!([1, 2]), &json!([2, 1])));
    assert!(!equal(&json!([1]), &json!([1, 1])));
    assert!(!equal(&json!({"a": null}), &json!({})));
}

fn exact(expected: Expected) -> ExactMatch {
    match expected {
        Expected::ExactMatch(exact) => exact,
        other => panic!("no exact match: {other:?}"),
    }
}

fn invocation(expected: &ExactMatch, calls: &Value) -> Result<(), Mismatch> {
    let calls: Vec<ModelToolCall<'_>> = calls
        .as_array()
        .expect("a list of calls")
        .iter()
        .map(|call| ModelToolCall {
            name: call[0].as_str().expect("a name"),
            arguments: call[1].as_object().expect("arguments"),
        })
        .collect();
    match_invocation(expected, &calls)
}

#[test]
fn e19_some_call_has_the_tool_and_the_arguments() {
    let expected = exact(Expected::call("add", json!({"a": 1, "o": {"x": [1]}})));
    let good = [
        json!([["add", {"a": 1.0, "o": {"x": [1]}}]]),
        json!([["add", {"a": 1, "o": {"x": [1]}, "more": true}]]),
        json!([["sub", {}], ["add", {}], ["add", {"a": 1, "o": {"x": [1]}}]]),
    ];
    for calls in good {
        assert_eq!(invocation(&expected, &calls), Ok(()), "{calls}");
    }
    let bad = [
        (json!([]), "no tool was called"),
        (
            json!([["sub", {"a": 1}]]),
            "`add` was not called, but `sub` was",
        ),
        (
            json!([["sub", {}], ["mul", {}]]),
            "`add` was not called, but `sub`, `mul` were",
        ),
        (
            json!([["add", {"a": 2, "o": {"x": [1]}}]]),
            "`add` was called with other arguments: at `/a`: expected `1`, found `2`",
        ),
        // What is inside an argument is compared as a whole.
        (
            json!([["add", {"a": 1, "o": {"x": [1], "y": 2}}]]),
            "`add` was called with other arguments: at `/o/y`: expected nothing, found `2`",
        ),
        (
            json!([["add", {"o": {"x": [1]}}]]),
            "`add` was called with other arguments: at `/a`: expected `1`, found nothing",
        ),
    ];
    for (calls, reason) in bad {
        assert_eq!(
            invocation(&expected, &calls).unwrap_err().to_string(),
            reason
        );
    }
}

#[test]
fn e19_any_tool_will_do_if_none_is_named() {
    let mut expected = exact(Expected::call("", json!({"a": 1})));
    expected.tool_name = None;
    assert_eq!(
        invocation(&expected, &json!([["x", {}], ["y", {"a": 1}]])),
        Ok(())
    );
    assert!(invocation(&expected, &json!([["x", {"a": 2}]])).is_err());
}

#[test]
fn e21_the_content_is_compared_as_a_whole() {
    let expected = exact(Expected::content(
        json!([{"type": "text", "text": "3", "n": 1}]),
    ));
    let result = |value| match_content(&expected, &value);
    assert_eq!(
        result(parse(r#"[{"n": 1.0, "text": "3", "type": "text"}]"#)),
        Ok(())
    );
    let reason = result(json!([{"type": "text", "text": "4", "n": 1}])).unwrap_err();
    assert_eq!(
        reason.to_string(),
        r#"the content differs: at `/0/text`: expected `"3"`, found `"4"`"#
    );
    assert!(result(json!([])).is_err());
    assert!(result(json!([{"type": "text", "text": "3", "n": 1}, {}])).is_err());
    let none = ExactMatch::default();
    assert_eq!(
        match_content(&none, &json!([])),
        Err(Mismatch::NothingExpected)
    );
}

//! Matchers as they are written: what matches, what does not and why, and what is no matcher.

mod operators;
mod properties;

use serde_json::json;

use super::*;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn compile(written: &Value) -> Matcher {
    Matcher::compile(written).unwrap_or_else(|errors| panic!("{written}: {errors:?}"))
}

#[track_caller]
fn check_match(matcher: &str, value: &str) {
    let outcome = compile(&parse(matcher)).evaluate(Some(&parse(value)));
    assert_eq!(outcome, Ok(()), "{matcher} on {value}");
    assert_eq!(compile(&parse(matcher)).distance(Some(&parse(value))), 0);
}

#[track_caller]
fn check_mismatch(matcher: &str, value: &str, text: &str) {
    let matcher = compile(&parse(matcher));
    let mismatch = matcher.evaluate(Some(&parse(value))).unwrap_err();
    assert_eq!(mismatch.to_string(), text);
    assert!(matcher.distance(Some(&parse(value))) > 0);
}

#[track_caller]
fn check_absent(matcher: &str, expected: Result<(), &str>) {
    let outcome = compile(&parse(matcher)).evaluate(None);
    let outcome = outcome.map_err(|mismatch| mismatch.to_string());
    assert_eq!(outcome, expected.map_err(str::to_owned), "{matcher}");
}

/// Errors as `place: message (hint)`.
#[track_caller]
fn check_errors(matcher: &str, expected: &[&str]) {
    let errors = Matcher::compile(&parse(matcher)).expect_err(matcher);
    let render = |error: &MatcherError| {
        let path: Vec<String> = error
            .path
            .iter()
            .map(|step| match step {
                PathStep::Key(key) => key.clone(),
                PathStep::Index(index) => index.to_string(),
            })
            .collect();
        let hint = error.hint.as_ref().map(|hint| format!(" ({hint})"));
        format!("{}: {error}{}", path.join("/"), hint.unwrap_or_default())
    };
    assert_eq!(errors.iter().map(render).collect::<Vec<_>>(), expected);
}

#[test]
fn a_scalar_matches_an_equal_one() {
    check_match("1", "1.0");
    check_match("18446744073709551617", "18446744073709551617");
    check_match("\"a\"", "\"a\"");
    check_match("null", "null");
    check_mismatch("1", "2", "expected 1, found 2");
    check_mismatch("1", "\"1\"", "expected 1, found \"1\"");
    check_mismatch(
        "18446744073709551617",
        "18446744073709551616",
        "expected 18446744073709551617, found 18446744073709551616",
    );
    check_absent("null", Err("expected null, found nothing"));
}

#[test]
fn an_object_asks_for_its_own_keys_at_every_depth() {
    check_match("{}", r#"{"a":1}"#);
    check_match(r#"{"a":{"b":1}}"#, r#"{"a":{"b":1,"c":2},"d":3}"#);
    check_mismatch(
        r#"{"namespace":"a"}"#,
        r#"{"namespace":"b"}"#,
        "`namespace`: expected \"a\", found \"b\"",
    );
    check_mismatch(
        r#"{"a":{"b":null}}"#,
        r#"{"a":{}}"#,
        "`a.b`: expected null, found nothing",
    );
    check_mismatch(
        r#"{"a":{"b":1}}"#,
        "{}",
        "`a`: expected an object, found nothing",
    );
    check_mismatch("{}", "[]", "expected an object, found []");
    check_mismatch(
        r#"{"a b":{"":1}}"#,
        r#"{"a b":{"":2}}"#,
        "`[\"a b\"][\"\"]`: expected 1, found 2",
    );
}

#[test]
fn an_array_matches_element_by_element() {
    check_match(r#"[1,{"a":2}]"#, r#"[1,{"a":2,"b":3}]"#);
    check_mismatch(
        r#"{"items":[{},{},{"name":"a"}]}"#,
        r#"{"items":[{},{},{"name":"b"}]}"#,
        "`items[2].name`: expected \"a\", found \"b\"",
    );
    check_mismatch("[1]", "[1,2]", "expected 1 element, found 2");
    check_mismatch("[]", "{}", "expected an array, found {}");
    check_absent("[]", Err("expected an array, found nothing"));
}

#[test]
fn what_is_not_an_operator_is_an_error() {
    check_errors(
        r#"{"a":{"$oneof":[1]}}"#,
        &[
            "a/$oneof: unknown operator `$oneof` (did you mean `$oneOf`? a literal key that starts with `$` goes under `$exact`)",
        ],
    );
    check_errors(
        r#"{"$ref":"x","plain":{"$max":[]}}"#,
        &[
            "$ref: unknown operator `$ref` (the operators are `$exact`, `$contains`, `$match`, `$oneOf`, `$type`, `$exists`, `$approx`, `$min`, `$max`, `$unordered`, `$schema`, `$not`; a literal key that starts with `$` goes under `$exact`)",
            "plain/$max: `$max` takes a number, found []",
        ],
    );
    check_errors(
        r#"{"$":2,"$é":1}"#,
        &[
            "$: unknown operator `$` (the operators are `$exact`, `$contains`, `$match`, `$oneOf`, `$type`, `$exists`, `$approx`, `$min`, `$max`, `$unordered`, `$schema`, `$not`; a literal key that starts with `$` goes under `$exact`)",
            "$é: unknown operator `$é` (the operators are `$exact`, `$contains`, `$match`, `$oneOf`, `$type`, `$exists`, `$approx`, `$min`, `$max`, `$unordered`, `$schema`, `$not`; a literal key that starts with `$` goes under `$exact`)",
        ],
    );
}

#[test]
fn operators_do_not_mix_with_plain_keys() {
    check_errors(
        r#"{"x":{"$min":1,"a":2}}"#,
        &[
            "x/$min: `$min` and the plain key `a` can't be mixed in one object (to require both, match `a` separately; a literal key that starts with `$` goes under `$exact`)",
        ],
    );
}

#[test]
fn a_matcher_that_no_object_can_match_is_detected() {
    for never in [
        "1",
        "\"x\"",
        "null",
        "[]",
        r#"{"$match":"x"}"#,
        r#"{"$min":1}"#,
        r#"{"$max":1}"#,
        r#"{"$contains":"x"}"#,
        r#"{"$contains":{}}"#,
        r#"{"$type":"string"}"#,
        r#"{"$exact":1}"#,
        r#"{"$oneOf":[1,[]]}"#,
        r#"{"$unordered":[]}"#,
        r#"{"$approx":{"value":1,"tolerance":1}}"#,
        r#"{"$exists":false}"#,
        r#"{"$not":{}}"#,
        r#"{"$not":{"$type":"object"}}"#,
        r#"{"$not":{"$not":1}}"#,
        r#"{"$schema":{"type":"string"}}"#,
        r#"{"$schema":false}"#,
        r#"{"$type":"object","$match":"x"}"#,
    ] {
        assert!(!compile(&parse(never)).can_match_object(), "{never}");
    }
    for perhaps in [
        "{}",
        r#"{"a":1}"#,
        r#"{"$exact":{}}"#,
        r#"{"$oneOf":[1,{}]}"#,
        r#"{"$exists":true}"#,
        r#"{"$type":["string","object"]}"#,
        r#"{"$not":1}"#,
        r#"{"$not":{"a":1}}"#,
        r#"{"$schema":{}}"#,
        r#"{"$schema":{"type":["object","null"]}}"#,
    ] {
        assert!(compile(&parse(perhaps)).can_match_object(), "{perhaps}");
    }
}

#[test]
fn a_matcher_that_no_value_can_match_is_detected() {
    for never in [
        r#"{"$schema":false}"#,
        r#"{"a":{"$schema":false}}"#,
        r#"{"a":[{"b":{"$schema":false}}]}"#,
        r#"{"a":{"$schema":{"enum":[]}}}"#,
        r#"{"a":{"$schema":{"type":"number","minimum":2,"maximum":1}}}"#,
        r#"{"a":{"$schema":{"not":{}}}}"#,
        r#"{"a":{"$schema":{"allOf":[{"type":"string"},{"type":"null"}]}}}"#,
        r#"{"a":{"$schema":{"type":"object","required":["b"],"properties":{"b":false}}}}"#,
        r#"{"a":{"$type":"string","$min":1}}"#,
        r#"{"a":{"$exists":false,"$match":"x"}}"#,
        r#"{"a":{"$exact":"b","$match":"c"}}"#,
        r#"{"a":{"$oneOf":[1,2],"$min":3}}"#,
        r#"{"a":{"$oneOf":[{"$schema":false}]}}"#,
        r#"{"a":{"$contains":{"$schema":false}}}"#,
        r#"{"a":{"$unordered":[{"$exists":false}]}}"#,
        r#"{"a":{"$not":{"$oneOf":[{"$exists":true},{"$exists":false}]}}}"#,
    ] {
        assert!(!compile(&parse(never)).can_match(), "{never}");
    }
    for perhaps in [
        "{}",
        r#"{"a":{"$exists":false}}"#,
        r#"{"a":{"$not":{"$schema":false}}}"#,
        r#"{"a":{"$schema":{"minimum":2,"maximum":1}}}"#,
        r#"{"a":{"$oneOf":[1,2],"$min":2}}"#,
        r#"{"a":{"$contains":"x","$type":"string"}}"#,
        r#"{"a":{"$min":1,"$max":1}}"#,
    ] {
        assert!(compile(&parse(perhaps)).can_match(), "{perhaps}");
    }
}

#[test]
fn a_keyword_that_json_schema_does_not_have_is_an_error() {
    let errors = |schema: &str| {
        let written = parse(&format!(r#"{{"a":{{"$schema":{schema}}}}}"#));
        Matcher::compile(&written).err().map(|errors| {
            let error = &errors[0];
            let path: Vec<String> = error.path.iter().map(|step| format!("{step:?}")).collect();
            (path.len(), error.message.clone(), error.hint.clone())
        })
    };
    let unknown = |depth: usize, key: &str, hint: &str| {
        let message = format!("unknown JSON Schema keyword `{key}`");
        Some((depth, message, Some(hint.to_owned())))
    };
    assert_eq!(
        errors(r#"{"typ":"string"}"#),
        unknown(3, "typ", "did you mean `type`?")
    );
    assert_eq!(
        errors(r#"{"properties":{"typ":{"minumum":1}}}"#),
        unknown(5, "minumum", "did you mean `minimum`?")
    );
    assert_eq!(
        errors(r#"{"allOf":[{"not":{"patern":"x"}}]}"#),
        unknown(6, "patern", "did you mean `pattern`?")
    );
    for known in [
        r#"{"title":"t","x-note":1,"type":"string","enum":["a"],"default":{"typ":1}}"#,
        r##"{"$defs":{"typ":{"const":{"typ":1}}},"$ref":"#/$defs/typ","examples":[{"typ":1}]}"##,
        r#"{"items":[{"type":"string"}],"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}"#,
    ] {
        assert_eq!(errors(known), None, "{known}");
    }
}

#[test]
fn matchers_are_equal_as_they_are_written() {
    assert_eq!(
        compile(&json!({"$min": 1})),
        compile(&parse(r#"{"$min":1.0}"#))
    );
    assert_ne!(compile(&json!({"$min": 1})), compile(&json!({"$max": 1})));
    assert_eq!(compile(&json!({"a": 1})).written(), &json!({"a": 1}));
}

#[test]
fn the_nearest_miss_has_the_least_distance() {
    let matcher = compile(&json!({"a": 1, "b": [1, 2], "c": {"d": 1}}));
    let distance = |value: Value| matcher.distance(Some(&value));
    assert_eq!(distance(json!({"a": 1, "b": [1, 2], "c": {"d": 2}})), 1);
    assert_eq!(distance(json!({"a": 2, "b": [1], "c": {"d": 2}})), 3);
    assert!(distance(json!({})) > 3 && matcher.distance(None) > distance(json!({})));
}

#[test]
fn a_mismatch_can_be_seen_from_outside() {
    let under = |path: &str| {
        let mismatch = ValueMismatch {
            path: path.to_owned(),
            reason: "no".to_owned(),
        };
        mismatch.under("arguments").to_string()
    };
    assert_eq!(under(""), "`arguments`: no");
    assert_eq!(under("a.b"), "`arguments.a.b`: no");
    assert_eq!(under("[1].b"), "`arguments[1].b`: no");
}

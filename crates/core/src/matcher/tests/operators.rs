//! Every operator: what it matches, what it does not and why, and how it is misspelled.

use serde_json::json;

use super::super::{Matcher, PathStep};
use super::{check_absent, check_errors, check_match, check_mismatch, compile, parse};

#[test]
fn exact_is_a_literal() {
    check_match(r#"{"$exact":{"$min":1,"a":[]}}"#, r#"{"a":[],"$min":1.0}"#);
    check_mismatch(
        r#"{"$exact":{"a":1}}"#,
        r#"{"a":1,"b":2}"#,
        r#"expected {"a":1}, found {"a":1,"b":2}"#,
    );
    check_absent(r#"{"$exact":null}"#, Err("expected null, found nothing"));
}

#[test]
fn contains_looks_into_strings_and_arrays() {
    check_match(r#"{"$contains":"ell"}"#, "\"hello\"");
    check_match(r#"{"$contains":"a"}"#, r#"["b","a"]"#);
    check_match(r#"{"$contains":{"a":1}}"#, r#"[{},{"a":1,"b":2}]"#);
    check_match(r#"{"$contains":{"$min":3}}"#, "[1,5]");
    check_mismatch(
        r#"{"$contains":"x"}"#,
        "\"hello\"",
        "expected something that contains \"x\", found \"hello\"",
    );
    check_mismatch(
        r#"{"$contains":"ell"}"#,
        r#"["hello"]"#,
        "expected something that contains \"ell\", found [\"hello\"]",
    );
    check_mismatch(
        r#"{"$contains":1}"#,
        "\"1\"",
        "expected an array with an element that matches 1, found \"1\"",
    );
    check_mismatch(
        r#"{"$contains":"a"}"#,
        r#"{"a":1}"#,
        r#"expected something that contains "a", found {"a":1}"#,
    );
    check_absent(
        r#"{"$contains":1}"#,
        Err("expected an array with an element that matches 1, found nothing"),
    );
    check_errors(
        r#"{"$contains":{"$min":"x"}}"#,
        &["$contains/$min: `$min` takes a number, found \"x\""],
    );
}

#[test]
fn match_is_a_pattern_on_a_string() {
    check_match(r#"{"$match":"^a.c$"}"#, "\"abc\"");
    check_mismatch(
        r#"{"$match":"^b"}"#,
        "\"abc\"",
        "expected a string that matches `^b`, found \"abc\"",
    );
    check_mismatch(
        r#"{"$match":"1"}"#,
        "1",
        "expected a string that matches `1`, found 1",
    );
    check_absent(
        r#"{"$match":"x"}"#,
        Err("expected a string that matches `x`, found nothing"),
    );
    for vacuous in ["", ".*", "(?i)^"] {
        check_errors(
            &format!(r#"{{"$match":"{vacuous}"}}"#),
            &[&format!(
                "$match: `{vacuous}` matches every string (use `.+` to require a non-empty string, or \
                 `$type: string` for any string)"
            )],
        );
    }
    check_errors(
        r#"{"a":{"$contains":{"b":{"$contains":""}}}}"#,
        &[
            "a/$contains/b/$contains: every string contains the empty string (for a list with an \
           empty string, use `$contains: {$exact: \"\"}`)",
        ],
    );
    check_match(r#"{"$contains":{"$exact":""}}"#, r#"["a",""]"#);
    check_errors(
        r#"{"a":{"$match":"("}}"#,
        &["a/$match: invalid regular expression `(`: unclosed group"],
    );
    check_errors(
        r#"{"$match":1}"#,
        &["$match: `$match` takes a pattern, found 1"],
    );
}

#[test]
fn one_of_takes_any_alternative() {
    check_match(r#"{"$oneOf":[1,{"$type":"string"}]}"#, "\"x\"");
    check_match(r#"{"a":{"$oneOf":[1,{"$exists":false}]}}"#, "{}");
    check_mismatch(
        r#"{"$oneOf":[1,{"a":2}]}"#,
        "3",
        r#"expected one of 1, {"a":2}; found 3"#,
    );
    check_absent(r#"{"$oneOf":[1]}"#, Err("expected one of 1; found nothing"));
    check_errors(
        r#"{"$oneOf":[]}"#,
        &["$oneOf: `$oneOf` takes a list of at least one matcher, found []"],
    );
    check_errors(
        r#"{"$oneOf":[1,{"$min":null}]}"#,
        &["$oneOf/1/$min: `$min` takes a number, found null"],
    );
}

#[test]
fn type_names_json_types() {
    check_match(r#"{"$type":"integer"}"#, "1.0");
    check_match(r#"{"$type":"number"}"#, "1.5");
    check_match(r#"{"$type":["string","null"]}"#, "null");
    check_match(r#"{"$type":"boolean"}"#, "true");
    check_match(r#"{"$type":"object"}"#, "{}");
    check_match(r#"{"$type":"array"}"#, "[]");
    check_mismatch(
        r#"{"$type":"integer"}"#,
        "1.5",
        "expected type integer, found 1.5",
    );
    check_mismatch(
        r#"{"$type":["string","null"]}"#,
        "1",
        "expected type string or null, found 1",
    );
    check_absent(
        r#"{"$type":"null"}"#,
        Err("expected type null, found nothing"),
    );
    let all =
        "`string`, `number`, `integer`, `boolean`, `object`, `array`, `null` or a list of these";
    check_errors(
        r#"{"$type":["string","int"]}"#,
        &[&format!("$type/1: `$type` takes {all}, found \"int\"")],
    );
    check_errors(
        r#"{"$type":[]}"#,
        &[&format!("$type: `$type` takes {all}, found []")],
    );
}

#[test]
fn exists_distinguishes_absent_from_null() {
    check_match(r#"{"a":{"$exists":true}}"#, r#"{"a":null}"#);
    check_match(r#"{"a":{"$exists":false}}"#, "{}");
    check_mismatch(
        r#"{"a":{"$exists":true}}"#,
        "{}",
        "`a`: expected a value, found nothing",
    );
    check_mismatch(
        r#"{"a":{"$exists":false}}"#,
        r#"{"a":null}"#,
        "`a`: expected nothing, found null",
    );
    check_errors(
        r#"{"$exists":"yes"}"#,
        &["$exists: `$exists` takes true or false, found \"yes\""],
    );
}

#[test]
fn approx_is_a_closed_interval() {
    check_match(r#"{"$approx":{"value":0.3,"tolerance":0.1}}"#, "0.4");
    check_mismatch(
        r#"{"$approx":{"value":0.3,"tolerance":0.1}}"#,
        "0.41",
        "expected 0.3 ± 0.1, found 0.41",
    );
    check_mismatch(
        r#"{"$approx":{"value":1,"tolerance":0}}"#,
        "\"1\"",
        "expected 1 ± 0, found \"1\"",
    );
    check_absent(
        r#"{"$approx":{"value":1,"tolerance":0}}"#,
        Err("expected 1 ± 0, found nothing"),
    );
    check_errors(
        r#"{"$approx":1}"#,
        &["$approx: `$approx` takes `value` and `tolerance`, found 1"],
    );
    check_errors(
        r#"{"$approx":{"value":"1","within":2}}"#,
        &[
            "$approx/within: `$approx` has no key `within` (its keys are `value` and `tolerance`)",
            "$approx/value: `value` takes a number, found \"1\"",
            "$approx: `$approx` needs a `tolerance`",
        ],
    );
    check_errors(
        r#"{"$approx":{"value":1,"tolerance":-0.1}}"#,
        &["$approx/tolerance: the tolerance -0.1 is below 0"],
    );
}

#[test]
fn bounds_are_inclusive() {
    check_match(r#"{"$min":1,"$max":1}"#, "1.0");
    check_match(r#"{"$min":18446744073709551617}"#, "18446744073709551617");
    check_mismatch(
        r#"{"$min":18446744073709551617}"#,
        "18446744073709551616",
        "expected a number of at least 18446744073709551617, found 18446744073709551616",
    );
    check_mismatch(
        r#"{"$min":1,"$max":3}"#,
        "4",
        "expected a number of at most 3, found 4",
    );
    check_mismatch(
        r#"{"$max":3}"#,
        "\"1\"",
        "expected a number of at most 3, found \"1\"",
    );
    check_absent(
        r#"{"$min":1}"#,
        Err("expected a number of at least 1, found nothing"),
    );
    check_errors(
        r#"{"a":[{"$max":1,"$min":2}]}"#,
        &["a/0/$min: `$min` 2 is above `$max` 1: nothing can match"],
    );
    check_errors(
        r#"{"$max":"3"}"#,
        &["$max: `$max` takes a number, found \"3\""],
    );
}

#[test]
fn unordered_matches_one_to_one() {
    let either_then_one = r#"{"$unordered":[{"$oneOf":[1,2]},1]}"#;
    check_match(either_then_one, "[1,2]");
    check_match(either_then_one, "[2,1]");
    check_match(r#"{"$unordered":[]}"#, "[]");
    check_mismatch(
        either_then_one,
        "[2,2]",
        "expected, in any order, an element that matches 1; unmatched: 2",
    );
    check_mismatch(either_then_one, "[1]", "expected 2 elements, found 1");
    check_mismatch(either_then_one, "1", "expected an array, found 1");
    check_absent(either_then_one, Err("expected an array, found nothing"));
    check_errors(
        r#"{"$unordered":1}"#,
        &["$unordered: `$unordered` takes a list of matchers, found 1"],
    );
}

#[test]
fn schema_is_json_schema() {
    check_match(
        r#"{"$schema":{"type":"object","required":["a"]}}"#,
        r#"{"a":1}"#,
    );
    check_match(
        r##"{"$schema":{"$ref":"#/$defs/x","$defs":{"x":{"type":"integer"}}}}"##,
        "1.0",
    );
    check_match(
        r#"{"$schema":{"prefixItems":[{"type":"string"}]}}"#,
        r#"["a",1]"#,
    );
    check_match(
        r#"{"$schema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"null"}}"#,
        "null",
    );
    check_mismatch(
        r#"{"r":{"$schema":{"properties":{"a":{"items":{"type":"string"}}}}}}"#,
        r#"{"r":{"a":["x",1]}}"#,
        "`r.a[1]`: does not match the schema: 1 is not of type \"string\"",
    );
    check_absent(
        r#"{"$schema":true}"#,
        Err("expected a value that matches the schema, found nothing"),
    );
    check_errors(
        r#"{"$schema":1}"#,
        &["$schema: `$schema` takes a JSON Schema, found 1"],
    );
    check_errors(
        r#"{"a":{"$schema":{"properties":{"x":{"type":"text"}}}}}"#,
        &[
            "a/$schema/properties/x/type: invalid JSON Schema: \"text\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        ],
    );
}

#[test]
fn a_schema_fetches_nothing() {
    for reference in [
        "https://example.com/a.json",
        "file:///etc/passwd",
        "other.json",
    ] {
        let errors = Matcher::compile(&json!({"$schema": {"$ref": reference}})).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].path, [PathStep::Key("$schema".to_owned())]);
        assert_eq!(
            errors[0].hint.as_deref(),
            Some("references must stay inside the schema: Proctor fetches none")
        );
    }
    let foreign = json!({"$schema": {"$schema": "https://example.com/meta"}});
    assert!(Matcher::compile(&foreign).is_err());
}

#[test]
fn a_schema_survives_numbers_of_any_size() {
    for schema in [
        r#"{"type":"integer"}"#,
        r#"{"minimum":0}"#,
        r#"{"maximum":1e999999999}"#,
        r#"{"multipleOf":1}"#,
        r#"{"const":1e999999999}"#,
        r#"{"uniqueItems":true}"#,
    ] {
        let matcher = compile(&parse(&format!(r#"{{"$schema":{schema}}}"#)));
        for value in [
            "1e999999999",
            "-1e-999999999",
            "18446744073709551617",
            "[1,1e999999999]",
        ] {
            let _ = matcher.evaluate(Some(&parse(value)));
        }
    }
}

#[test]
fn not_turns_a_match_around() {
    check_match(r#"{"$not":1}"#, "2");
    check_match(r#"{"a":{"$not":1}}"#, "{}");
    check_mismatch(
        r#"{"$not":{"a":1}}"#,
        r#"{"a":1,"b":2}"#,
        r#"expected anything but {"a":1}, found {"a":1,"b":2}"#,
    );
    check_absent(
        r#"{"$not":{"$exists":false}}"#,
        Err(r#"expected anything but {"$exists":false}, found nothing"#),
    );
    check_errors(
        r#"{"$not":{"$mn":1}}"#,
        &[
            "$not/$mn: unknown operator `$mn` (did you mean `$min`? a literal key that starts with `$` goes under `$exact`)",
        ],
    );
}

#[test]
fn operators_of_one_object_must_all_hold() {
    check_match(r#"{"$type":"string","$match":"^a","$not":"ab"}"#, "\"ac\"");
    check_mismatch(
        r#"{"$type":"string","$match":"^a","$not":"ab"}"#,
        "\"ab\"",
        "expected anything but \"ab\", found \"ab\"",
    );
}

#[test]
fn a_schema_compares_large_numbers_exactly() {
    check_mismatch(
        r#"{"$schema":{"const":18446744073709551617}}"#,
        "18446744073709551616",
        "does not match the schema: 18446744073709551617 was expected",
    );
    check_mismatch(
        r#"{"$schema":{"minimum":18446744073709551617}}"#,
        "18446744073709551616",
        "does not match the schema: 18446744073709551616 is less than the minimum of 18446744073709551617",
    );
}

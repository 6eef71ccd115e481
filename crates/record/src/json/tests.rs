//! JSON by value, against arithmetic that is known to be right.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn number(text: &str) -> Number {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn check_equal(a: &str, b: &str, expected: bool) {
    let (a, b) = (parse(a), parse(b));
    assert_eq!(equal(&a, &b), expected, "{a} and {b}");
    assert_eq!(canonical(&a) == canonical(&b), expected, "{a} and {b}");
}

#[test]
fn a_compact_value_is_spelled_the_same() {
    for text in [
        "null",
        "[]",
        "{}",
        r#"{"b":1.0,"a":[{"z":"é","y":[1e0,-0]},[],{}],"":false}"#,
    ] {
        let value = parse(text);
        assert_eq!(compact(value.clone()).to_string(), value.to_string());
    }
}

#[test]
fn numbers_are_equal_by_value() {
    for same in ["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000e00"] {
        check_equal("1", same, true);
    }
    check_equal("0", "-0.0", true);
    check_equal("0", "0e999999999999999999999999999999999999999999", true);
    check_equal("-1", "1", false);
    check_equal("9007199254740993", "9007199254740992", false);
    check_equal("18446744073709551617", "18446744073709551616", false);
    check_equal("18446744073709551617.0", "18446744073709551617", true);
    check_equal("1e999999999", "10e999999998", true);
    check_equal("1e999999999", "1e999999998", false);
    check_equal("1e-999999999", "0", false);
    check_equal("0.1", "0.10000000000000000001", false);
}

#[test]
fn values_are_equal_whatever_the_key_order() {
    check_equal(r#"{"a":1,"b":[1,2]}"#, r#"{"b":[1.0,2e0],"a":1}"#, true);
    check_equal(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false);
    check_equal("[1,2]", "[2,1]", false);
    check_equal("[[1],2]", "[[1,2]]", false);
    check_equal("1", r#""1""#, false);
    check_equal("null", "false", false);
    check_equal("{}", "[]", false);
}

#[test]
fn numbers_are_ordered_by_value() {
    let ascending = [
        "-1e999999999999999999999999999999999999999999",
        "-1e400",
        "-18446744073709551617",
        "-1.5",
        "-1e-400",
        "0",
        "1e-400",
        "0.099",
        "0.1",
        "1",
        "1.0000000000000000000001",
        "9",
        "10",
        "9007199254740992",
        "9007199254740993",
        "1e400",
        "1e999999999999999999999999999999999999999999",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(
                compare_numbers(&number(a), &number(b)),
                i.cmp(&j),
                "{a} and {b}"
            );
        }
    }
}

#[test]
fn a_distance_is_exact() {
    let check = |actual, value, tolerance, expected| {
        assert_eq!(
            within(&number(actual), &number(value), &number(tolerance)),
            expected,
            "{actual} within {tolerance} of {value}"
        );
    };
    check("0.4", "0.3", "0.1", true);
    check("0.2", "0.3", "0.1", true);
    check("0.40000000000000000001", "0.3", "0.1", false);
    check("-0.05", "0.05", "0.1", true);
    check("-0.06", "0.05", "0.1", false);
    check("5", "5.0", "0", true);
    check("5", "6", "0", false);
    check("99", "1", "98", true);
    check("-99", "1", "100", true);
    check("18446744073709551617", "18446744073709551616", "1", true);
    check("18446744073709551618", "18446744073709551616", "1", false);
    check("1e999999999", "1e999999999", "0", true);
    check("1e999999999", "2e999999999", "1e999999999", true);
    check("1e999999999", "1", "5", false);
    check("1e-999999999", "0", "1e-5", true);
    check("1", "1", "-1", false);
    check("1", "2", "-1", false);
}

#[test]
fn an_integer_is_one_by_value() {
    for yes in ["0", "1", "1.0", "-3e2", "1.5e1", "1e999999999", "0.0"] {
        assert!(is_integer(&number(yes)), "{yes}");
    }
    for no in ["0.5", "1.5", "15e-1", "1e-999999999"] {
        assert!(!is_integer(&number(no)), "{no}");
    }
}

#[test]
fn a_brief_is_cut_between_characters() {
    assert_eq!(brief(&json!({"a": [1, "b"]})), r#"{"a":[1,"b"]}"#);
    let cut = brief(&json!("é".repeat(500)));
    assert_eq!(cut.chars().count(), BRIEF_CHARS + 1);
    assert!(cut.starts_with("\"éé") && cut.ends_with("é…"));
}

#[test]
fn long_strings_are_shown_where_they_differ() {
    let (a, b) = brief_pair(
        &json!(format!("{}one", "é".repeat(500))),
        &json!(format!("{}two", "é".repeat(500))),
    );
    assert_eq!(a, format!("…\"{}one\"", "é".repeat(SHARED_CHARS)));
    assert_eq!(b, format!("…\"{}two\"", "é".repeat(SHARED_CHARS)));
    let (a, b) = brief_pair(&json!("aa"), &json!("ab"));
    assert_eq!((a.as_str(), b.as_str()), ("\"aa\"", "\"ab\""));
}

/// Numbers that often meet: few digits, small exponents, several spellings.
fn any_number() -> impl Strategy<Value = String> {
    prop_oneof![
        (-20_i64..20).prop_map(|n| n.to_string()),
        (-20_i64..20, -3_i32..3).prop_map(|(n, e)| format!("{n}e{e}")),
        (-9_i64..9, 0_u32..100).prop_map(|(n, f)| format!("{n}.{f:02}")),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any_number().prop_map(|text| parse(&text)),
        "[a-c\"]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same number in hundred-thousandths: every generated one is a whole number of these.
fn scaled(text: &str) -> i64 {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i64 = format!("{whole}{fraction}").parse().unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let places = exponent - i32::try_from(fraction.len()).unwrap() + 5;
    digits * 10_i64.pow(places.try_into().unwrap())
}

proptest! {
    #[test]
    fn equality_is_an_equivalence_that_canonical_text_agrees_with(
        a in any_value(), b in any_value(), c in any_value(),
    ) {
        prop_assert!(equal(&a, &a));
        prop_assert_eq!(equal(&a, &b), equal(&b, &a));
        if equal(&a, &b) && equal(&b, &c) {
            prop_assert!(equal(&a, &c));
        }
        prop_assert_eq!(equal(&a, &b), canonical(&a) == canonical(&b));
    }

    #[test]
    fn order_and_distance_agree_with_whole_numbers(
        a in any_number(), b in any_number(), tolerance in any_number(),
    ) {
        let [x, y, limit] = [&a, &b, &tolerance].map(|text| scaled(text));
        let [a, b, tolerance] = [&a, &b, &tolerance].map(|text| number(text));
        prop_assert_eq!(compare_numbers(&a, &b), x.cmp(&y));
        prop_assert_eq!(equal(&Value::Number(a.clone()), &Value::Number(b.clone())), x == y);
        prop_assert_eq!(within(&a, &b, &tolerance), (x - y).abs() <= limit);
        prop_assert_eq!(is_integer(&a), x % 100_000 == 0);
    }

    #[test]
    fn no_number_panics(
        a in r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,45})?",
        b in r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,45})?",
    ) {
        let (a, b) = (number(&a), number(&b));
        prop_assert_eq!(compare_numbers(&a, &b), compare_numbers(&b, &a).reverse());
        within(&a, &b, &a);
    }
}

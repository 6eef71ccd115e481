//! Comparison with reference values that scipy, statsmodels and scikit-learn computed.

mod comparisons;
mod intervals;
mod rates;
mod sequential;

use serde_json::Value;

/// A group of reference values.
fn golden(group: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("../../tests/statistics.json")).unwrap();
    let group = all[group].clone();
    assert!(!group.is_null());
    group
}

/// The entries of a group, of which there must be some.
fn entries(group: &Value) -> &Vec<Value> {
    let entries = group.as_array().unwrap();
    assert!(!entries.is_empty());
    entries
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn count(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// Compares to 1e-8, or to the digits of the reference value where those are fewer.
#[track_caller]
fn near(found: f64, expected: &Value) {
    let text = expected.to_string();
    let is_short = !text.contains('e') && text.contains('.');
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let digits = i32::try_from(digits).unwrap();
    let given = if is_short && digits < 8 && digits > 3 {
        0.500_001 * 10.0_f64.powi(-digits)
    } else {
        0.0
    };
    let expected = number(expected);
    let tolerance = f64::max(1e-8, given);
    assert!(
        (found - expected).abs() <= tolerance,
        "found {found}, expected {expected} within {tolerance:e}"
    );
}

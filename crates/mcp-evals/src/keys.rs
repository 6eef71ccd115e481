//! The known keys of evals. Other keys are kept and have no effect, except where a key could change what is
//! tested: inside `expected` and `grading`.

use serde_json::Value;

use crate::eval::Eval;
use crate::expected::Expected;
use crate::fields::below;

/// The keys of an eval. `_meta` is allowed everywhere.
pub const EVAL_KEYS: &[&str] = &[
    "id",
    "name",
    "description",
    "gradingType",
    "input",
    "expected",
    "_meta",
];

/// The keys of `input`, by its `type`; empty for an unknown type.
pub fn input_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "invocation" => &["type", "messages", "_meta"],
        "execution" => &["type", "toolName", "arguments", "_meta"],
        "scenario" => &["type", "messages", "maxTurns", "_meta"],
        _ => &[],
    }
}

/// The keys of `expected`, by its `type`; empty for an unknown type.
pub fn expected_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "exact-match" => &["type", "toolName", "arguments", "content", "_meta"],
        "llm-as-judge" => &["type", "rubric", "_meta"],
        _ => &[],
    }
}

/// The unknown keys of an eval that could change what is tested, as JSON pointers.
pub(crate) fn deciding_unknown(eval: &Eval) -> Vec<String> {
    let extra = match &eval.expected {
        Expected::ExactMatch(expected) => Some(&expected.extra),
        Expected::LlmJudge(expected) => Some(&expected.extra),
        Expected::Other(_) => None,
    };
    let expected = extra.into_iter().flat_map(|extra| extra.keys());
    let mut found: Vec<String> = expected
        .filter(|key| *key != "_meta")
        .map(|key| below("/expected", key))
        .collect();
    match eval.extra.get("grading") {
        None | Some(Value::Null) => {}
        Some(Value::Object(grading)) => {
            found.extend(grading.keys().map(|key| below("/grading", key)));
        }
        Some(_) => found.push("/grading".to_owned()),
    }
    found
}

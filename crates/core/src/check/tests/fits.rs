//! Matching of calls and entries: arguments, results, errors, durations.

use super::*;

/// The verdict of `toolsUsed` with one entry on one call.
#[track_caller]
fn check_fit(entry: ToolMatcher, call: &Call, expected: &str) {
    let label = entry.to_string();
    let result = Check::ToolsUsed(vec![entry]).evaluate(&transcript(vec![call.clone()]));
    let found = match result.verdict {
        Verdict::Pass => "yes".to_owned(),
        Verdict::Fail { reason } => reason.replace(
            &format!("{label}: no call matches; nearest is call #1: "),
            "no: ",
        ),
        Verdict::Unknown { reason } => {
            reason.replace(&format!("{label}: call #1 may match, but "), "maybe: ")
        }
    };
    assert_eq!(found, expected);
}

fn matcher(written: &Value) -> Matcher {
    Matcher::compile(written).unwrap()
}

fn answered(answer: CallOutcome) -> Call {
    Call {
        answer,
        ..tool_call(1, "a", Payload::Absent)
    }
}

fn result(value: Value) -> Call {
    answered(CallOutcome::Result(Payload::Value(value)))
}

fn refused() -> Call {
    answered(CallOutcome::Error {
        code: -32602,
        message: "bad path".to_owned(),
    })
}

#[test]
fn absent_arguments_are_an_empty_object() {
    let asks = |written| ToolMatcher {
        arguments: Some(matcher(&written)),
        ..entry("a")
    };
    let call = tool_call(1, "a", Payload::Absent);
    check_fit(asks(json!({})), &call, "yes");
    check_fit(asks(json!({"x": {"$exists": false}})), &call, "yes");
    check_fit(
        asks(json!({"x": 1})),
        &call,
        "no: `arguments.x`: expected 1, found nothing",
    );
    check_fit(
        asks(json!({})),
        &tool_call(1, "a", CUT),
        "maybe: its arguments (9 bytes) can't be read: truncated in the record",
    );
    check_fit(
        asks(json!([1])),
        &call,
        "no: `arguments`: expected an array, found {}",
    );
}

#[test]
fn a_result_is_read_as_a_whole() {
    let asks = |written| ToolMatcher {
        result: Some(matcher(&written)),
        ..entry("a")
    };
    let wanted = json!({"structuredContent": {"n": 1}});
    check_fit(
        asks(wanted.clone()),
        &result(json!({"content": [], "structuredContent": {"n": 1.0}})),
        "yes",
    );
    check_fit(
        asks(wanted.clone()),
        &result(json!({"structuredContent": {"n": 2}})),
        "no: `result.structuredContent.n`: expected 1, found 2",
    );
    check_fit(
        asks(wanted.clone()),
        &refused(),
        "no: answered with error -32602: bad path",
    );
    check_fit(
        asks(json!({"$exists": false})),
        &answered(CallOutcome::None),
        "no: got no response",
    );
    check_fit(
        asks(wanted.clone()),
        &answered(CallOutcome::Result(CUT)),
        "maybe: its result (9 bytes) can't be read: truncated in the record",
    );
    check_fit(
        asks(wanted),
        &answered(CallOutcome::Result(Payload::Absent)),
        "no: `result`: expected an object, found nothing",
    );
}

#[test]
fn an_error_is_of_the_tool_or_of_the_protocol() {
    let error = || ToolMatcher {
        is_error: Some(true),
        ..entry("a")
    };
    let fine = || ToolMatcher {
        is_error: Some(false),
        ..entry("a")
    };
    check_fit(error(), &result(json!({"isError": true})), "yes");
    check_fit(
        fine(),
        &result(json!({"isError": true})),
        "no: ended in an error",
    );
    check_fit(error(), &result(json!({})), "no: ended without an error");
    check_fit(fine(), &result(json!({})), "yes");
    check_fit(error(), &refused(), "yes");
    check_fit(
        fine(),
        &refused(),
        "no: answered with error -32602: bad path",
    );
    for entry in [error, fine] as [fn() -> ToolMatcher; 2] {
        check_fit(entry(), &answered(CallOutcome::None), "no: got no response");
        check_fit(
            entry(),
            &result(json!([])),
            "maybe: its result is not an object",
        );
        check_fit(
            entry(),
            &result(json!({"isError": 1})),
            "maybe: its `isError` is neither true nor false",
        );
        check_fit(
            entry(),
            &answered(CallOutcome::Result(CUT)),
            "maybe: its result (9 bytes) can't be read: truncated in the record",
        );
    }
}

#[test]
fn a_duration_may_reach_its_limit() {
    let asks = |millis| ToolMatcher {
        max_duration: Some(Duration::from_millis(millis)),
        ..entry("a")
    };
    let call = tool_call(1, "a", Payload::Absent);
    check_fit(asks(10), &call, "yes");
    check_fit(asks(9), &call, "no: took 10ms, more than 9ms");
    check_fit(
        asks(10),
        &answered(CallOutcome::None),
        "no: got no response",
    );
    check_fit(asks(10), &refused(), "yes");
    check_fit(
        asks(10),
        &Call {
            duration: None,
            ..call
        },
        "maybe: its duration was not measured",
    );
}

#[test]
fn a_certain_miss_outweighs_a_doubt() {
    let asks = ToolMatcher {
        is_error: Some(true),
        ..with_x("a", 1)
    };
    check_fit(asks, &tool_call(1, "a", CUT), "no: ended without an error");
}

#[test]
fn half_a_surrogate_pair_is_unknown_only_to_checks_that_look_at_it() {
    let written = r#"{"content":[{"type":"text","text":"a\ud800b"}],"isError":false,"structuredContent":{"n":3,"who":"me"}}"#;
    let call = result(proctor_record::json::decode(written).unwrap());
    let with = |written: Value| ToolMatcher {
        result: Some(matcher(&written)),
        ..entry("a")
    };
    let why = "a text in its result is not valid Unicode (half of a surrogate pair)";
    let unknown = &*format!("maybe: {why}");
    for (written, expected) in [
        (json!({"structuredContent": {"n": 3}}), "yes"),
        (
            json!({"structuredContent": {"who": {"$match": "^m"}}}),
            "yes",
        ),
        (json!({"isError": false}), "yes"),
        (json!({"content": {"$type": "array"}}), "yes"),
        (json!({"content": [{"type": "text"}]}), "yes"),
        (json!({"content": {"$contains": {"type": "text"}}}), "yes"),
        (json!({"content": [{"text": {"$contains": "a"}}]}), unknown),
        (json!({"content": [{"text": {"$not": "a"}}]}), unknown),
        (json!({"content": {"$contains": {"text": "ab"}}}), unknown),
        (
            json!({"content": {"$unordered": [{"text": "ab"}]}}),
            unknown,
        ),
        (
            json!({"content": [{"text": {"$oneOf": ["ab", 1]}}]}),
            unknown,
        ),
        (json!({"$schema": {"type": "object"}}), unknown),
    ] {
        check_fit(with(written), &call, expected);
    }
    // Whatever the text is, the call does not fit.
    let elsewhere = ToolMatcher {
        is_error: Some(true),
        ..with(json!({"content": [{"text": "ab"}]}))
    };
    check_fit(elsewhere, &call, "no: ended without an error");
}

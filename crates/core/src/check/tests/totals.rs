//! Checks on the number of calls and on repeated calls.

use super::*;

#[test]
fn tool_calls_are_counted() {
    let made = transcript(vec![
        called(1, "a", 1),
        read(2, "u"),
        called(3, "a", 2),
        prompted(4, "p"),
    ]);
    check_pass(&Check::MinToolCalls(2), &made, &[1, 3]);
    check_pass(&Check::MinToolCalls(1), &made, &[1]);
    check_fail(
        &Check::MinToolCalls(3),
        &made,
        "expected at least 3 tool calls, found 2; called: `fs` `a` ×2",
        &[1, 3],
    );
    check_fail(
        &Check::MinToolCalls(1),
        &transcript(vec![read(1, "u")]),
        "expected at least 1 tool call, found 0; no tool was called",
        &[],
    );
    check_pass(&Check::MaxToolCalls(2), &made, &[1, 3]);
    check_fail(
        &Check::MaxToolCalls(1),
        &made,
        "expected at most 1 tool call, found 2; called: `fs` `a` ×2",
        &[3],
    );
}

#[test]
fn a_call_is_repeated_if_its_arguments_are_the_same_value() {
    let spelled = |seq, text: &str| {
        tool_call(
            seq,
            "a",
            Payload::Value(serde_json::from_str(text).unwrap()),
        )
    };
    let other_server = Call {
        server: "web".to_owned(),
        ..called(4, "a", 1)
    };
    check_pass(
        &Check::NoDuplicateCalls,
        &transcript(vec![
            called(1, "a", 1),
            called(2, "a", 2),
            called(3, "b", 1),
            other_server,
        ]),
        &[1, 2, 3, 4],
    );
    check_fail(
        &Check::NoDuplicateCalls,
        &transcript(vec![
            spelled(1, r#"{"x":1,"y":[2]}"#),
            called(2, "b", 1),
            spelled(3, r#"{"y":[2.0],"x":1e0}"#),
            tool_call(4, "c", Payload::Absent),
            tool_call(5, "c", Payload::Value(json!({}))),
        ]),
        "`fs` `a` was called 2 times with {\"x\":1,\"y\":[2]}: #1, #3\n`fs` `c` was called 2 times with {}: #4, #5",
        &[1, 3, 4, 5],
    );
}

#[test]
fn a_cut_call_may_be_a_repetition_only_of_the_same_tool() {
    check_unknown(
        &Check::NoDuplicateCalls,
        &transcript(vec![called(1, "a", 1), tool_call(2, "a", CUT)]),
        "call #2 (`fs` `a`) may repeat another call, but its arguments (9 bytes) can't be read: truncated in the record",
        &[2],
    );
    check_pass(
        &Check::NoDuplicateCalls,
        &transcript(vec![called(1, "a", 1), tool_call(2, "b", CUT)]),
        &[1, 2],
    );
    check_fail(
        &Check::NoDuplicateCalls,
        &transcript(vec![
            called(1, "a", 1),
            tool_call(2, "a", CUT),
            called(3, "a", 1),
        ]),
        "`fs` `a` was called 2 times with {\"x\":1}: #1, #3",
        &[1, 3],
    );
}

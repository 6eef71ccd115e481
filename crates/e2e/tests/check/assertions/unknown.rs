//! Assertions of which the record does not tell whether they hold.
//!
//! Counts, resources, prompts and orders are absent: they ask for names only, and the built-in agent sends no message
//! that its record can't hold.

use serde_json::json;

use super::{all, calls, plain, row, run, told, tool};

#[test]
fn each_is_unknown_where_the_record_does_not_tell() {
    let cut = "truncated in the record";
    let silent = "this agent does not report which skills it loads";
    let result = || tool("big", json!({"result": {"content": {"$type": "array"}}}));
    let no_error = || tool("big", json!({"isError": false}));
    let rows = [
        row("huge", json!({"toolsUsed": [result()]}), cut),
        row("huge", json!({"toolsUsed": [no_error()]}), cut),
        row(
            "huge",
            json!({"toolsUsed": [tool("big", json!({"maxDuration": "1m"}))]}),
            "call #1 may match, but its duration was not measured",
        ),
        row(
            "huge",
            json!({"toolsUsed": [tool("big", json!({"isError": true, "times": {"max": 0}}))]}),
            cut,
        ),
        row(
            "huge",
            json!({"requireAny": [plain("echo"), result()]}),
            cut,
        ),
        row("huge", json!({"toolsNotUsed": [no_error()]}), cut),
        row("huge", calls("contains", &[result()]), cut),
        row("huge", calls("inOrder", &[no_error()]), cut),
        row("huge", calls("exact", &[result()]), cut),
        row(
            "idle",
            json!({"skillsLoaded": [{"skill": "brewing"}]}),
            silent,
        ),
        row(
            "idle",
            json!({"skillsNotLoaded": [{"skillPattern": "^b"}]}),
            silent,
        ),
    ];
    all(&rows, 3, "errored", "unknown");
}

#[test]
fn arguments_beyond_what_checks_read_are_unknown() {
    let entry = tool("echo", json!({"arguments": {"text": {"$match": "^a"}}}));
    let mut every = calls("contains", std::slice::from_ref(&entry));
    every["toolsUsed"] = json!([entry]);
    every["requireAny"] = json!([entry]);
    let other = tool("echo", json!({"arguments": {"text": {"$match": "^b"}}}));
    every["toolsNotUsed"] = json!([other]);
    every["noDuplicateCalls"] = json!(true);
    let left_out = "bytes) can't be read: all calls together exceed the size limit";
    all(&[row("much", every, left_out)], 3, "errored", "unknown");
}

#[test]
fn a_failure_is_one_whatever_else_is_unknown() {
    let unknown = tool("big", json!({"isError": false}));
    let both = json!({"toolsUsed": [unknown], "minToolCalls": 9});
    let (seen, trials) = run(&[row("huge", both, "")]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert_eq!(trials[0]["proctor"]["outcome"], "failed");
    assert_eq!(told(&trials[0], "toolsUsed").0, "unknown");
    assert_eq!(told(&trials[0], "minToolCalls").0, "fail");
}

//! Assertions that do not hold, and how they say so.

use serde_json::json;

use super::{Row, all, calls, exactly_the_work, order, plain, row, tool};

#[test]
fn each_fails_with_a_reason() {
    let rows = [used(), any_or_none(), counted_and_named(), ordered()].concat();
    all(&rows, 1, "failed", "fail");
}

/// Tools that must be used, with what may be asked of their calls.
fn used() -> Vec<Row> {
    vec![
        row(
            "work",
            json!({"toolsUsed": [plain("echo"), plain("big")]}),
            "`fixture` `big` was never called; called: `fixture` `echo` ×2, `fixture` `add`, `fixture` `fail`, `fixture` `sleep`",
        ),
        row(
            "idle",
            json!({"toolsUsed": [{"server": "fixture", "toolPattern": "^e"}]}),
            "`fixture` `/^e/` was never called; no tool was called",
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("add", json!({"arguments": {"a": 2, "b": 4}}))]}),
            r#"`fixture` `add` with {"a":2,"b":4}: no call matches; nearest is call #2: `arguments.b`: expected 4, found 3"#,
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("add", json!({"result": {"structuredContent": {"sum": 6}}}))]}),
            "no call matches; nearest is call #2: `result.structuredContent.sum`: expected 6, found 5",
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("fail", json!({"isError": false}))]}),
            "`fixture` `fail` ending without an error: no call matches; nearest is call #3: ended in an error",
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("add", json!({"isError": true}))]}),
            "`fixture` `add` ending in an error: no call matches; nearest is call #2: ended without an error",
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("sleep", json!({"maxDuration": "20ms"}))]}),
            "`fixture` `sleep` within 20ms: no call matches; nearest is call #7: took ",
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("echo", json!({"times": {"max": 1}}))]}),
            "`fixture` `echo`: expected exactly 1 call, found 2 (#1, #6)",
        ),
        row(
            "work",
            json!({"toolsUsed": [tool("add", json!({"times": {"min": 2}}))]}),
            "`fixture` `add`: expected at least 2 calls, found 1 (#2)",
        ),
        // Whatever the result was that had to be cut: the call is not the one.
        row(
            "huge",
            json!({"toolsUsed": [tool("big", json!({"arguments": {"bytes": 1}, "result": {}}))]}),
            "no call matches; nearest is call #1: `arguments.bytes`: expected 1, found 34000000",
        ),
    ]
}

/// Tools of which one must be used, or none may be.
fn any_or_none() -> Vec<Row> {
    vec![
        row(
            "work",
            json!({"requireAny": [plain("big"), plain("progress")]}),
            "`fixture` `big` was never called; called:",
        ),
        row(
            "work",
            json!({"toolsNotUsed": [plain("big"), plain("echo")]}),
            "`fixture` `echo` was called: #1, #6",
        ),
        row(
            "work",
            json!({"toolsNotUsed": [tool("add", json!({"result": {"structuredContent": {"sum": 5}}}))]}),
            r#"`fixture` `add` giving {"structuredContent":{"sum":5}} was called: #2"#,
        ),
        row(
            "work",
            json!({"toolsNotUsed": [tool("echo", json!({"times": {"min": 2}}))]}),
            "`fixture` `echo`: at least 2 calls forbidden, found 2 (#1, #6)",
        ),
    ]
}

/// Counts, resources and prompts.
fn counted_and_named() -> Vec<Row> {
    let called =
        "called: `fixture` `echo` ×2, `fixture` `add`, `fixture` `fail`, `fixture` `sleep`";
    vec![
        row(
            "work",
            json!({"minToolCalls": 6}),
            "expected at least 6 tool calls, found 5; called: ",
        ),
        row("work", json!({"maxToolCalls": 4}), called),
        row(
            "work",
            json!({"resourcesRead": [{"server": "fixture", "uri": "fixture://blob"}]}),
            "`fixture` `fixture://blob` was never read; read: `fixture` `fixture://text`",
        ),
        row(
            "idle",
            json!({"resourcesRead": [{"server": "fixture"}]}),
            "`fixture` (any) was never read; no resource was read",
        ),
        row(
            "work",
            json!({"resourcesNotRead": [{"server": "fixture", "uriPattern": "text$"}]}),
            "`fixture` `/text$/` was read: #4",
        ),
        row(
            "work",
            json!({"promptsUsed": [{"server": "fixture", "prompt": "part"}]}),
            "`fixture` `part` was never used; used: `fixture` `greet`",
        ),
        row(
            "work",
            json!({"promptsNotUsed": [{"server": "fixture", "promptPattern": "^gr"}]}),
            "`fixture` `/^gr/` was used: #5",
        ),
    ]
}

/// Orders, duplicates and lists of calls.
fn ordered() -> Vec<Row> {
    vec![
        row(
            "work",
            order(&[("prompt", "greet"), ("resource", "fixture://text")]),
            "2 of 2 (resource `fixture` `fixture://text`) was not called after prompt `fixture` `greet` at #5, only at #4",
        ),
        row(
            "work",
            order(&[("tool", "echo"), ("tool", "big")]),
            "2 of 2 (tool `fixture` `big`) was never called; called: tool `fixture` `echo` ×2, ",
        ),
        row(
            "twice",
            json!({"noDuplicateCalls": true}),
            r#"`fixture` `add` was called 2 times with {"a":1,"b":2}: #1, #3"#,
        ),
        row(
            "work",
            calls("contains", &[plain("add"), plain("add")]),
            "expected call 2 (`fixture` `add`): call #2 matches, but is already assigned to expected call 1",
        ),
        row(
            "work",
            calls("inOrder", &[plain("sleep"), plain("add")]),
            "call #2 matches, but not at this position",
        ),
        row(
            "work",
            calls(
                "inOrder",
                &[
                    plain("add"),
                    tool("echo", json!({"arguments": {"text": "bye"}})),
                ],
            ),
            r#"expected call 2 (`fixture` `echo` with {"text":"bye"}): nearest is call #1: `arguments.text`: expected "bye", found "hi""#,
        ),
        row(
            "work",
            calls("exact", &exactly_the_work()[..4]),
            r#"unexpected call #7 (`fixture` `sleep` with {"ms":60})"#,
        ),
    ]
}

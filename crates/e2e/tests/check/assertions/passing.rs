//! Assertions that hold.

use serde_json::json;

use super::{Row, all, calls, exactly_the_work, order, passes, plain, tool};

#[test]
fn each_passes() {
    let rows = [used(), any_or_none(), counted_and_named(), ordered()].concat();
    all(&rows, 0, "passed", "pass");
}

/// Tools that must be used, with what may be asked of their calls.
fn used() -> Vec<Row> {
    let text = |text: &str| json!({"content": {"$contains": {"text": {"$contains": text}}}});
    vec![
        passes("work", json!({"toolsUsed": [plain("echo"), plain("add")]})),
        passes(
            "work",
            json!({"toolsUsed": [{"server": "fixture", "toolPattern": "^e.*o$"}]}),
        ),
        passes("work", json!({"toolsUsed": [{"server": "fixture"}]})),
        passes(
            "work",
            json!({"toolsUsed": [tool("add", json!({"arguments": {"a": 2.0, "b": {"$min": 3}}}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("add", json!({"result": {"structuredContent": {"sum": 5}}}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("echo", json!({"result": text("again")}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("fail", json!({"isError": true}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("add", json!({"isError": false}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("sleep", json!({"maxDuration": "30s"}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("echo", json!({"times": {"min": 2, "max": 2}}))]}),
        ),
        passes(
            "work",
            json!({"toolsUsed": [tool("big", json!({"times": {"max": 0}}))]}),
        ),
    ]
}

/// Tools of which one must be used, or none may be.
fn any_or_none() -> Vec<Row> {
    vec![
        passes("work", json!({"requireAny": [plain("big"), plain("echo")]})),
        passes(
            "work",
            json!({"requireAny": [tool("echo", json!({"arguments": {"text": {"$match": "^ag"}}}))]}),
        ),
        passes(
            "work",
            json!({"toolsNotUsed": [plain("big"), tool("echo", json!({"arguments": {"text": "bye"}}))]}),
        ),
        passes(
            "work",
            json!({"toolsNotUsed": [tool("echo", json!({"isError": true}))]}),
        ),
        passes(
            "work",
            json!({"toolsNotUsed": [tool("echo", json!({"times": {"min": 3}}))]}),
        ),
        passes("idle", json!({"toolsNotUsed": [{"server": "fixture"}]})),
    ]
}

/// Counts, resources and prompts.
fn counted_and_named() -> Vec<Row> {
    vec![
        passes("work", json!({"minToolCalls": 5})),
        passes("work", json!({"maxToolCalls": 5})),
        passes("idle", json!({"maxToolCalls": 0})),
        passes(
            "work",
            json!({"resourcesRead": [{"server": "fixture", "uri": "fixture://text"}]}),
        ),
        passes(
            "work",
            json!({"resourcesRead": [{"server": "fixture", "uriPattern": "^fixture:"}]}),
        ),
        passes(
            "work",
            json!({"resourcesNotRead": [{"server": "fixture", "uriPattern": "blob"}]}),
        ),
        passes(
            "work",
            json!({"promptsUsed": [{"server": "fixture", "prompt": "greet"}]}),
        ),
        passes("work", json!({"promptsUsed": [{"server": "fixture"}]})),
        passes(
            "work",
            json!({"promptsNotUsed": [{"server": "fixture", "promptPattern": "^x"}]}),
        ),
    ]
}

/// Orders, duplicates and lists of calls.
fn ordered() -> Vec<Row> {
    vec![
        passes(
            "work",
            order(&[
                ("tool", "echo"),
                ("resource", "fixture://text"),
                ("prompt", "greet"),
                ("tool", "echo"),
            ]),
        ),
        passes("work", json!({"noDuplicateCalls": true})),
        passes("work", calls("contains", &[plain("sleep"), plain("add")])),
        // The entry that fits both calls leaves the right one to the other.
        passes(
            "work",
            calls(
                "contains",
                &[
                    plain("echo"),
                    tool("echo", json!({"arguments": {"text": "hi"}})),
                ],
            ),
        ),
        passes(
            "work",
            calls(
                "inOrder",
                &[plain("add"), tool("echo", json!({"isError": false}))],
            ),
        ),
        passes("work", calls("exact", &exactly_the_work())),
        passes(
            "idle",
            calls(
                "exact",
                &[tool("echo", json!({"times": {"min": 0, "max": 1}}))],
            ),
        ),
    ]
}

//! Calls in order, over tools, resources and prompts.

use super::*;

fn tool(name: &str) -> OrderEntry {
    OrderEntry {
        kind: OrderKind::Tool,
        server: "fs".to_owned(),
        name: name.to_owned(),
    }
}

fn resource(uri: &str) -> OrderEntry {
    OrderEntry {
        kind: OrderKind::Resource,
        ..tool(uri)
    }
}

fn prompt(name: &str) -> OrderEntry {
    OrderEntry {
        kind: OrderKind::Prompt,
        ..tool(name)
    }
}

fn made() -> Transcript {
    transcript(vec![
        called(1, "a", 1),
        read(2, "u"),
        called(3, "b", 1),
        prompted(4, "p"),
        called(5, "a", 2),
    ])
}

#[test]
fn call_order_allows_calls_between() {
    check_pass(
        &Check::CallOrder(vec![tool("a"), tool("b")]),
        &made(),
        &[1, 3],
    );
    check_pass(
        &Check::CallOrder(vec![tool("a"), resource("u"), prompt("p"), tool("a")]),
        &made(),
        &[1, 2, 4, 5],
    );
}

#[test]
fn call_order_fails_when_a_call_comes_too_early() {
    check_fail(
        &Check::CallOrder(vec![prompt("p"), tool("b")]),
        &made(),
        "2 of 2 (tool `fs` `b`) was not called after prompt `fs` `p` at #4, only at #3",
        &[3, 4],
    );
    // Each entry needs a call of its own.
    check_fail(
        &Check::CallOrder(vec![tool("b"), tool("b")]),
        &made(),
        "2 of 2 (tool `fs` `b`) was not called after tool `fs` `b` at #3, only at #3",
        &[3],
    );
}

#[test]
fn call_order_fails_when_a_call_is_missing() {
    check_fail(
        &Check::CallOrder(vec![tool("a"), tool("u")]),
        &made(),
        "2 of 2 (tool `fs` `u`) was never called; called: tool `fs` `a` ×2, resource `fs` `u`, tool `fs` `b`, prompt `fs` `p`",
        &[1],
    );
    check_fail(
        &Check::CallOrder(vec![tool("a")]),
        &transcript(Vec::new()),
        "1 of 1 (tool `fs` `a`) was never called; the agent made no calls",
        &[],
    );
}

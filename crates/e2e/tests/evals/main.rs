//! Shipped evals. Here: the example servers, in Python and TypeScript on the official SDKs, what they say
//! line by line, and that it is what the crate `mcp-evals` reads. In the modules: the engine that lists and
//! runs them, on fixtures.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod command;
mod examples;
mod executions;
mod http;
mod invocations;
mod lists;
mod matrix;
mod safety;
mod scenarios;
mod serve;
mod servers;
mod shipping;
mod stage;

use std::collections::BTreeSet;

use mcp_evals::{EXTENSION, Level, ListResult, ListedEval, matching, validate_with_tools};
use mcp_evals::{Expected, Input};
use serde_json::{Value, json};

use crate::servers::{EXAMPLE as FILE, Server};

#[test]
fn e1_e4_e9_python_in_the_handshake_era() {
    handshake_era(&mut Server::python());
}

#[test]
fn e1_e4_e9_typescript_in_the_handshake_era() {
    handshake_era(&mut Server::typescript());
}

/// The TypeScript SDK 1.32 speaks the handshake era only.
#[test]
fn e1_e4_e9_python_in_the_stateless_era() {
    let mut server = Server::python();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discovered = server.ask("server/discover", &json!({"_meta": meta}));
    assert_declared(&discovered);
    let page = server.ask("evals/list", &json!({"_meta": meta, "level": "scenario"}));
    assert_eq!(ids(&page), ["note-is-kept-and-found"]);
    assert_eq!(page["result"]["resultType"], "complete", "{page}");
}

#[test]
fn the_examples_ship_one_file() {
    let crates = include_str!("../../../mcp-evals/examples/evals.json");
    assert_eq!(crates, FILE);
}

/// The tests use what users get: the versions are the same.
#[test]
fn the_examples_name_the_versions_that_are_tested() {
    let script = include_str!("../../../../scripts/install-servers");
    let package = include_str!("../../../../examples/evals/typescript/package.json");
    let package: Value = serde_json::from_str(package).unwrap();
    let version = |name: &str| package["dependencies"][name].as_str().unwrap();
    let python = include_str!("../../../../examples/evals/python/server.py");
    let python = python.split("mcp==").nth(1).unwrap();
    let pins = [
        ("mcp_typescript", version("@modelcontextprotocol/sdk")),
        ("tsx", version("tsx")),
        ("zod", version("zod")),
        ("mcp_python", python.split(' ').next().unwrap()),
    ];
    for (name, version) in pins {
        assert!(
            script.contains(&format!("{name}={version}")),
            "{name} {version}"
        );
    }
}

fn handshake_era(server: &mut Server) {
    let initialized = server.ask(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}),
    );
    assert_declared(&initialized);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));

    let items = all_pages(server);
    let file: Value = serde_json::from_str(FILE).unwrap();
    let listed: Value = items.iter().map(ListedEval::to_value).collect();
    assert!(matching::equal(&listed, &file["evals"]), "{listed}");
    for level in Level::ALL {
        let page = server.ask(
            "evals/list",
            &json!({"level": level.as_str(), "cursor": ""}),
        );
        let wanted: Vec<&str> = items
            .iter()
            .filter_map(ListedEval::eval)
            .filter(|eval| eval.level() == Some(level))
            .map(|eval| eval.id.as_str())
            .collect();
        assert!(!wanted.is_empty());
        assert_eq!(ids(&page), wanted, "{level}");
    }
    for params in [
        json!({"cursor": "x"}),
        json!({"level": "unit"}),
        json!({"cursor": 5}),
    ] {
        let refused = server.ask("evals/list", &params);
        assert_eq!(refused["error"]["code"], -32602, "{params}: {refused}");
    }

    let tools = server.ask("tools/list", &json!({}));
    let report = validate_with_tools(&items, tools["result"]["tools"].as_array().unwrap());
    assert!(report.findings.is_empty(), "{report}");
    assert_executions_pass(server, &items);
}

/// Lists without params first, then follows the cursors.
fn all_pages(server: &mut Server) -> Vec<ListedEval> {
    server.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "evals/list"}));
    let mut answer = server.next();
    let mut items = Vec::new();
    let mut cursors = BTreeSet::new();
    loop {
        let page: ListResult = serde_json::from_value(answer["result"].clone()).unwrap();
        items.extend(page.evals);
        let Some(cursor) = page.next_cursor else {
            assert!(!cursors.is_empty(), "the list has one page only");
            return items;
        };
        assert!(cursors.insert(cursor.clone()), "`{cursor}` came twice");
        answer = server.ask("evals/list", &json!({"cursor": cursor}));
    }
}

fn assert_executions_pass(server: &mut Server, items: &[ListedEval]) {
    let mut graded = 0;
    for eval in items.iter().filter_map(ListedEval::eval) {
        if let (Input::Execution(input), Expected::ExactMatch(expected)) =
            (&eval.input, &eval.expected)
        {
            let params = json!({"name": input.tool_name, "arguments": input.arguments});
            let called = server.ask("tools/call", &params);
            let content = &called["result"]["content"];
            matching::match_content(expected, content).unwrap_or_else(|reason| panic!("{reason}"));
            graded += 1;
        }
    }
    assert!(graded > 0);
}

fn assert_declared(answer: &Value) {
    let capabilities = &answer["result"]["capabilities"];
    let places = [
        &capabilities["evals"],
        &capabilities["experimental"]["evals"],
        &capabilities["extensions"][EXTENSION],
    ];
    for place in places {
        assert!(place.is_object(), "{answer}");
    }
}

fn ids(answer: &Value) -> Vec<&str> {
    let evals = answer["result"]["evals"].as_array();
    evals
        .unwrap_or_else(|| panic!("no list: {answer}"))
        .iter()
        .map(|eval| eval["id"].as_str().unwrap())
        .collect()
}

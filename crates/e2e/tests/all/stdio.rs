//! The fixture when it behaves, on stdio.

use serde_json::json;

use crate::wire::{META, said, start, start_mode};

const INITIALIZE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#;

#[test]
fn the_handshake_era_negotiates_and_lists() {
    let mut server = start(&["--era", "handshake"]);
    server.request(1, "server/discover", &format!("{{{META}}}"));
    assert_eq!(server.message()["error"]["code"], -32601);
    server.request(2, "initialize", INITIALIZE);
    let result = server.message()["result"].take();
    assert_eq!(result["protocolVersion"], "2025-06-18");
    assert_eq!(result["capabilities"]["x-custom"]["deep"][0], 1);
    server.request(3, "tools/list", "{}");
    let tools = server.message()["result"]["tools"].take();
    let names: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "echo", "add", "fail", "sleep", "big", "env", "ask", "progress"
        ]
    );
}

#[test]
fn the_stateless_era_discovers_and_refuses_initialize() {
    for era in ["stateless", "both"] {
        let mut server = start(&["--era", era]);
        server.request(1, "server/discover", &format!("{{{META}}}"));
        let result = server.message()["result"].take();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["supportedVersions"][0], "2026-07-28");
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "fixture-server"
        );
        server.request(2, "initialize", INITIALIZE);
        assert_eq!(server.message()["error"]["code"], -32022);
        server.request(
            3,
            "tools/list",
            &format!("{{{}}}", META.replace("2026-07-28", "1999-01-01")),
        );
        assert_eq!(server.message()["error"]["data"]["requested"], "1999-01-01");
    }
}

#[test]
fn discovery_can_be_refused_in_other_ways() {
    let params = format!("{{{META}}}");
    let mut server = start_mode("discover-error=-32602");
    server.request(1, "server/discover", &params);
    assert_eq!(server.message()["error"]["code"], -32602);
    let mut server = start_mode("discover-error=-32022");
    server.request(1, "server/discover", &params);
    assert_eq!(
        server.message()["error"]["data"]["supported"][0],
        "2099-01-01"
    );
}

#[test]
fn text_is_written_by_hand_and_keeps_what_serde_would_lose() {
    let mut server = start(&[]);
    server.echo(1);
    assert_eq!(
        server.text(),
        "{\"result\":{ \"content\":[ {\"text\":\"hi\",\"type\":\"text\",  \
         \"x-unknown\":{\"n\":12345678901234567890, \"z\" :1.50,\"a\":1e2}}],  \
         \"x-unknown\":{\"n\":12345678901234567890, \"z\" :1.50,\"a\":1e2}} ,\"jsonrpc\":\"2.0\",\t\"id\":1 }\n"
    );
}

#[test]
fn the_tools_do_what_they_say() {
    let mut server = start(&[]);
    let mut call = |tool: &str, arguments: &str| {
        server.call(1, tool, arguments);
        server.message()["result"].take()
    };
    assert_eq!(
        call("add", r#"{"a":9007199254740993,"b":1}"#)["structuredContent"]["sum"],
        9_007_199_254_740_994_i64
    );
    assert_eq!(
        call("add", r#"{"a":0.5,"b":1}"#)["structuredContent"]["sum"],
        1.5
    );
    assert_eq!(call("fail", "{}")["isError"], true);
    assert_eq!(call("sleep", r#"{"ms":1}"#)["content"][0]["text"], "slept");
    assert_eq!(
        call("big", r#"{"bytes":70000}"#)["content"][0]["text"],
        "x".repeat(70_000)
    );
    assert!(call("env", r#"{"name":"PATH"}"#)["structuredContent"]["value"].is_string());
    assert!(call("env", r#"{"name":"NOT SET"}"#)["structuredContent"]["value"].is_null());
}

#[test]
fn progress_is_told_to_who_asks_for_it() {
    let mut server = start(&[]);
    server.request(
        1,
        "tools/call",
        r#"{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":"t"}}"#,
    );
    assert_eq!(server.message()["params"]["progress"], 1);
    assert_eq!(server.message()["params"]["progressToken"], "t");
    assert_eq!(said(&server.message()), "done");
    server.call(2, "progress", r#"{"steps":2}"#);
    assert_eq!(server.message()["id"], 2);
}

#[test]
fn resources_and_prompts_can_be_had() {
    let mut server = start(&[]);
    let mut result = |method: &str, params: &str| {
        server.request(1, method, params);
        server.message()
    };
    assert_eq!(
        result("resources/read", r#"{"uri":"fixture://item/7"}"#)["result"]["contents"][0]["text"],
        "7"
    );
    assert_eq!(
        result("resources/read", r#"{"uri":"fixture://blob"}"#)["result"]["contents"][0]["blob"],
        "AP8Q"
    );
    assert_eq!(
        result("resources/read", r#"{"uri":"x"}"#)["error"]["code"],
        -32602
    );
    let prompt = result(
        "prompts/get",
        r#"{"name":"greet","arguments":{"who":"you"}}"#,
    );
    assert_eq!(
        prompt["result"]["messages"][0]["content"]["text"],
        "Greet you."
    );
    assert_eq!(result("nothing", "{}")["error"]["code"], -32601);
}

#[test]
fn ask_sends_requests_in_the_handshake_era() {
    for (kind, method) in [
        ("roots", "roots/list"),
        ("sampling", "sampling/createMessage"),
        ("elicitation", "elicitation/create"),
    ] {
        let mut server = start(&[]);
        server.call(1, "ask", &json!({ "kind": kind }).to_string());
        let asked = server.message();
        assert_eq!(asked["method"], method);
        server.echo(2);
        assert_eq!(
            server.message()["id"],
            2,
            "a question does not block the server"
        );
        server.write(
            &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"yes": kind}}).to_string(),
        );
        assert_eq!(
            server.message()["result"]["structuredContent"]["answers"][0]["yes"],
            kind
        );
    }
}

#[test]
fn ask_answers_with_input_required_in_the_stateless_era() {
    let mut server = start(&[]);
    let mut call = |more: &str| {
        server.request(
            1,
            "tools/call",
            &format!(r#"{{"name":"ask","arguments":{{"rounds":2}},{META}{more}}}"#),
        );
        server.message()["result"].take()
    };
    let first = call("");
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(
        first["inputRequests"]["elicitation-1"]["method"],
        "elicitation/create"
    );
    let second = call(
        r#","requestState":"round 1","inputResponses":{"elicitation-1":{"action":"decline"}}"#,
    );
    assert_eq!(second["requestState"], "round 2");
    let last = call(
        r#","requestState":"round 2","inputResponses":{"elicitation-2":{"action":"decline"}}"#,
    );
    assert_eq!(last["resultType"], "complete");
    assert_eq!(last["structuredContent"]["answers"][0]["action"], "decline");
    server.request(
        2,
        "tools/call",
        &format!(r#"{{"name":"ask","arguments":{{"kind":"roots"}},{META}}}"#),
    );
    assert_eq!(server.message()["error"]["code"], -32021);
}

#[test]
fn a_call_in_which_the_server_asks_goes_on_when_it_is_answered() {
    let mut server = start_mode("asks-client=roots");
    server.echo(1);
    let asked = server.message();
    assert_eq!(asked["method"], "roots/list");
    server.write(
        &json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
            .to_string(),
    );
    assert_eq!(said(&server.message()), "hi");
}

#[test]
fn cancelled_requests_are_not_answered() {
    let mut server = start(&[]);
    server.call(1, "sleep", r#"{"ms":60000}"#);
    server.cancel(1);
    server.call(2, "sleep", r#"{"ms":50}"#);
    assert_eq!(server.message()["id"], 2);
}

#[test]
fn broken_messages_are_refused() {
    let mut server = start(&[]);
    server.write("{not json");
    assert_eq!(server.message()["error"]["code"], -32700);
}

#[test]
fn the_log_has_every_byte_that_came_and_went() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut server = start(&[
        "--log",
        path.to_str().unwrap(),
        "--mode",
        "invalid-utf8",
        "--times",
        "1",
    ]);
    let request = r#"{ "jsonrpc":"2.0" ,"id":1.0,"method":"tools/call", "params":{}}"#;
    server.write(request);
    server.line();
    server.echo(2);
    let answer = server.text();
    let log = proctor_e2e::log_lines(&path);
    assert_eq!(log[0], json!({"dir": "in", "text": request}));
    assert_eq!(log[1]["dir"], "out");
    assert!(log[1]["base64"].is_string());
    assert_eq!(log[3]["text"], answer.trim_end());
}

#[test]
fn help_lists_every_mode() {
    let help = std::process::Command::new(proctor_e2e::fixture())
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let readme = include_str!("../../README.md");
    let modes = help
        .split_once("modes:\n")
        .unwrap()
        .1
        .lines()
        .filter(|line| !line.starts_with("      "));
    for mode in modes {
        let name = mode.trim().split(['=', '[']).next().unwrap();
        assert!(
            readme.contains(&format!("`{name}")),
            "the README does not tell of `{name}`"
        );
    }
}

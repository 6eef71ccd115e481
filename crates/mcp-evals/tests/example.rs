//! The example server, as a child process, spoken to in raw lines: both protocol eras.

#![expect(
    clippy::disallowed_methods,
    reason = "the test starts the server as a client would"
)]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use mcp_evals::{ListResult, ListedEval, validate_with_tools};
use serde_json::{Value, json};

struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        // Examples are beside the folder of the tests.
        let test = std::env::current_exe().expect("the test has a path");
        let program = test
            .ancestors()
            .nth(2)
            .expect("the test is in the target folder")
            .join("examples/server");
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect(
                "`cargo test` builds examples; with filters, `cargo build --example server` does",
            );
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }

    fn next(&mut self) -> Value {
        let line = self
            .lines
            .next()
            .expect("the server goes on")
            .expect("a line of text");
        serde_json::from_str(&line).expect("a line of JSON")
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    fn shake_hands(&mut self) -> Value {
        let answer = self.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn declared(answer: &Value, capability: &Value) {
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(&capabilities["evals"], capability, "{answer}");
    assert_eq!(&capabilities["experimental"]["evals"], capability);
    assert_eq!(
        &capabilities["extensions"]["dev.mcp-proctor/evals"],
        capability
    );
    assert!(capabilities["tools"].is_object());
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["result"]["evals"]
        .as_array()
        .unwrap_or_else(|| panic!("no list: {answer}"))
        .iter()
        .filter_map(|eval| eval["id"].as_str())
        .collect()
}

#[test]
fn e1_e4_e9_e34_the_handshake_era() {
    let mut server = Server::start(&[]);
    declared(&server.shake_hands(), &json!({}));
    let all = server.ask("evals/list", &json!({}));
    assert_eq!(ids(&all).len(), 4);
    assert_eq!(all["result"]["resultType"], Value::Null);
    let scenarios = server.ask("evals/list", &json!({"level": "scenario", "cursor": ""}));
    assert_eq!(ids(&scenarios), ["note-is-kept-and-found"]);
    let refused = server.ask("evals/list", &json!({"cursor": "x"}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let unknown = server.ask("evals/run", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let called = server.ask(
        "tools/call",
        &json!({"name": "word_count", "arguments": {"text": "a b"}}),
    );
    assert_eq!(
        called["result"]["content"],
        json!([{"type": "text", "text": "2"}])
    );

    let tools = server.ask("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let list: ListResult = serde_json::from_value(all["result"].clone()).unwrap();
    let report = validate_with_tools(&list.evals, &tools);
    assert!(report.findings.is_empty(), "{report}");
    assert!(
        list.evals
            .iter()
            .all(|item| matches!(item, ListedEval::Eval(_)))
    );
}

#[test]
fn e4_params_may_be_left_out() {
    let mut server = Server::start(&[]);
    server.shake_hands();
    server.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "evals/list"}));
    assert_eq!(ids(&server.next()).len(), 4);
}

#[test]
fn e1_e4_e9_e34_the_stateless_era() {
    let mut server = Server::start(&[]);
    declared(
        &server.ask("server/discover", &json!({"_meta": meta()})),
        &json!({}),
    );
    let page = server.ask(
        "evals/list",
        &json!({"_meta": meta(), "level": "invocation"}),
    );
    assert_eq!(ids(&page), ["word-count-is-chosen"]);
    assert_eq!(page["result"]["resultType"], "complete", "{page}");
    let mut old = meta();
    old["io.modelcontextprotocol/protocolVersion"] = "1999-01-01".into();
    let refused = server.ask("evals/list", &json!({"_meta": old}));
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
}

#[test]
fn e7_clients_are_notified_of_changes() {
    let folder = std::env::temp_dir().join(format!("mcp-evals-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file: PathBuf = folder.join("evals.json");
    std::fs::write(&file, "[]").unwrap();
    let mut server = Server::start(&["--evals", file.to_str().unwrap()]);
    declared(&server.shake_hands(), &json!({"listChanged": true}));
    assert_eq!(ids(&server.ask("evals/list", &json!({}))), [""; 0]);

    std::fs::write(&file, include_str!("../examples/evals.json")).unwrap();
    let told = server.next();
    assert_eq!(told["method"], "notifications/evals/list_changed", "{told}");
    assert_eq!(told.get("id"), None);
    assert_eq!(ids(&server.ask("evals/list", &json!({}))).len(), 4);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Posts one message; gives the whole response, head and body.
fn post(url: &str, headers: &[(&str, &str)], message: &Value) -> String {
    let host = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let body = message.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(host).expect("the server listens");
    write!(stream, "{request}\r\n{body}").expect("the server reads");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .expect("text comes back");
    response
}

/// The JSON in a response, be it the body or an event's data.
fn message_in(response: &str) -> Value {
    response
        .lines()
        .map(|line| line.trim_start_matches("data:").trim())
        .find(|line| line.starts_with('{'))
        .and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_else(|| panic!("no message: {response}"))
}

/// The SDK's HTTP service writes the bodies, so the top-level key is not there.
fn declared_below(answer: &Value) {
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["experimental"]["evals"], json!({}), "{answer}");
    assert_eq!(
        capabilities["extensions"]["dev.mcp-proctor/evals"],
        json!({})
    );
}

#[test]
fn e9_http_in_both_eras() {
    let mut server = Server::start(&["--http", "0"]);
    let url = server.lines.next().unwrap().unwrap();

    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let response = post(&url, &[], &request);
    declared_below(&message_in(&response));
    let session = response
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("mcp-session-id:")
                .map(str::to_owned)
        })
        .unwrap_or_else(|| panic!("no session: {response}"));
    let headers = [
        ("Mcp-Session-Id", session.trim()),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert!(post(&url, &headers, &initialized).starts_with("HTTP/1.1 202"));
    let request =
        json!({"jsonrpc": "2.0", "id": 2, "method": "evals/list", "params": {"level": "scenario"}});
    let page = message_in(&post(&url, &headers, &request));
    assert_eq!(ids(&page), ["note-is-kept-and-found"]);

    for (method, check) in [
        ("server/discover", declared_below as fn(&Value)),
        ("evals/list", |page| assert_eq!(ids(page).len(), 4)),
    ] {
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        let request =
            json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"_meta": meta()}});
        check(&message_in(&post(&url, &headers, &request)));
    }
}

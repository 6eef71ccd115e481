//! The example servers over HTTP, one plain request at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use proctor_e2e::port::ReservedPort;
use serde_json::{Value, json};

use crate::servers::Server;
use crate::{assert_declared, ids};

#[test]
fn e9_python_over_http_in_both_eras() {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    let _server = Server::python_with(&["--http", &port.to_string()]);
    handshake_era(port);
    for (method, check) in [
        ("server/discover", assert_declared as fn(&Value)),
        ("evals/list", |page| assert_eq!(ids(page).len(), 2)),
    ] {
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request =
            json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"_meta": meta}});
        check(&message_in(&post(port, &headers, &request)));
    }
}

#[test]
fn e9_typescript_over_http_in_the_handshake_era() {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    let _server = Server::typescript_with(&["--http", &port.to_string()]);
    handshake_era(port);
}

fn handshake_era(port: u16) {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let response = post(port, &[], &request);
    assert_declared(&message_in(&response));
    let session = response.lines().find_map(|line| {
        let line = line.to_lowercase();
        Some(line.strip_prefix("mcp-session-id:")?.trim().to_owned())
    });
    let mut headers = vec![("MCP-Protocol-Version", "2025-11-25")];
    headers.extend(session.as_deref().map(|id| ("Mcp-Session-Id", id)));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let response = post(port, &headers, &initialized);
    assert!(response.starts_with("HTTP/1.1 202"), "{response}");
    let params = json!({"level": "scenario"});
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "evals/list", "params": params});
    let page = message_in(&post(port, &headers, &request));
    assert_eq!(ids(&page), ["note-is-kept-and-found"]);
}

/// Posts one message, as soon as the server listens; gives the whole response.
fn post(port: u16, headers: &[(&str, &str)], message: &Value) -> String {
    let body = message.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = connect(port);
    write!(stream, "{request}\r\n{body}").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Connects as soon as somebody listens.
pub fn connect(port: u16) -> TcpStream {
    let end = Instant::now() + Duration::from_mins(2);
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < end, "nobody listens: {error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
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

//! Plain pipes and sockets, with nothing between the test and the bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

pub const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// A fixture on stdio. It is killed when it is dropped.
pub struct Server {
    pub child: Child,
    stdin: Option<ChildStdin>,
    pub stdout: BufReader<ChildStdout>,
}

/// Starts a fixture on stdio.
pub fn start(arguments: &[&str]) -> Server {
    let mut command = Command::new(proctor_e2e::fixture());
    let command = command.args(arguments).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    Server {
        child,
        stdin,
        stdout,
    }
}

/// Starts a fixture with one mode.
pub fn start_mode(mode: &str) -> Server {
    start(&["--mode", mode])
}

impl Server {
    pub fn write(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line, with its end.
    pub fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.stdout.read_until(b'\n', &mut line).unwrap();
        line
    }

    pub fn text(&mut self) -> String {
        String::from_utf8(self.line()).unwrap()
    }

    pub fn message(&mut self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    pub fn request(&mut self, id: u64, method: &str, params: &str) {
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
    }

    /// Calls a tool; the answer is still to be read.
    pub fn call(&mut self, id: u64, tool: &str, arguments: &str) {
        self.request(
            id,
            "tools/call",
            &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#),
        );
    }

    pub fn echo(&mut self, id: u64) {
        self.call(id, "echo", r#"{"text":"hi"}"#);
    }

    pub fn cancel(&mut self, id: u64) {
        self.write(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    /// Waits for the end; what was left on stdout and stderr.
    pub fn end(&mut self) -> (ExitStatus, Vec<u8>, String) {
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a result's first content block.
pub fn said(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {message}"))
}

/// A response as it came.
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The messages of an event stream.
    pub fn events(&self) -> Vec<Value> {
        let text = self.text();
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// Opens a connection, and sends a request on it.
pub fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_mins(3)))
        .unwrap();
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let headers = headers.concat();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\n\r\n{body}").unwrap();
    BufReader::new(stream)
}

/// Reads a head, up to and with its blank line.
pub fn read_head(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
    head
}

/// Reads one chunk of a chunked body; empty at its end.
pub fn read_chunk(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut size = String::new();
    stream.read_line(&mut size).unwrap();
    let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap()];
    stream.read_exact(&mut chunk).unwrap();
    stream.read_exact(&mut [0; 2]).unwrap();
    chunk
}

/// Reads a whole response.
pub fn read_response(stream: &mut BufReader<TcpStream>) -> Response {
    let head = read_head(stream);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut response = Response {
        status,
        head,
        body: Vec::new(),
    };
    if response.header("transfer-encoding") == Some("chunked") {
        loop {
            let chunk = read_chunk(stream);
            if chunk.is_empty() {
                return response;
            }
            response.body.extend(chunk);
        }
    }
    let length = response
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    stream.take(length).read_to_end(&mut response.body).unwrap();
    response
}

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

/// Posts a message of the handshake era.
pub fn post(address: &str, session: Option<&str>, body: &str) -> Response {
    let mut headers = vec![ACCEPT];
    headers.extend(session.map(|id| ("Mcp-Session-Id", id)));
    read_response(&mut send(address, "POST", "/mcp", &headers, body))
}

/// Opens a session of the handshake era.
pub fn open_session(address: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    let response = post(address, None, &body.to_string());
    assert_eq!(response.status, 200, "{}", response.text());
    response
        .header("mcp-session-id")
        .unwrap_or_default()
        .to_owned()
}

/// Sends a request of the stateless era, with its headers.
pub fn send_stateless(
    address: &str,
    method: &str,
    name: Option<&str>,
    params: &str,
) -> BufReader<TcpStream> {
    let mut headers = vec![
        ACCEPT,
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    let comma = if params.is_empty() { "" } else { "," };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{META}{comma}{params}}}}}"#
    );
    send(address, "POST", "/mcp", &headers, &body)
}

pub fn stateless(address: &str, method: &str, name: Option<&str>, params: &str) -> Response {
    read_response(&mut send_stateless(address, method, name, params))
}

/// Calls `echo` in the stateless era; the response is still to be read.
pub fn send_echo(address: &str) -> BufReader<TcpStream> {
    send_stateless(
        address,
        "tools/call",
        Some("echo"),
        r#""name":"echo","arguments":{"text":"hi"}"#,
    )
}

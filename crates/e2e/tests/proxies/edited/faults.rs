//! Faults that an editor injects: answers and requests that are lost, late, changed, or not the server's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::super::transparency::client::SseLine;
use super::editors::{DELAY, Faults};
use super::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"version":"1","name":"c"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// A call of `echo`.
fn call(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}},{META}}}}}"#
    )
}

/// The same, of the handshake era.
fn older_call(id: &str, text: &str) -> String {
    call(id, text).replace(&format!(",{META}"), "")
}

/// The id of an answer and what was echoed.
fn read(answer: &str) -> (String, String) {
    let answer: Value = serde_json::from_str(answer).expect("an answer is JSON");
    let text = answer["result"]["content"][0]["text"].as_str();
    let id = answer["id"].as_str().expect("an id");
    (id.to_owned(), text.unwrap_or_default().to_owned())
}

/// A proxy with faults, before a fixture that listens or is started.
struct FaultyProxy {
    folder: tempfile::TempDir,
    hosted: HostedServer,
    door: Door,
    _fixture: Option<Fixture>,
}

impl FaultyProxy {
    fn start(spoken: FixtureTransport, kind: Kind, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let log = folder.path().join("log");
        let logged = ["--log", log.to_str().expect("a path is text")];
        let words: Vec<&str> = words.iter().chain(&logged).copied().collect();
        let (server, fixture) = served(spoken, &words);
        let editor: Arc<dyn Editor> = Arc::new(Faults);
        let hosted = HostedServer::editing(kind, &server, folder.path(), Some(editor));
        Self {
            door: hosted.door(&server),
            folder,
            hosted,
            _fixture: fixture,
        }
    }

    fn url(&self) -> &str {
        match &self.door {
            Door::Http { url, .. } | Door::Sse { url, .. } => url,
            Door::Command(_) => panic!("it has no address"),
        }
    }

    /// What the server got, and what the record says that the client got.
    fn end(self) -> (Vec<String>, Vec<String>) {
        self.hosted.close();
        let [got, _] = account(&self.folder.path().join("log"));
        (got, RecordedMessages::read(self.folder.path()).to_client)
    }
}

/// A session of lines through a relay.
fn start(door: &Door) -> (Child, BufReader<std::process::ChildStdout>) {
    let Door::Command(words) = door else {
        panic!("it is reached by an address")
    };
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the relay starts");
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    (child, stdout)
}

#[test]
fn faults_are_injected_on_stdio() {
    let broken = FaultyProxy::start(
        FixtureTransport::Stdio,
        Kind::Relay,
        &["--era", "stateless"],
    );
    let (mut child, stdout) = start(&broken.door);
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let before = Instant::now();
    let mut lines = stdout.lines().map(|line| line.expect("a line can be read"));
    let mut ask = |id: &str, text: &str| {
        writeln!(stdin, "{}", call(id, text)).expect("a line can be written");
    };
    ask("lost answer", "a");
    ask("lost request", "b");
    ask("own answer", "c");
    ask("changed request", "before");
    let mut came: Vec<(String, String)> = lines.by_ref().take(2).map(|line| read(&line)).collect();
    came.sort();
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    assert_eq!(
        came,
        [pair("changed request", "after"), pair("own answer", "")]
    );
    ask("late answer", "d");
    assert_eq!(read(&lines.next().unwrap()), pair("late answer", "d"));
    assert!(before.elapsed() >= DELAY);
    drop(stdin);
    // The lost answer does not come at the end either.
    assert_eq!(lines.next(), None);
    assert!(child.wait().expect("it ends").success());
    check_record(broken, call);
}

/// The server never saw two of the requests, and one as it was changed; the client got three answers.
fn check_record(broken: FaultyProxy, call: fn(&str, &str) -> String) {
    let (got, to_client) = broken.end();
    let ids = |texts: &[String]| -> Vec<String> {
        let mut ids: Vec<String> = texts
            .iter()
            .filter_map(|text| serde_json::from_str::<Value>(text).ok())
            .filter_map(|message| message["id"].as_str().map(str::to_owned))
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&got), ["changed request", "late answer", "lost answer"]);
    assert!(got.contains(&call("changed request", "after")));
    let expected = ["changed request", "late answer", "own answer"];
    assert_eq!(ids(&to_client), expected);
}

/// Posts a call, as the stateless era does.
fn post(url: &str, id: &str, text: &str) -> TcpStream {
    let rest = url.strip_prefix("http://").expect("the exchange works");
    let (address, path) = rest.split_once('/').expect("the exchange works");
    let body = call(id, text);
    let mut stream = TcpStream::connect(address).expect("the exchange works");
    let request = format!(
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .expect("the exchange works");
    stream
}

/// All that comes until the connection ends.
fn response(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .expect("the exchange works");
    text
}

/// The answer in a response.
fn answer(response: &str) -> (String, String) {
    let line = response.lines().find(|line| line.contains("\"result\""));
    let line = line.unwrap_or_else(|| panic!("no answer: {response}"));
    read(line.strip_prefix("data:").unwrap_or(line).trim())
}

/// Whether nothing has come so far on a connection that is open.
fn is_silent(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("the exchange works");
    let peeked = stream.peek(&mut [0]);
    peeked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

fn over_http(mode: &str) {
    let words = ["--era", "stateless", "--mode", mode];
    let broken = FaultyProxy::start(FixtureTransport::Http, REVERSE, &words);
    let url = broken.url().to_owned();
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    let lost_answer = post(&url, "lost answer", "a");
    let lost_request = post(&url, "lost request", "b");
    let own = response(post(&url, "own answer", "c"));
    assert_eq!(answer(&own), pair("own answer", ""));
    let changed = response(post(&url, "changed request", "before"));
    assert_eq!(answer(&changed), pair("changed request", "after"));
    let before = Instant::now();
    let late = response(post(&url, "late answer", "d"));
    assert_eq!(answer(&late), pair("late answer", "d"));
    assert!(before.elapsed() >= DELAY);
    assert!(is_silent(&lost_request));
    if mode == "sse-responses" {
        // The stream is there, and ends without it.
        let lost = response(lost_answer);
        assert!(
            lost.starts_with("HTTP/1.1 200") && !lost.contains("result"),
            "{lost}"
        );
    } else {
        assert!(is_silent(&lost_answer));
    }
    drop(lost_request);
    check_record(broken, call);
}

#[test]
fn faults_are_injected_in_json_bodies() {
    over_http("json-responses");
}

#[test]
fn faults_are_injected_in_events() {
    over_http("sse-responses");
}

#[test]
fn faults_are_injected_on_the_older_http() {
    let broken = FaultyProxy::start(FixtureTransport::Older, REVERSE, &[]);
    let mut older = SseLine::open(broken.url(), &[]);
    older.post(INITIALIZE);
    assert!(older.next().expect("an answer").contains("capabilities"));
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    older.post(&older_call("lost answer", "a"));
    older.post(&older_call("lost request", "b"));
    older.post(&older_call("own answer", "c"));
    assert_eq!(read(&older.next().unwrap()), pair("own answer", ""));
    older.post(&older_call("changed request", "before"));
    assert_eq!(
        read(&older.next().unwrap()),
        pair("changed request", "after")
    );
    let before = Instant::now();
    older.post(&older_call("late answer", "d"));
    assert_eq!(read(&older.next().unwrap()), pair("late answer", "d"));
    assert!(before.elapsed() >= DELAY);
    drop(older);
    check_record(broken, older_call);
}

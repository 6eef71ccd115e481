//! Recordings at an address.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use proctor_e2e::port::ReservedPort;
use proctor_e2e::{Fixture, fixture, proctor};
use proctor_record::event::{Direction, Outcome};
use rustix::process::{Pid, Signal, kill_process};

use super::{RecordingFolder, outcome};
use crate::stdio::ended;

/// A recording that serves.
struct RecordingServer {
    child: Child,
    stdout: BufReader<ChildStdout>,
    url: String,
}

fn serve(place: &RecordingFolder, args: &[&str]) -> RecordingServer {
    let mut child = Command::new(proctor())
        .args(["record", "--out"])
        .arg(place.out())
        .args(args)
        .env(proctor_e2e::session::MARK, &place.mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
    let mut url = String::new();
    stdout.read_line(&mut url).expect("an address");
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    RecordingServer {
        child,
        stdout,
        url: url.trim().to_owned(),
    }
}

impl RecordingServer {
    /// Stops it, and gives what else it printed and said.
    fn stop(mut self) -> (Option<i32>, String, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it is there");
        let code = ended(&mut self.child).code();
        let (mut rest, mut said) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).expect("stdout");
        let mut stderr = self.child.stderr.take().expect("stderr");
        stderr.read_to_string(&mut said).expect("stderr");
        (code, rest, said)
    }
}

fn call(url: &str) -> String {
    let called = Command::new(proctor())
        .args([
            "call",
            "echo",
            "--args",
            r#"{"text":"hallo"}"#,
            "--url",
            url,
        ])
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&called.stdout).into_owned()
}

fn check(place: &RecordingFolder, args: &[&str]) {
    let serving = serve(place, args);
    assert!(call(&serving.url).contains("hallo"));
    // The token is what lets one in.
    let (port, rest) = serving.url[17..].split_once('/').expect("a path");
    let (_, path) = rest.split_once('/').expect("a token");
    assert!(!call(&format!("http://127.0.0.1:{port}/{path}")).contains("hallo"));
    let (code, rest, said) = serving.stop();
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    assert!(
        said.ends_with("`\n") && said.contains("stopped; show it with"),
        "{said}"
    );
    let recorded = place.recorded();
    let calls = recorded.messages(Direction::ToServer);
    let is_call = |message: &Vec<u8>| String::from_utf8_lossy(message).contains("\"tools/call\"");
    assert_eq!(calls.iter().filter(|message| is_call(message)).count(), 1);
    assert!(!recorded.refusals().is_empty());
    assert_eq!(outcome(&recorded), Some(Outcome::Passed));
}

#[test]
fn a_server_at_an_address_is_recorded() {
    let server = Fixture::http(&[]);
    check(&RecordingFolder::new(), &["--url", server.url()]);
}

#[test]
fn a_server_that_is_started_is_recorded_at_an_address() {
    let fixture = fixture().display().to_string();
    check(&RecordingFolder::new(), &["--http", "--", &fixture]);
}

#[test]
fn everybody_is_let_in_if_that_is_asked_for() {
    let server = Fixture::http(&[]);
    let place = RecordingFolder::new();
    let serving = serve(&place, &["--url", server.url(), "--no-token"]);
    assert!(serving.url.ends_with("/mcp"), "{}", serving.url);
    assert!(call(&serving.url).contains("hallo"));
    assert_eq!(serving.stop().0, Some(0));
    assert_eq!(place.recorded().refusals(), [""; 0]);
}

#[test]
fn a_program_is_told_in_json() {
    let place = RecordingFolder::new();
    let mut child = Command::new(proctor())
        .args([
            "record",
            "-o",
            "json",
            "--url",
            "http://127.0.0.1:9/mcp",
            "--out",
        ])
        .arg(place.out())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let stdout = BufReader::new(child.stdout.take().expect("stdout"));
    let mut values = serde_json::Deserializer::from_reader(stdout).into_iter();
    let told: serde_json::Value = values.next().expect("a document").expect("JSON");
    assert!(
        told["url"]
            .as_str()
            .is_some_and(|url| url.ends_with("/mcp"))
    );
    assert!(told["headers"].is_object());
    let run = place.runs().remove(0).display().to_string();
    assert_eq!(told["run"].as_str(), Some(run.as_str()));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    assert_eq!(ended(&mut child).code(), Some(0));
}

#[test]
fn an_address_that_is_taken_is_said() {
    let place = RecordingFolder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("a port").port().to_string();
    let output = Command::new(proctor())
        .args([
            "record",
            "--port",
            &port,
            "--url",
            "http://127.0.0.1:9/mcp",
            "--out",
        ])
        .arg(place.out())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("can't listen on port"), "{said}");
    assert_eq!(outcome(&place.recorded()), Some(Outcome::Errored));
}

#[test]
fn a_server_that_dies_in_a_call_fails_the_recording_at_an_address() {
    let fixture = fixture().display().to_string();
    let check = |args: &[&str], code: i32, says: &str| {
        let place = RecordingFolder::new();
        let serving = serve(&place, args);
        assert!(!call(&serving.url).contains("hallo"));
        let (exit, _, said) = serving.stop();
        assert_eq!(exit, Some(code), "{said}");
        assert!(said.contains(says), "{said}");
        let recorded = place.recorded();
        assert_eq!(outcome(&recorded), Some(Outcome::Failed));
        let calls = recorded.messages(Direction::ToServer);
        let is_call = |message: &Vec<u8>| String::from_utf8_lossy(message).contains("tools/call");
        assert_eq!(calls.iter().filter(|message| is_call(message)).count(), 1);
    };
    let words = ["--http", "--", &fixture, "--mode", "exit-in-call=7"];
    check(&words, 7, "the server exited with code 7");
    let words = ["--http", "--", &fixture, "--mode", "kill-in-call"];
    check(&words, 137, "the server was killed by signal 9");
    let server = Fixture::http(&["--mode", "exit-in-call=7"]);
    check(&["--url", server.url()], 1, "`echo` got no answer");
}

#[test]
fn what_a_client_asks_of_a_server_that_is_not_there_is_recorded() {
    use std::io::{Read, Write};
    let silent = ReservedPort::new();
    let url = format!("http://127.0.0.1:{}/mcp", silent.number());
    let place = RecordingFolder::new();
    let serving = serve(&place, &["--url", &url]);
    let rest = serving.url.strip_prefix("http://").expect("an address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = std::net::TcpStream::connect(host).expect("somebody listens");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    let length = body.len();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is sent");
    stream.write_all(body.as_bytes()).expect("it is sent");
    let _ = stream.read_to_end(&mut Vec::new());
    let (code, _, said) = serving.stop();
    assert_eq!(code, Some(1), "{said}");
    let recorded = place.recorded();
    assert_eq!(outcome(&recorded), Some(Outcome::Failed));
    assert_eq!(recorded.messages(Direction::ToServer), [body.as_bytes()]);
}

//! Servers over HTTP.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use proctor_e2e::Fixture;
use proctor_e2e::session::Session;
use proctor_record::event::{Direction, EventKind, FindingKind, HttpHead};

use crate::{
    BRIEF, CALL, LENIENT, PATIENT, SessionExpectation, UNCONNECTED, check, check_rows,
    could_not_tell, ok, ok_but, on_http, unanswered,
};

#[test]
fn every_way_to_answer_over_http_is_understood() {
    check_all(&[
        (&[], ok()),
        (&["--era", "stateless"], ok()),
        (&["--era", "both"], ok()),
        (&["--mode", "sse-responses"], ok()),
        (&["--mode", "sse-responses", "--era", "stateless"], ok()),
        (&["--mode", "no-session"], ok()),
        (&["--mode", "no-get"], ok()),
        (
            &["--mode", "asks-client=roots", "--mode", "sse-responses"],
            ok(),
        ),
        (
            &[
                "--mode",
                "asks-client=elicitation",
                "--mode",
                "sse-responses",
            ],
            ok(),
        ),
    ]);
}

#[test]
fn a_server_without_a_response_ends_as_it_should() {
    check_all(&[
        (
            &["--mode", "never-answer", "--on", "*"],
            unanswered("failed to start: no response within 3s", UNCONNECTED),
        ),
        (
            &["--mode", "endless-chunks"],
            unanswered("no response within", BRIEF),
        ),
        (
            &["--mode", "silent-sse"],
            unanswered("no response within", BRIEF),
        ),
        (
            &["--mode", "slow-loris"],
            unanswered("no response within", BRIEF),
        ),
        (
            &["--mode", "never-answer"],
            unanswered("no response within", BRIEF),
        ),
        (
            &["--mode", "never-answer", "--era", "stateless"],
            unanswered("no response within", BRIEF),
        ),
        (
            &["--mode", "flood-progress", "--mode", "sse-responses"],
            unanswered("no response within 6s", LENIENT),
        ),
    ]);
}

#[test]
fn every_fault_ends_as_it_should() {
    check_all(&[
        (
            &["--mode", "http-status=500"],
            could_not_tell("the server answered with HTTP status 500"),
        ),
        (
            &["--mode", "http-status=404"],
            could_not_tell("the server answered with HTTP status 404"),
        ),
        (
            &["--mode", "redirect=http://127.0.0.1:1/"],
            could_not_tell("the server answered with HTTP status 307"),
        ),
        (
            &["--mode", "truncated-body"],
            could_not_tell("the server closed the connection too early"),
        ),
        (
            &["--mode", "endless-headers"],
            could_not_tell("the headers of the response are too large"),
        ),
        (
            &["--mode", "invalid-json"],
            SessionExpectation {
                code: 3,
                says: "without an answer",
                finds: Some(FindingKind::Malformed),
                limits: PATIENT,
            },
        ),
        (
            &["--mode", "exit-in-call"],
            could_not_tell("the server closed the connection without a response"),
        ),
        (
            &["--mode", "duplicate-answer", "--mode", "sse-responses"],
            ok_but(FindingKind::DuplicateAnswer),
        ),
    ]);
}

fn check_all(rows: &[(&[&str], SessionExpectation)]) {
    check_rows(rows, on_http);
}

#[test]
fn a_result_that_is_too_large_is_not_taken_in() {
    let args = ["--mode", "big-result=104857600"];
    let expected = SessionExpectation {
        code: 3,
        says: "the response is too large",
        finds: Some(FindingKind::TooLarge),
        limits: PATIENT,
    };
    check(&args, &on_http(&args, PATIENT), &expected);
}

#[test]
fn an_address_of_the_older_transport_is_found_out() {
    for args in [&[][..], &["--mode", "asks-client=roots"]] {
        let server = Fixture::sse(args);
        let seen = Session::new(&CALL).at(server.url()).run();
        check(args, &seen, &ok());
    }
}

/// A server of the older transport that answers on its stream first, and takes its time with the
/// response to the POST.
const HASTY: &str = r#"
import json, queue, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
said = queue.Queue()
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args):
        pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b": hello\n\nevent: endpoint\ndata: /messages?s=1\n\n")
        while True:
            self.wfile.write(b"data: " + said.get() + b"\n\n")
            self.wfile.flush()
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/messages?s=1":
            self.send_response(405)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        message = json.loads(body)
        results = {
            "initialize": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "hi"}]},
        }
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}
            said.put(json.dumps(answer).encode())
            time.sleep(0.2)
        self.send_response(202)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"Accepted")
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

#[test]
fn the_record_of_the_older_transport_has_the_endpoint_and_every_response() {
    let mut server = Command::new("python3")
        .args(["-c", HASTY])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    stdout.read_line(&mut port).unwrap();
    let url = format!("http://127.0.0.1:{}/sse", port.trim());
    let seen = Session::new(&["call", "echo"]).at(&url).run();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let heads: Vec<&HttpHead> = seen
        .events
        .iter()
        .filter_map(|event| match &event.event {
            EventKind::Http(head) => Some(head),
            _ => None,
        })
        .collect();
    let lines = |direction: Direction, text: &str| {
        let found = heads
            .iter()
            .filter(|head| head.direction == direction && head.line.contains(text));
        found.count()
    };
    let posts = lines(Direction::ToServer, "/messages?s=1");
    assert!(posts >= 3, "{heads:#?}");
    assert_eq!(lines(Direction::ToClient, "202"), posts, "{heads:#?}");
    assert_eq!(
        lines(Direction::ToClient, "not a message (8 bytes): Accepted"),
        posts
    );
    let endpoint = "event `endpoint` (13 bytes): /messages?s=1";
    assert_eq!(lines(Direction::ToClient, endpoint), 1, "{heads:#?}");
}

#[test]
fn whoever_stops_to_wait_says_so_before_the_end() {
    for args in [&["--mode", "no-session"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log").display().to_string();
        let mut all = vec![
            "--era",
            "handshake",
            "--mode",
            "never-answer",
            "--log",
            &log,
        ];
        all.extend(args);
        let server = Fixture::http(&all);
        let seen = Session::new(&BRIEF.call()).at(server.url()).run();
        check(&all, &seen, &unanswered("no response within", BRIEF));
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.contains("notifications/cancelled"), "{args:?}: {text}");
    }
}

#[test]
fn nobody_there_is_said_at_once() {
    let seen = Session::new(&CALL).at("http://127.0.0.1:1/mcp").run();
    check(&["nobody"], &seen, &could_not_tell("connection refused"));
}

#[test]
fn arguments_marked_for_headers_are_repeated_there() {
    let server = Fixture::http(&["--era", "stateless"]);
    let call = ["call", "env", "--args", r#"{"name":"PATH"}"#];
    let seen = Session::new(&call).at(server.url()).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
}

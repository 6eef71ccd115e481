//! One call of a tool, by Proctor's client and by a bare loop on the same pipes and sockets.
//!
//! The two take turns, so that a slow moment of the machine touches both.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_core::suite::Server;
use proctor_e2e::client::{http_server, options, stdio_server};
use proctor_e2e::{Fixture, fixture};
use proctor_record::event::{RECORD_VERSION, RunStarted, TrialStarted};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use proctor_wire::client::Client;
use proctor_wire::recorder::Recorder;
use serde_json::{Map, Value, json};

const CALLS: usize = 2_000;
const WARM_UP: usize = 200;
const ROUNDS: usize = 3;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bare","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let mut figures = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        figures[0].extend(bare_stdio());
        figures[1].extend(runtime.block_on(proctor(stdio_server(&[]))));
        let server = Fixture::http(&["--era", "handshake", "--mode", "json-responses"]);
        figures[2].extend(bare_http(&server));
        figures[3].extend(runtime.block_on(proctor(http_server(server.url()))));
    }
    let [bare_stdio, our_stdio, bare_http, our_http] = figures.map(median);
    println!("one call, p50 of {}", CALLS * ROUNDS);
    println!(
        "{:<8} {:>10} {:>10} {:>7}",
        "", "bare loop", "Proctor", "ratio"
    );
    for (name, bare, ours) in [
        ("stdio", bare_stdio, our_stdio),
        ("HTTP", bare_http, our_http),
    ] {
        let ratio = ours.as_secs_f64() / bare.as_secs_f64();
        println!("{name:<8} {bare:>10.1?} {ours:>10.1?} {ratio:>7.2}");
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}}}}}}"#
    )
}

/// Times calls, the first ones left out.
fn timed(mut one: impl FnMut(usize)) -> Vec<Duration> {
    let mut times = Vec::with_capacity(CALLS);
    for id in 1..=WARM_UP + CALLS {
        let started = Instant::now();
        one(id);
        times.push(started.elapsed());
    }
    times.split_off(WARM_UP)
}

struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

fn bare_stdio() -> Vec<Duration> {
    let mut child = Command::new(fixture())
        .args(["--era", "handshake"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the fixture starts");
    let mut bare = Bare {
        stdin: child.stdin.take().expect("stdin is piped"),
        stdout: BufReader::new(child.stdout.take().expect("stdout is piped")),
        child,
    };
    bare.ask(INITIALIZE);
    writeln!(bare.stdin, "{INITIALIZED}").expect("the fixture reads");
    let times = timed(|id| bare.ask(&call(id)));
    drop(bare.stdin);
    let _ = bare.child.wait();
    times
}

impl Bare {
    fn ask(&mut self, message: &str) {
        self.stdin
            .write_all(format!("{message}\n").as_bytes())
            .expect("the fixture reads");
        let mut line = String::new();
        self.stdout
            .read_line(&mut line)
            .expect("the fixture answers");
        assert!(line.contains("result"), "{line}");
    }
}

fn bare_http(server: &Fixture) -> Vec<Duration> {
    let mut stream =
        BufReader::new(TcpStream::connect(server.address()).expect("the fixture listens"));
    stream
        .get_ref()
        .set_nodelay(true)
        .expect("a socket can be set");
    let head = exchange(&mut stream, INITIALIZE, "");
    let session = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"))
        .map_or(String::new(), |line| {
            format!("{line}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        });
    exchange(&mut stream, INITIALIZED, &session);
    timed(|id| {
        exchange(&mut stream, &call(id), &session);
    })
}

/// One request on a connection that stays open; gives the head of the response.
fn exchange(stream: &mut BufReader<TcpStream>, body: &str, headers: &str) -> String {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .get_mut()
        .write_all(request.as_bytes())
        .expect("the fixture reads");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).expect("the fixture answers");
        assert!(read > 0, "the fixture closed the connection: {head}");
    }
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the fixture answers");
    head
}

async fn proctor(server: Server) -> Vec<Duration> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "bench".to_owned(),
        started: String::new(),
        name: "bench".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let run = RunWriter::create(&folder.path().join("run"), Redactor::default(), started)
        .expect("a run can be made");
    let trial = TrialStarted {
        case: "bench".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    };
    let trial = run.trial(0, "bench", trial).expect("a trial can be made");
    let options = options(Recorder::new(trial, Instant::now()));
    let client = Client::connect(&server, &options)
        .await
        .expect("the fixture comes up");
    let arguments: Map<String, Value> = json!({"text": "hi"})
        .as_object()
        .cloned()
        .expect("an object");
    let mut times = Vec::with_capacity(WARM_UP + CALLS);
    for _ in 0..WARM_UP + CALLS {
        let arguments = arguments.clone();
        let started = Instant::now();
        client
            .call_tool("echo", arguments)
            .await
            .expect("the fixture answers");
        times.push(started.elapsed());
    }
    client.close().await;
    times.split_off(WARM_UP)
}

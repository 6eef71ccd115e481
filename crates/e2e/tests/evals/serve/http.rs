//! Evals in front of servers on HTTP: one plain request at a time, as the bytes that go over the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use mcp_evals::{Capability, splice};
use proctor_e2e::{Fixture, log_lines, proctor};
use serde_json::{Value, json};

use super::spoken::SpokenSession;
use super::{ListeningServer, Shelf, one, text};
use crate::ids;

const JSON: (&str, &str) = ("Accept", "application/json, text/event-stream");

/// What came back for one request.
struct ReceivedBytes {
    head: String,
    body: Vec<u8>,
}

impl ReceivedBytes {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// The message in it, be it the body or the data of the last event.
    fn message(&self) -> Value {
        let body = text(&self.body);
        let line = body.lines().rfind(|line| line.contains('{')).unwrap();
        serde_json::from_str(line.trim_start_matches("data:").trim()).unwrap()
    }
}

fn open(url: &str, method: &str, headers: &[(&str, &str)], body: &[u8]) -> BufReader<TcpStream> {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut request =
        format!("{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if method == "POST" {
        request.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ));
    }
    stream
        .write_all(&[request.as_bytes(), b"\r\n", body].concat())
        .unwrap();
    BufReader::new(stream)
}

fn head(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    head
}

/// The next piece of a body that comes in chunks; nothing at its end.
fn chunk(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut size = String::new();
    stream.read_line(&mut size).unwrap();
    let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap()];
    stream.read_exact(&mut chunk).unwrap();
    stream.read_exact(&mut [0; 2]).unwrap();
    chunk
}

fn post(url: &str, headers: &[(&str, &str)], body: &str) -> ReceivedBytes {
    let mut stream = open(url, "POST", headers, body.as_bytes());
    let mut got = ReceivedBytes {
        head: head(&mut stream),
        body: Vec::new(),
    };
    // The fixture says neither how long that is, nor that it has ended.
    if got.head.starts_with("HTTP/1.1 202") {
        return got;
    }
    if got.header("transfer-encoding").is_some() {
        loop {
            let chunk = chunk(&mut stream);
            got.body.extend(&chunk);
            if chunk.is_empty() {
                return got;
            }
        }
    }
    match got.header("content-length").map(str::parse) {
        Some(length) => {
            got.body.resize(length.unwrap(), 0);
            stream.read_exact(&mut got.body).unwrap();
        }
        None => drop(stream.read_to_end(&mut got.body).unwrap()),
    }
    got
}

fn ask(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0", "id":{id} ,"method":"{method}","params":{params}}}"#)
}

fn initialize() -> String {
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    ask("1", "initialize", params)
}

const META: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}"#;

fn stateless(method: &str) -> [(&str, &str); 3] {
    [
        JSON,
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ]
}

/// The lines of a body, with the capability in the one that answers.
fn declared(body: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| {
        let start = line.iter().position(|byte| *byte == b'{');
        let spliced = start.and_then(|start| {
            let spliced = splice::declare(&line[start..], &Capability::with_list_changed()).ok()?;
            Some([&line[..start], &spliced].concat())
        });
        spliced.unwrap_or_else(|| line.to_vec())
    };
    let lines: Vec<Vec<u8>> = body.split(|byte| *byte == b'\n').map(line).collect();
    lines.join(&b'\n')
}

/// The head without what differs from exchange to exchange.
fn plain(got: &ReceivedBytes) -> Vec<String> {
    let lines = got.head.lines().filter(|line| {
        let line = line.to_lowercase();
        ![
            "mcp-session-id",
            "content-length",
            "transfer-encoding",
            "connection",
            "date",
        ]
        .iter()
        .any(|name| line.starts_with(name))
    });
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn e35_http_exchanges_are_the_same_but_for_the_capability() {
    for mode in ["json-responses", "sse-responses", "crlf"] {
        let shelf = Shelf::of("a");
        let direct = Fixture::http(&["--mode", mode]);
        let log = shelf.path("log");
        let behind = Fixture::http(&["--mode", mode, "--log", &log]);
        let served = ListeningServer::before(&shelf, behind, &[]);
        let sessions: Vec<String> = [direct.url(), &served.url]
            .iter()
            .map(|url| {
                post(url, &[JSON], &initialize())
                    .header("mcp-session-id")
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let call = r#"{"name":"add","arguments":{"a":12345678901234567890,"b":1e-7}}"#;
        let exchanges = [
            (initialize(), false, None),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
                true,
                None,
            ),
            (ask("\"é\"", "tools/list", "{}"), true, None),
            (ask("3", "no/such/method", r#"{"n":1.50}"#), true, None),
            (ask("4", "tools/call", call), true, None),
            ("no JSON".to_owned(), true, None),
            (format!("[{}]", ask("5", "evals/list", "{}")), true, None),
            (
                ask("6", "server/discover", META),
                false,
                Some("server/discover"),
            ),
            (ask("7", "evals/list", META), false, Some("tools/list")),
        ];
        for (body, in_session, method) in &exchanges {
            let both: Vec<ReceivedBytes> = [direct.url(), &served.url]
                .iter()
                .zip(&sessions)
                .map(|(url, session)| {
                    let mut headers = vec![JSON, ("X-Unknown", "kept")];
                    if *in_session {
                        headers.push(("Mcp-Session-Id", session));
                    }
                    if let Some(method) = method {
                        headers = stateless(method).to_vec();
                    }
                    post(url, &headers, body)
                })
                .collect();
            let place = format!("{mode} {body}");
            assert_eq!(plain(&both[1]), plain(&both[0]), "{place}");
            let expected = declared(&both[0].body);
            assert_eq!(text(&both[1].body), text(&expected), "{place}");
            let is_handshake = body.contains("initialize\"") || body.contains("discover");
            assert_eq!(expected != both[0].body, is_handshake, "{place}");
            if let Some(length) = both[1].header("content-length") {
                assert_eq!(
                    length.parse::<usize>().unwrap(),
                    both[1].body.len(),
                    "{place}"
                );
            }
        }
        let seen = served.finish();
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        let came: Vec<Value> = log_lines(Path::new(&log));
        let kept = came
            .iter()
            .any(|line| line.to_string().to_lowercase().contains("x-unknown: kept"));
        assert!(kept, "{came:?}");
    }
}

#[test]
fn e35_evals_are_listed_over_http_as_the_client_accepts() {
    let shelf = Shelf::new(&[one("a"), one("b")]);
    let log = shelf.path("log");
    let served = ListeningServer::before(&shelf, Fixture::http(&["--log", &log]), &[]);
    let list = ask("1.50", "evals/list", "{}");
    for accept in [
        "application/json, text/event-stream",
        "application/json",
        "*/*",
        "",
    ] {
        let headers = [("Accept", accept)];
        let got = post(
            &served.url,
            &headers[..usize::from(!accept.is_empty())],
            &list,
        );
        assert_eq!(
            got.header("content-type"),
            Some("application/json"),
            "{accept}"
        );
        assert!(
            text(&got.body)
                .starts_with(r#"{"jsonrpc":"2.0","id":1.50,"result":{"evals":[{"id":"a""#)
        );
    }
    let got = post(&served.url, &[("Accept", "text/event-stream")], &list);
    assert_eq!(got.header("content-type"), Some("text/event-stream"));
    assert_eq!(ids(&got.message()), ["a", "b"]);
    let got = post(
        &served.url,
        &[JSON],
        &ask("1", "evals/list", r#"{"cursor":"x"}"#),
    );
    assert_eq!(got.message()["error"]["code"], -32602);
    let got = post(
        &served.url,
        &stateless("evals/list"),
        &ask("1", "evals/list", META),
    );
    assert_eq!(got.message()["result"]["resultType"], "complete");
    served.finish();
    assert!(!std::fs::read_to_string(log).unwrap().contains("evals/list"));
}

#[test]
fn e7_e35_open_streams_are_told_of_a_change_once() {
    let shelf = Shelf::of("first");
    let served = ListeningServer::before(&shelf, Fixture::http(&[]), &[]);
    let session = |initialized: bool| {
        let id = post(&served.url, &[JSON], &initialize());
        let id = id.header("mcp-session-id").unwrap().to_owned();
        let headers = [JSON, ("Mcp-Session-Id", &id)];
        if initialized {
            post(
                &served.url,
                &headers,
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            );
        }
        let mut stream = open(
            &served.url,
            "GET",
            &[("Accept", "text/event-stream"), ("Mcp-Session-Id", &id)],
            b"",
        );
        assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
        (id, stream)
    };
    let (_, mut told) = session(true);
    let (_, untold) = session(false);
    shelf.write(&json!([one("second")]).to_string());
    served.wait_for(": reloaded, ");
    let event = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/evals/list_changed\"}\n\n";
    assert_eq!(text(&chunk(&mut told)), event);
    let listed = post(&served.url, &[JSON], &ask("1", "evals/list", "{}"));
    assert_eq!(ids(&listed.message()), ["second"]);
    // Once more: the other stream would have had two by now.
    shelf.write(&json!([one("third")]).to_string());
    assert_eq!(text(&chunk(&mut told)), event);
    untold.get_ref().set_nonblocking(true).unwrap();
    let mut byte = [0];
    assert!((&mut untold.get_ref()).read(&mut byte).is_err());
    served.finish();
}

#[test]
fn e35_on_the_older_http_evals_come_on_the_stream() {
    let shelf = Shelf::of("first");
    let log = shelf.path("log");
    let served = ListeningServer::before(&shelf, Fixture::sse(&["--log", &log]), &[]);
    let mut stream = open(&served.url, "GET", &[("Accept", "text/event-stream")], b"");
    head(&mut stream);
    let mut seen = String::new();
    let mut until = |mark: &str| {
        while !seen.contains(mark) {
            seen.push_str(&text(&chunk(&mut stream)));
        }
        let end = seen.find(mark).unwrap() + mark.len();
        seen.drain(..end).collect::<String>()
    };
    let endpoint = until("\n\n");
    let address = endpoint
        .lines()
        .find_map(|line| line.strip_prefix("data:"))
        .unwrap()
        .trim();
    let origin = &served.url[..served.url[7..].find('/').unwrap() + 7];
    let address = if address.starts_with("http") {
        address.to_owned()
    } else {
        format!("{origin}{address}")
    };
    let say = |body: &str| {
        let got = post(&address, &[], body);
        assert!(got.head.starts_with("HTTP/1.1 202"), "{}", got.head);
    };
    say(&initialize());
    let answer = until("\n\n");
    assert!(
        answer.contains(r#""dev.mcp-proctor/evals":{"listChanged":true}"#),
        "{answer}"
    );
    say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    say(&ask("\"x\"", "evals/list", "{}"));
    assert!(until("\n\n").contains(r#""id":"x","result":{"evals":[{"id":"first""#));
    shelf.write(&json!([one("second")]).to_string());
    assert!(until("\n\n").contains("notifications/evals/list_changed"));
    say(&ask("\"y\"", "evals/list", "{}"));
    assert!(until("\n\n").contains(r#""id":"second""#));
    served.finish();
    assert!(!std::fs::read_to_string(log).unwrap().contains("evals/list"));
}

#[test]
fn e35_proctor_runs_what_is_served_over_http() {
    for (fixture, words) in [
        (Fixture::http(&["--era", "handshake"]), &[][..]),
        (Fixture::http(&["--era", "stateless"]), &["--no-token"][..]),
        (Fixture::http(&["--mode", "sse-responses"]), &[]),
        (Fixture::sse(&[]), &[]),
    ] {
        let shelf = Shelf::of("adds");
        let served = ListeningServer::before(&shelf, fixture, words);
        let ran = std::process::Command::new(proctor())
            .args(["evals", "run", "--yes", "--url", &served.url])
            .current_dir(shelf.path(""))
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}{}",
            text(&ran.stdout),
            text(&ran.stderr)
        );
        assert_eq!(served.finish().code, Some(0));
    }
}

#[test]
fn e35_who_has_no_token_is_turned_away() {
    let shelf = Shelf::of("a");
    let served = ListeningServer::before(&shelf, Fixture::http(&[]), &[]);
    let (origin, _) = served.url.rsplit_once("/mcp").unwrap();
    let (bare, token) = origin.rsplit_once('/').unwrap();
    let list = ask("1", "evals/list", "{}");
    let wrong = token.replace(|c: char| c.is_ascii_digit(), "x");
    for url in [
        format!("{bare}/mcp"),
        format!("{bare}/{wrong}/mcp"),
        format!("{origin}/other"),
    ] {
        assert!(
            post(&url, &[JSON], &list).head.starts_with("HTTP/1.1 403"),
            "{url}"
        );
    }
    let origin = [JSON, ("Origin", "https://example.com")];
    assert!(
        post(&served.url, &origin, &list)
            .head
            .starts_with("HTTP/1.1 403")
    );
    served.finish();
}

#[test]
fn e35_a_server_that_is_not_there_is_told_of() {
    let shelf = Shelf::of("a");
    let served = ListeningServer::at(&shelf, "http://127.0.0.1:1/mcp", &[]);
    let mut stream = open(&served.url, "POST", &[JSON], initialize().as_bytes());
    let mut nothing = Vec::new();
    let _ = stream.read_to_end(&mut nothing);
    assert!(nothing.is_empty());
    served.wait_for("warning: the server does not answer: ");
    // The evals are there all the same.
    assert_eq!(
        ids(&post(&served.url, &[JSON], &ask("1", "evals/list", "{}")).message()),
        ["a"]
    );
    served.finish();
}

#[test]
fn e35_endless_bodies_pass_in_little_memory() {
    let shelf = Shelf::of("a");
    for sse in ["json-responses", "sse-responses"] {
        let endless = [
            "--mode",
            "endless-line=300000000",
            "--on",
            "*",
            "--mode",
            sse,
        ];
        let served = ListeningServer::before(&shelf, Fixture::http(&endless), &[]);
        // The answer to a handshake is looked at, as far as that goes.
        let mut stream = open(&served.url, "POST", &[JSON], initialize().as_bytes());
        let mut seen = 0;
        let mut buffer = vec![0; 1 << 20];
        while seen < 290_000_000 {
            let read = stream.get_mut().read(&mut buffer).unwrap();
            assert!(read > 0, "{sse}: {seen}");
            seen += read;
        }
        let peak = served.spoken.peak_kib();
        assert!(peak < 150 << 10, "{sse}: {peak} KiB");
        served.finish();
    }
}

#[test]
fn e35_the_address_can_be_chosen_and_is_told_to_scripts() {
    let shelf = Shelf::of("a");
    let port = crate::http::free_port().to_string();
    let words = |port: &str| {
        let mut words = shelf.serving(&[]);
        words.pop();
        let more = [
            "--url",
            "http://127.0.0.1:1/mcp",
            "-o",
            "json",
            "--no-token",
            "--port",
            port,
        ];
        words.extend(more.map(str::to_owned));
        words
    };
    let mut spoken = SpokenSession::start(&words(&port));
    let told = [spoken.line(), spoken.line(), spoken.line()].concat();
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told, json!({"url": format!("http://127.0.0.1:{port}/mcp")}));
    let taken = SpokenSession::start(&words(&port)).end();
    assert_eq!(taken.code, Some(3));
    assert!(taken.stderr.contains(&port), "{}", taken.stderr);
    assert_eq!(spoken.terminate().code, Some(0));
}

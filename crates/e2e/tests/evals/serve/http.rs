//! Evals in front of servers on HTTP: one plain request at a time, as the bytes that go over the wire.

mod bytes;
mod transparency;

use std::io::Read;

use proctor_e2e::port::ReservedPort;
use proctor_e2e::{Fixture, proctor};
use serde_json::{Value, json};

use self::bytes::{chunk, head, open, post};
use super::spoken::SpokenSession;
use super::{ListeningServer, Shelf, one, text};
use crate::ids;

const JSON: (&str, &str) = ("Accept", "application/json, text/event-stream");

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
fn e35_the_address_can_be_chosen_and_is_told_to_scripts() {
    let shelf = Shelf::of("a");
    let reserved = ReservedPort::new();
    let port = reserved.number().to_string();
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

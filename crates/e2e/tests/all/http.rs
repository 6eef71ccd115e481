//! Streamable HTTP in both eras, and its faults.

use std::io::{BufRead, Read};

use proctor_e2e::Fixture;
use serde_json::json;

use crate::wire::{
    Response, open_session, post, read_chunk, read_head, read_response, said, send, send_echo,
    send_stateless, stateless,
};

const ECHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
const EVENTS: (&str, &str) = ("Accept", "text/event-stream");

/// The response to `echo` in the stateless era, in this mode.
fn echo_in(mode: &str) -> Response {
    let fixture = Fixture::http(&["--mode", mode]);
    read_response(&mut send_echo(fixture.address()))
}

#[test]
fn the_url_is_printed_and_other_paths_are_not_found() {
    let fixture = Fixture::http(&[]);
    assert_eq!(fixture.url(), format!("http://{}/mcp", fixture.address()));
    assert_eq!(
        read_response(&mut send(fixture.address(), "POST", "/", &[], "")).status,
        404
    );
    assert_eq!(
        read_response(&mut send(fixture.address(), "PUT", "/mcp", &[], "")).status,
        405
    );
    let elsewhere = [("Origin", "http://example.org")];
    assert_eq!(
        read_response(&mut send(fixture.address(), "POST", "/mcp", &elsewhere, "")).status,
        403
    );
    assert_eq!(
        read_response(&mut send(fixture.address(), "POST", "/mcp", &[], ECHO)).status,
        406
    );
}

#[test]
fn the_handshake_era_has_sessions() {
    let fixture = Fixture::http(&["--era", "handshake"]);
    let address = fixture.address();
    assert_eq!(post(address, None, ECHO).status, 400);
    assert_eq!(post(address, Some("wrong"), ECHO).status, 404);
    let session = open_session(address);
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(post(address, Some(&session), initialized).status, 202);
    assert_eq!(said(&post(address, Some(&session), ECHO).json()), "hi");
    let header = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(
        read_response(&mut send(address, "DELETE", "/mcp", &header, "")).status,
        200
    );
    assert_eq!(post(address, Some(&session), ECHO).status, 404);
    assert_eq!(stateless(address, "server/discover", None, "").status, 400);
}

#[test]
fn sessions_can_be_left_out() {
    let fixture = Fixture::http(&["--mode", "no-session"]);
    assert_eq!(open_session(fixture.address()), "");
    assert_eq!(said(&post(fixture.address(), None, ECHO).json()), "hi");
}

#[test]
fn changes_are_told_on_the_get_stream() {
    let fixture = Fixture::http(&["--mode", "tools-change"]);
    let address = fixture.address();
    let session = open_session(address);
    let headers = [EVENTS, ("Mcp-Session-Id", &session)];
    let mut stream = send(address, "GET", "/mcp", &headers, "");
    assert!(read_head(&mut stream).contains("text/event-stream"));
    post(address, Some(&session), ECHO);
    assert!(
        String::from_utf8(read_chunk(&mut stream))
            .unwrap()
            .contains("list_changed")
    );
}

#[test]
fn get_can_be_refused() {
    for arguments in [["--mode", "no-get"], ["--era", "stateless"]] {
        let fixture = Fixture::http(&arguments);
        assert_eq!(
            read_response(&mut send(fixture.address(), "GET", "/mcp", &[EVENTS], "")).status,
            405
        );
    }
}

#[test]
fn questions_go_out_on_the_response_and_are_answered_by_a_post() {
    let fixture = Fixture::http(&["--mode", "asks-client=sampling"]);
    let address = fixture.address();
    let session = open_session(address);
    let headers = [("Accept", "*/*"), ("Mcp-Session-Id", &session)];
    let mut stream = send(address, "POST", "/mcp", &headers, ECHO);
    read_head(&mut stream);
    assert!(
        String::from_utf8(read_chunk(&mut stream))
            .unwrap()
            .contains("sampling/createMessage")
    );
    let answer = json!({"jsonrpc": "2.0", "id": "ask-1", "result": {}});
    assert_eq!(
        post(address, Some(&session), &answer.to_string()).status,
        202
    );
    assert!(
        String::from_utf8(read_chunk(&mut stream))
            .unwrap()
            .contains("\"hi\"")
    );
    assert_eq!(read_chunk(&mut stream), b"");
}

#[test]
fn the_stateless_era_wants_headers_that_fit_the_body() {
    let fixture = Fixture::http(&[]);
    let address = fixture.address();
    let echo = r#""name":"echo","arguments":{"text":"hi"}"#;
    assert_eq!(
        said(&stateless(address, "tools/call", Some("echo"), echo).json()),
        "hi"
    );
    assert_eq!(
        said(&stateless(address, "tools/call", Some("=?base64?ZWNobw==?="), echo).json()),
        "hi"
    );
    for name in [None, Some("add")] {
        let response = stateless(address, "tools/call", name, echo);
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (400, &json!(-32020))
        );
    }
    let env = stateless(
        address,
        "tools/call",
        Some("env"),
        r#""name":"env","arguments":{"name":"PATH"}"#,
    );
    assert_eq!(
        env.json()["error"]["code"],
        -32020,
        "`Mcp-Param-Variable` is missing"
    );
    let unknown = stateless(address, "nothing", None, "");
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    let discovered = stateless(address, "server/discover", None, "").json();
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
}

#[test]
fn a_stateless_server_refuses_initialize() {
    let fixture = Fixture::http(&["--era", "stateless"]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let response = post(fixture.address(), None, body);
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (400, &json!(-32022))
    );
}

#[test]
fn stateless_clients_listen_by_post() {
    let fixture = Fixture::http(&["--mode", "tools-change"]);
    let address = fixture.address();
    let mut stream = send_stateless(
        address,
        "subscriptions/listen",
        None,
        r#""notifications":{"toolsListChanged":true}"#,
    );
    read_head(&mut stream);
    assert!(
        String::from_utf8(read_chunk(&mut stream))
            .unwrap()
            .contains("acknowledged")
    );
    read_response(&mut send_echo(address));
    assert!(
        String::from_utf8(read_chunk(&mut stream))
            .unwrap()
            .contains("\"io.modelcontextprotocol/subscriptionId\":7")
    );
}

#[test]
fn closing_the_response_cancels_in_the_stateless_era() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let fixture = Fixture::http(&[
        "--log",
        path.to_str().unwrap(),
        "--mode",
        "answer-after-cancel",
        "--times",
        "1",
    ]);
    drop(send_echo(fixture.address()));
    let answered = || {
        proctor_e2e::log_lines(&path)
            .iter()
            .filter(|line| line["dir"] == "out")
            .count()
    };
    let end = std::time::Instant::now() + std::time::Duration::from_mins(2);
    while answered() == 0 {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn the_kind_of_response_can_be_chosen() {
    let events = echo_in("sse-responses");
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    assert_eq!(said(&events.events()[0]), "hi");
    let fixture = Fixture::http(&[
        "--mode",
        "json-responses",
        "--mode",
        "flood-notifications=3",
    ]);
    let plain = read_response(&mut send_echo(fixture.address()));
    assert_eq!(said(&plain.json()), "hi");
    let flood = echo_in("flood-notifications=3").events();
    assert_eq!((flood.len(), said(&flood[3])), (4, "hi"));
}

#[test]
fn event_streams_can_have_a_bom_and_crlf() {
    let fixture = Fixture::http(&["--mode", "sse-responses", "--mode", "bom", "--mode", "crlf"]);
    let text = read_response(&mut send_echo(fixture.address())).text();
    assert!(text.starts_with("\u{feff}event: message\r\ndata: {") && text.ends_with("}\r\n\r\n"));
}

#[test]
fn statuses_and_redirects_are_as_asked() {
    let response = echo_in("http-status=503");
    assert_eq!(
        (response.status, response.text().as_str()),
        (503, "status 503 was asked for")
    );
    let response = echo_in("redirect=http://example.org/mcp");
    assert_eq!(
        (response.status, response.header("location")),
        (307, Some("http://example.org/mcp"))
    );
}

#[test]
fn bodies_are_cut_off() {
    let response = echo_in("truncated-body");
    let length: usize = response.header("content-length").unwrap().parse().unwrap();
    assert!(response.body.len() < length);
}

#[test]
fn heads_bodies_and_streams_do_not_end() {
    let mode = |mode| Fixture::http(&["--mode", mode]);
    let fixture = mode("endless-headers=1000");
    let mut stream = send_echo(fixture.address());
    let head = read_head(&mut stream);
    assert_eq!(
        (head.lines().count(), head.contains("\r\n\r\n")),
        (1001, false)
    );

    let fixture = mode("endless-chunks");
    let mut stream = send_echo(fixture.address());
    read_head(&mut stream);
    assert!((0..1000).all(|_| read_chunk(&mut stream).trim_ascii().is_empty()));

    let fixture = mode("silent-sse");
    let mut stream = send_echo(fixture.address());
    assert!(read_head(&mut stream).contains("text/event-stream"));
    assert_silent(&mut stream);

    let fixture = mode("never-answer");
    assert_silent(&mut send_echo(fixture.address()));

    let fixture = mode("slow-loris=200");
    let mut stream = send_echo(fixture.address());
    read_head(&mut stream);
    assert!(stream.fill_buf().unwrap().len() < 20);
}

fn assert_silent(stream: &mut std::io::BufReader<std::net::TcpStream>) {
    let quiet = Some(std::time::Duration::from_millis(100));
    stream.get_ref().set_read_timeout(quiet).unwrap();
    assert_eq!(
        stream.read(&mut [0]).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[test]
fn an_endless_body_streams() {
    let fixture = Fixture::http(&["--mode", "sse-responses", "--mode", "endless-line"]);
    let mut stream = send_echo(fixture.address());
    read_head(&mut stream);
    let mut bytes = vec![0; 1 << 20];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes.ends_with(b"xxxxxxxx"));
}

#[test]
fn the_log_has_the_heads_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let fixture = Fixture::http(&["--log", path.to_str().unwrap()]);
    read_response(&mut send_echo(fixture.address()));
    let log = proctor_e2e::log_lines(&path);
    assert!(
        log[0]["head"]
            .as_str()
            .unwrap()
            .contains("Mcp-Name: echo\r\n")
    );
    assert_eq!(log[1]["dir"], "out");
}

#[test]
fn connections_are_used_again() {
    let fixture = Fixture::http(&[]);
    let mut stream = send_echo(fixture.address());
    assert_eq!(read_response(&mut stream).status, 200);
    let body = "POST /mcp HTTP/1.1\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    std::io::Write::write_all(stream.get_mut(), body.as_bytes()).unwrap();
    assert_eq!(read_response(&mut stream).json()["error"]["code"], -32700);
}

#[test]
fn an_http_server_can_exit_in_a_call() {
    let mut fixture = Fixture::http(&["--mode", "exit-in-call=9"]);
    let mut stream = send_echo(fixture.address());
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(fixture.child().wait().unwrap().code(), Some(9));
}

//! What passes is what was sent.

use proctor_core::suite::server::Transport;
use proctor_record::event::{Direction, WireKind};

use super::raw::{RawServer, answer, ask, chunk, chunked, request};
use super::stage::{Stage, http, server};

/// JSON that nobody would write, and that a decoder would write in another way.
const ODD: &[u8] = b" {\"jsonrpc\":\"2.0\", \"id\":1.0,\r\n\"method\":\"x/unknown\",\"\\u0061\":1e2,\"a\":[ ],\"t\":\"\xff\"} \n";

fn sorted(head: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = head.trim_end().lines().collect();
    lines[1..].sort_unstable();
    lines
}

#[tokio::test]
async fn heads_and_bodies_pass_as_they_are() {
    let upstream = RawServer::start(|_| {
        let headers = [
            "X-Odd-CASE: a  b",
            "x-twice: 1",
            "x-twice: 2",
            "Content-Type: application/json",
        ];
        vec![answer("299 Rather Fine", &headers, ODD)]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let headers = [
        "Mcp-SESSION-Id: s",
        "x-unknown: 1",
        "X-Unknown: 2",
        "Accept-Encoding: gzip",
        "Connection: x-hop, keep-alive",
        "X-Hop: 1",
        "Content-Type: application/json",
    ];
    let head = request("POST /mcp", &address, &headers, &"?".repeat(ODD.len()));
    let sent = head.split("\r\n\r\n").next().unwrap();
    let got = ask(&address, [sent.as_bytes(), b"\r\n\r\n", ODD].concat())
        .await
        .unwrap();
    assert_eq!(got.body, ODD);
    let length = format!("Content-Length: {}", ODD.len());
    let expected = [
        "HTTP/1.1 299 Rather Fine",
        &length,
        "Content-Type: application/json",
        "X-Odd-CASE: a  b",
        "x-twice: 1",
        "x-twice: 2",
    ];
    assert_eq!(sorted(&got.head), expected);
    let seen = upstream.seen();
    assert_eq!(seen[0].body, ODD);
    let host = format!("Host: {}", upstream.address);
    let expected = [
        "POST /mcp HTTP/1.1",
        &length,
        "Content-Type: application/json",
        &host,
        "Mcp-SESSION-Id: s",
        "X-Unknown: 2",
        "x-unknown: 1",
    ];
    assert_eq!(sorted(&seen[0].head), expected);

    let record = stage.end().await;
    for way in [Direction::ToServer, Direction::ToClient] {
        assert_eq!(record.frames(way), [(1, Ok(ODD.to_vec()))]);
    }
    let opened = record.opened();
    assert_eq!(opened.len(), 1);
    assert_eq!(
        (opened[0].transport, opened[0].target.as_str()),
        (WireKind::Http, "as written")
    );
    assert_eq!(
        record.lines(),
        [
            &format!("POST http://{}/mcp", upstream.address),
            "299 <unknown status code>"
        ]
    );
    assert_eq!(record.closed()[0].reason, "Proctor closed the proxy");
}

#[tokio::test]
async fn bodies_in_chunks_pass_as_they_come() {
    let upstream = RawServer::start(|_| {
        let mut parts = vec![chunked(&["Content-Type: application/json"])];
        parts.extend(ODD.chunks(7).map(chunk));
        parts.push(chunk(b""));
        parts
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let mut sent =
        format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes();
    sent.extend(ODD.chunks(5).flat_map(chunk));
    sent.extend(chunk(b""));
    let got = ask(&address, sent).await.unwrap();
    assert_eq!(got.body, ODD);
    assert_eq!(upstream.seen()[0].body, ODD);
    let record = stage.end().await;
    for way in [Direction::ToServer, Direction::ToClient] {
        assert_eq!(record.frames(way), [(1, Ok(ODD.to_vec()))]);
    }
}

#[tokio::test]
async fn who_comes_back_to_a_session_is_not_taken_for_the_older_http() {
    let upstream = RawServer::start(|_| {
        vec![
            chunked(&["Content-Type: text/event-stream"]),
            chunk(b"data: {\"a\":1}\n\n"),
            chunk(b""),
        ]
    })
    .await;
    for (header, wire) in [
        ("Mcp-Session-Id: s", WireKind::Http),
        ("X: y", WireKind::Sse),
    ] {
        let stage = Stage::open(&http(&upstream.url())).await;
        let address = stage.address();
        let headers = [header, "Accept: text/event-stream"];
        let got = ask(&address, request("GET /mcp", &address, &headers, "")).await;
        assert!(got.is_some());
        let record = stage.end().await;
        let wires: Vec<WireKind> = record.opened().iter().map(|o| o.transport).collect();
        assert_eq!(wires, [wire], "{header}");
        assert_eq!(record.said(Direction::ToClient), [r#"{"a":1}"#]);
    }
}

#[tokio::test]
async fn a_length_beside_chunks_cuts_nothing() {
    let upstream = RawServer::start(|_| {
        let headers = ["Content-Type: application/json", "Content-Length: 2"];
        vec![chunked(&headers), chunk(ODD), chunk(b"")]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let got = ask(&address, request("POST /mcp", &address, &[], "{}")).await;
    assert_eq!(got.unwrap().body, ODD);
    let record = stage.end().await;
    assert_eq!(record.frames(Direction::ToClient), [(1, Ok(ODD.to_vec()))]);
}

#[tokio::test]
async fn a_stream_passes_with_everything_that_is_in_it() {
    let stream = ": hello\n\nid: 1\nretry: 10\ndata:\n\nid: 2\nodd: field\ndata: {\"a\":1}\n\n\
        event: message\r\ndata: {\"b\":\r\ndata: 2}\r\n\r\nevent: endpoint\ndata: http://elsewhere/\n\n\
        :ping\n\ndata: last";
    let upstream = RawServer::start(move |_| {
        let mut parts = vec![chunked(&["Content-Type: text/event-stream; charset=utf-8"])];
        parts.extend(stream.as_bytes().chunks(9).map(chunk));
        parts.push(chunk(b""));
        parts
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let got = ask(&address, request("POST /mcp", &address, &[], "{}"))
        .await
        .unwrap();
    assert_eq!(got.text(), stream);
    let record = stage.end().await;
    let expected = ["{\"a\":1}", "{\"b\":\n2}", "http://elsewhere/"];
    assert_eq!(record.said(Direction::ToClient), expected);
    let last = "the last event is incomplete (4 bytes): last";
    assert_eq!(record.lines().last(), Some(&last));
}

#[tokio::test]
async fn the_query_of_the_address_is_the_servers_secret() {
    let upstream = RawServer::start(|_| vec![answer("202 Accepted", &[], b"")]).await;
    let url = format!("http://me:pw@{}/a/mcp?key=Hush", upstream.address);
    let headers = [("X-Key".to_owned(), "ours".to_owned())].into();
    let stage = Stage::open(&server(Transport::Http { url, headers })).await;
    let address = stage.address();
    assert_eq!(stage.proxy.url(), format!("http://{address}/a/mcp"));
    let sent = request("POST /a/mcp?own=1", &address, &["x-key: theirs"], "{}");
    assert_eq!(ask(&address, sent).await.unwrap().status(), "202");
    let sent = request("DELETE /a/mcp", &address, &[], "");
    assert_eq!(ask(&address, sent).await.unwrap().status(), "202");
    let seen = upstream.seen();
    assert!(
        seen[0]
            .head
            .starts_with("POST /a/mcp?key=Hush&own=1 HTTP/1.1\r\n")
    );
    assert!(
        seen[1]
            .head
            .starts_with("DELETE /a/mcp?key=Hush HTTP/1.1\r\n")
    );
    assert_eq!(seen[0].header("x-key"), Some("ours"));
    assert_eq!(seen[0].header("authorization"), Some("Basic bWU6cHc="));
    let record = stage.end().await;
    assert!(
        !record
            .lines()
            .iter()
            .any(|line| line.contains("Hush") || line.contains("pw"))
    );
}

#[tokio::test]
async fn what_is_encoded_anyway_passes_and_is_kept_as_it_is() {
    let upstream = RawServer::start(|_| {
        let headers = ["Content-Type: text/event-stream", "Content-Encoding: gzip"];
        vec![answer("200 OK", &headers, b"\x1f\x8b\x00\xff")]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let got = ask(&address, request("POST /mcp", &address, &[], "{}"))
        .await
        .unwrap();
    assert_eq!(
        (got.body.as_slice(), got.header("content-encoding")),
        (&b"\x1f\x8b\x00\xff"[..], Some("gzip"))
    );
    let record = stage.end().await;
    assert_eq!(record.frames(Direction::ToClient), [(1, Ok(got.body))]);
    assert!(record.findings()[0].detail.contains("`gzip`"));
}

#[tokio::test]
async fn redirects_are_the_clients_business() {
    let upstream = RawServer::start(|_| {
        vec![answer(
            "307 Temporary Redirect",
            &["Location: http://elsewhere/mcp"],
            b"",
        )]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let got = ask(&address, request("POST /mcp", &address, &[], "{}"))
        .await
        .unwrap();
    assert_eq!(
        (got.status(), got.header("location")),
        ("307", Some("http://elsewhere/mcp"))
    );
    assert_eq!(upstream.seen().len(), 1);
    let record = stage.end().await;
    assert!(
        record.findings()[0]
            .detail
            .contains("`http://elsewhere/mcp`")
    );
}

#[tokio::test]
async fn a_message_is_kept_before_its_end_goes_on() {
    // The record is read while the answer is still on its way.
    let upstream = RawServer::start(|came| {
        let stream = format!("data: {}\n\n", came.body.len());
        vec![
            chunked(&["Content-Type: text/event-stream"]),
            chunk(stream.as_bytes()),
        ]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let sent = request("POST /mcp", &address, &[], "[1,2,3]");
    let mut stream = super::raw::send(&address, sent).await;
    super::raw::receive_head(&mut stream).await.unwrap();
    assert_eq!(
        super::raw::receive_chunk(&mut stream).await.unwrap(),
        b"data: 7\n\n"
    );
    let kept = stage.kept();
    assert!(
        kept.contains("[1,2,3]") && kept.contains(r#""text":"7""#),
        "{kept}"
    );
    drop(stream);
    drop(stage);
}

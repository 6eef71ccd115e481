//! Servers that misbehave, and clients that go away: the proxy does as a direct connection would,
//! and the record tells.

use std::time::Duration;

use proctor_e2e::Fixture;
use proctor_record::event::Direction::{ToClient, ToServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::raw::{
    PATIENCE, RawServer, answer, ask, chunk, chunked, receive, receive_chunk, receive_head,
    request, send,
};
use super::stage::{Record, Stage, http, sse};

pub(super) const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A call in the stateless era.
pub(super) fn call(address: &str) -> String {
    let headers = [
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: echo",
    ];
    request("POST /mcp", address, &headers, CALL)
}

pub(super) fn details(record: &Record) -> Vec<String> {
    let findings = record.findings().into_iter();
    findings.map(|finding| finding.detail.clone()).collect()
}

/// What a server says to one call before it is as dead as it can be; the client gets no answer, or
/// not all of it. Gives the finding.
async fn breaks(url: &str) -> String {
    let stage = Stage::open(&http(url)).await;
    let address = stage.address();
    assert!(ask(&address, call(&address)).await.is_none());
    let record = stage.end().await;
    assert_eq!(record.said(ToServer), [CALL]);
    assert_eq!(record.said(ToClient), Vec::<String>::new());
    let details = details(&record);
    assert_eq!(details.len(), 1, "{details:?}");
    details[0].clone()
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_of_in_the_record_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let stage = Stage::open(&http(&format!("http://{address}/mcp"))).await;
    let own = stage.address();
    let mut stream = send(&own, call(&own)).await;
    let mut got = Vec::new();
    // Closed without a word, as a connection to nobody is.
    let read = timeout(PATIENCE, stream.read_to_end(&mut got))
        .await
        .unwrap();
    assert!(got.is_empty(), "{read:?} {got:?}");
    let record = stage.end().await;
    let details = details(&record);
    assert_eq!(details.len(), 1, "{details:?}");
    assert!(
        details[0].starts_with("the server did not answer: "),
        "{details:?}"
    );
    assert!(details[0].contains("refused"), "{details:?}");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_breaks_the_connection() {
    let fixture = Fixture::http(&["--mode", "kill-in-call"]);
    assert!(
        breaks(fixture.url())
            .await
            .starts_with("the server did not answer: ")
    );
    let fixture = Fixture::http(&["--mode", "truncated-body"]);
    assert!(
        breaks(fixture.url())
            .await
            .starts_with("the connection broke: ")
    );
    let fixture = Fixture::http(&["--mode", "endless-headers"]);
    assert!(
        breaks(fixture.url())
            .await
            .starts_with("the server did not answer: ")
    );
    let nonsense = RawServer::start(|_| vec![b"nonsense\r\n\r\n".to_vec(), Vec::new()]).await;
    assert!(
        breaks(&nonsense.url())
            .await
            .starts_with("the server did not answer: ")
    );
}

#[tokio::test]
async fn a_stream_that_breaks_off_keeps_what_came_before() {
    let upstream = RawServer::start(|_| {
        let head = chunked(&["Content-Type: text/event-stream"]);
        vec![head, chunk(b"data: {}\n\ndata: [1,"), Vec::new()]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let mut stream = send(&address, call(&address)).await;
    receive_head(&mut stream).await.unwrap();
    assert_eq!(
        receive_chunk(&mut stream).await.unwrap(),
        b"data: {}\n\ndata: [1,"
    );
    assert!(receive_chunk(&mut stream).await.is_none());
    let record = stage.end().await;
    assert_eq!(record.said(ToClient), ["{}"]);
    let broke = record.lines().pop().unwrap().to_owned();
    assert!(
        broke.starts_with("the connection broke: ") && broke.ends_with("(3 bytes): [1,"),
        "{broke}"
    );
    assert_eq!(details(&record).len(), 1);
}

/// A server that gets one request.
struct WaitingServer {
    url: String,
    /// The request has come.
    came: oneshot::Receiver<()>,
    /// The client has closed the connection.
    gone: oneshot::Receiver<()>,
}

/// A server that says something to the first request, and then waits for its client to go away.
async fn waiting(says: Vec<u8>) -> WaitingServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let ((arrive, came), (leave, gone)) = (oneshot::channel(), oneshot::channel());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut stream = tokio::io::BufReader::new(stream);
        receive(&mut stream).await.expect("a request");
        let _ = arrive.send(());
        stream.write_all(&says).await.expect("it reads");
        let _ = stream.read(&mut [0]).await;
        let _ = leave.send(());
    });
    WaitingServer { url, came, gone }
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_request_with_it() {
    let stream = [
        chunked(&["Content-Type: text/event-stream"]),
        chunk(b"data: {}\n\n"),
    ]
    .concat();
    for (says, told) in [
        (Vec::new(), "the client disconnected before the response"),
        (
            stream,
            "the client disconnected before the end of the response",
        ),
    ] {
        let is_silent = says.is_empty();
        let server = waiting(says).await;
        let stage = Stage::open(&http(&server.url)).await;
        let address = stage.address();
        let mut client = send(&address, call(&address)).await;
        if is_silent {
            let came = timeout(PATIENCE, server.came).await;
            came.expect("it comes").unwrap();
        } else {
            receive_head(&mut client).await.unwrap();
            receive_chunk(&mut client).await.unwrap();
        }
        drop(client);
        timeout(PATIENCE, server.gone)
            .await
            .expect("the server is told")
            .unwrap();
        let record = stage.end().await;
        assert_eq!(record.lines().last(), Some(&told));
        assert_eq!(details(&record), Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_end_of_the_proxy_ends_what_hangs() {
    let server = waiting(Vec::new()).await;
    let stage = Stage::open(&sse(&server.url)).await;
    let address = stage.address();
    let mut client = send(&address, request("GET /mcp", &address, &[], "")).await;
    timeout(PATIENCE, server.came)
        .await
        .expect("it comes")
        .unwrap();
    let record = timeout(PATIENCE, stage.end()).await.unwrap();
    timeout(PATIENCE, server.gone).await.unwrap().unwrap();
    assert!(receive_head(&mut client).await.is_none());
    assert_eq!(record.closed().len(), 1);
    assert_eq!(
        record.closed()[0].reason,
        "the client disconnected before the response"
    );
}

#[tokio::test]
async fn what_is_slow_or_silent_passes_as_it_comes() {
    let fixture = Fixture::http(&["--mode", "slow-loris=1"]);
    let stage = Stage::open(&http(fixture.url())).await;
    let address = stage.address();
    let got = ask(&address, call(&address)).await.unwrap();
    assert!(got.text().contains("\"id\":7"), "{}", got.text());
    assert_eq!(stage.end().await.said(ToClient), [got.text()]);

    let fixture = Fixture::http(&["--mode", "silent-sse"]);
    let stage = Stage::open(&http(fixture.url())).await;
    let address = stage.address();
    let mut client = send(&address, call(&address)).await;
    let head = timeout(PATIENCE, receive_head(&mut client)).await.unwrap();
    assert!(head.unwrap().contains("text/event-stream"));
    let nothing = timeout(Duration::from_millis(50), client.read_u8()).await;
    assert!(nothing.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_events_is_kept_and_passed_on() {
    const EVENTS: usize = 100_000;
    let all: Vec<u8> = (0..EVENTS)
        .flat_map(|n| format!("id: {n}\ndata: [{n}]\n\n").into_bytes())
        .collect();
    let sent = all.clone();
    let upstream = RawServer::start(move |_| {
        let mut parts = vec![chunked(&["Content-Type: text/event-stream"])];
        parts.extend(sent.chunks(100_003).map(chunk));
        parts.push(chunk(b""));
        parts
    })
    .await;
    // The older HTTP looks at every line of it.
    let stage = Stage::open(&sse(&upstream.url())).await;
    let address = stage.address();
    let mut stream = send(&address, request("GET /mcp", &address, &[], "")).await;
    let got = timeout(PATIENCE * 4, receive(&mut stream))
        .await
        .unwrap()
        .unwrap();
    assert!(got.body == all, "the stream is not the same");
    let said = stage.end().await.said(ToClient);
    assert_eq!(said.len(), EVENTS);
    assert_eq!(said.last(), Some(&format!("[{}]", EVENTS - 1)));
}

#[tokio::test]
async fn a_record_that_is_full_stops_nobody() {
    let upstream = RawServer::start(|came| vec![answer("200 OK", &[], &came.body)]).await;
    let stage = Stage::with_room(&http(&upstream.url()), 50_000).await;
    let address = stage.address();
    let body = format!("[\"{}\"]", "x".repeat(20_000));
    for _ in 0..4 {
        let got = ask(&address, request("POST /mcp", &address, &[], &body)).await;
        assert_eq!(got.unwrap().text(), body);
    }
    assert_eq!(upstream.seen().len(), 4);
    assert!(stage.recorder().take_error().is_some());
}

/// Says that it has a gigabyte, and says it.
async fn gigabyte() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = tokio::io::BufReader::new(stream);
            let head = receive_head(&mut stream).await.expect("a head");
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap_or("0\r");
            let length = length.split('\r').next().expect("a line");
            let length: u64 = length.parse().expect("a number");
            let mut body = (&mut stream).take(length);
            let taken = tokio::io::copy(&mut body, &mut tokio::io::sink()).await;
            assert_eq!(taken.expect("all of it"), length);
            let is_stream = head.contains("X-Stream");
            let kind = if is_stream {
                "text/event-stream"
            } else {
                "application/json"
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {GIGABYTE}\r\n\r\ndata: "
            );
            stream.write_all(head.as_bytes()).await.expect("it reads");
            let part = vec![b'x'; 1 << 20];
            let mut left = GIGABYTE - 6;
            while left > 0 {
                let now = left.min(part.len());
                stream.write_all(&part[..now]).await.expect("it reads");
                left -= now;
            }
        }
    });
    url
}

const GIGABYTE: usize = 1 << 30;

#[tokio::test]
#[ignore = "needs a process of its own, which the next test gives it"]
async fn a_gigabyte_alone() {
    let url = gigabyte().await;
    for (server, line, parts, is_stream) in [
        (http(&url), "POST /mcp", 100, false),
        (http(&url), "POST /mcp", 0, true),
        // The older HTTP looks at every line of it.
        (sse(&url), "GET /mcp", 0, true),
    ] {
        let stage = Stage::open(&server).await;
        let address = stage.address();
        let part = vec![b'y'; 1 << 20];
        let kind = if is_stream { "X-Stream: 1\r\n" } else { "" };
        let length = parts * part.len();
        let head =
            format!("{line} HTTP/1.1\r\nHost: {address}\r\n{kind}Content-Length: {length}\r\n\r\n");
        let mut stream = send(&address, head).await;
        for _ in 0..parts {
            stream.write_all(&part).await.unwrap();
        }
        receive_head(&mut stream).await.unwrap();
        let mut sink = tokio::io::sink();
        let copied = if line.starts_with("GET") {
            let mut copied = 0;
            while copied < GIGABYTE {
                copied += receive_chunk(&mut stream).await.unwrap().len();
            }
            copied as u64
        } else {
            let mut all = (&mut stream).take(GIGABYTE as u64);
            tokio::io::copy(&mut all, &mut sink).await.unwrap()
        };
        assert_eq!(copied, GIGABYTE as u64);
        drop(stream);
        let record = stage.end().await;
        if is_stream {
            let rest = format!("({} bytes)", GIGABYTE - 6);
            assert!(record.lines().pop().unwrap().contains(&rest));
        } else {
            assert_eq!(record.said(ToServer), [format!("cut {length}")]);
            assert_eq!(record.said(ToClient), [format!("cut {GIGABYTE}")]);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .split("VmHWM:")
        .nth(1)
        .unwrap()
        .trim()
        .split(' ')
        .next()
        .unwrap();
    let peak: usize = peak.parse().unwrap();
    assert!(peak < 150 << 10, "{peak} KiB at the most");
}

#[test]
fn a_gigabyte_passes_in_little_memory() {
    let name = "reverse::faults::a_gigabyte_alone";
    let own = std::env::current_exe().unwrap();
    let run = std::process::Command::new(own)
        .args(["--exact", name, "--ignored"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn what_a_client_says_arrives_though_it_is_gone_at_once() {
    let upstream = RawServer::start(|_| vec![answer("202 Accepted", &[], b"")]).await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let body = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    for line in ["POST /mcp", "DELETE /mcp"] {
        let before = upstream.seen().len();
        drop(send(&address, request(line, &address, &[], body)).await);
        let arrived = async {
            while upstream.seen().len() == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let arrived = tokio::time::timeout(PATIENCE, arrived).await;
        arrived.expect("it arrives");
        assert_eq!(upstream.seen()[before].text(), body);
    }
    let record = stage.end().await;
    let said = record.said(ToServer);
    assert_eq!(said, [body, body]);
}

/// A client that gets no byte on a connection that it used before sends its request again.
#[tokio::test]
async fn a_client_learns_that_a_response_was_begun() {
    let upstream = RawServer::start(|came| {
        let whole = answer("200 OK", &["Content-Type: application/json"], b"{}");
        if came.text().contains("tools/call") {
            vec![whole[..whole.len() - 1].to_vec(), Vec::new()]
        } else {
            vec![whole]
        }
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let ping = request(
        "POST /mcp",
        &address,
        &[],
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    );
    let mut stream = send(&address, ping).await;
    assert_eq!(receive(&mut stream).await.unwrap().text(), "{}");
    stream.write_all(call(&address).as_bytes()).await.unwrap();
    let head = timeout(PATIENCE, receive_head(&mut stream)).await.unwrap();
    assert!(head.unwrap().starts_with("HTTP/1.1 200 OK"));
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .unwrap();
    assert_eq!(rest, b"{", "{read:?}");
    stage.end().await;
}

/// Its next request is then the first one of a connection, as with the server itself.
#[tokio::test]
async fn a_client_learns_that_the_server_closes_each_connection() {
    let upstream = RawServer::start(|_| {
        let headers = ["Content-Type: application/json", "Connection: close"];
        vec![answer("200 OK", &headers, b"{}"), Vec::new()]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let mut stream = send(&address, call(&address)).await;
    let came = receive(&mut stream).await.unwrap();
    assert_eq!(came.header("connection"), Some("close"), "{}", came.head);
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    assert_eq!(read.expect("it closes").unwrap(), 0);
    stage.end().await;
}

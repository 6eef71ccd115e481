//! The older HTTP, with its stream and its announced addresses.

use proctor_record::event::{Direction, WireKind};
use proctor_wire::proxy::Admission;
use tokio::io::BufReader;
use tokio::net::TcpStream;

use super::raw::{
    RawRequest, RawServer, answer, ask, chunk, chunked, receive_chunk, receive_head, request, send,
};
use super::stage::{Stage, http, path, sse};

/// A server whose stream announces an address (`SELF` is its own), and then says what it is told to.
async fn announcing(endpoint: &'static str) -> RawServer {
    RawServer::start(move |came: &RawRequest| {
        if came.head.starts_with("GET ") {
            let host = came.header("host").expect("a host");
            let endpoint = endpoint.replace("SELF", host);
            let event = format!("event: endpoint\ndata: {endpoint}\n\n");
            return vec![
                chunked(&["Content-Type: text/event-stream"]),
                chunk(event.as_bytes()),
                chunk(b"data: {}\n\n"),
            ];
        }
        vec![answer(
            "202 Accepted",
            &["Content-Type: text/plain"],
            b"Accepted",
        )]
    })
    .await
}

async fn open(stage: &Stage) -> (BufReader<TcpStream>, String) {
    let address = stage.address();
    let sent = request(
        &format!("GET {}", path(stage.proxy.url())),
        &address,
        &[],
        "",
    );
    let mut stream = send(&address, sent).await;
    receive_head(&mut stream).await.expect("a head");
    let event = receive_chunk(&mut stream).await.expect("an event");
    let event = String::from_utf8(event).expect("text");
    let told = event.strip_prefix("event: endpoint\ndata: ");
    let told = told.expect("an address");
    (stream, told.trim_end().to_owned())
}

#[tokio::test]
async fn an_announced_address_leads_through_the_proxy() {
    for (endpoint, leads_to) in [
        ("/messages?session=1", "POST /messages?session=1 "),
        (
            "http://SELF/messages?session=2",
            "POST /messages?session=2 ",
        ),
    ] {
        let upstream = announcing(endpoint).await;
        for admission in [Admission::Open, Admission::Path] {
            let stage = Stage::new(&sse(&upstream.url()), admission).await;
            let address = stage.address();
            let (mut stream, told) = open(&stage).await;
            assert_eq!(receive_chunk(&mut stream).await.unwrap(), b"data: {}\n\n");
            let place = told
                .strip_prefix(&format!("http://{address}"))
                .unwrap_or(&told);
            let got = ask(
                &address,
                request(&format!("POST {place}"), &address, &[], "[]"),
            )
            .await;
            assert_eq!(got.unwrap().text(), "Accepted");
            assert!(upstream.seen().last().unwrap().head.starts_with(leads_to));
            drop(stream);
            let record = stage.end().await;
            // What the server said, and not what the client was told.
            let announced = format!(
                "event `endpoint` ({} bytes): ",
                endpoint.replace("SELF", &upstream.address).len()
            );
            assert!(
                record
                    .lines()
                    .iter()
                    .any(|line| line.starts_with(&announced) && !line.contains(&address))
            );
            // All of it is one connection; "Accepted" is no message.
            assert_eq!(record.said(Direction::ToServer), ["[]"]);
            assert_eq!(record.said(Direction::ToClient), ["{}"]);
            let opened = record.opened();
            assert_eq!((opened.len(), opened[0].transport), (1, WireKind::Sse));
            assert_eq!(
                record.findings(),
                Vec::<&proctor_record::event::Finding>::new()
            );
        }
    }
}

#[tokio::test]
async fn a_client_that_resolves_against_the_origin_keeps_the_token() {
    let upstream = announcing("?session=3").await;
    let stage = Stage::new(&sse(&upstream.url()), Admission::Path).await;
    let address = stage.address();
    let (stream, told) = open(&stage).await;
    let own = path(stage.proxy.url());
    assert_eq!(told, format!("{own}?session=3"), "the full path");
    let posted = request(&format!("POST {told}"), &address, &[], "[]");
    assert_eq!(ask(&address, posted).await.unwrap().text(), "Accepted");
    let seen = upstream.seen().last().unwrap().head.clone();
    assert!(seen.starts_with("POST /"), "{seen}");
    assert!(seen.contains("?session=3 "), "{seen}");
    drop(stream);
    let record = stage.end().await;
    assert_eq!(record.said(Direction::ToServer), ["[]"]);
}

#[tokio::test]
async fn no_stream_is_an_answer_too() {
    let refusal = br#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no GET"},"id":null}"#;
    let upstream = RawServer::start(move |came: &RawRequest| {
        if came.head.starts_with("POST ") {
            return vec![answer("200 OK", &["Content-Type: application/json"], b"{}")];
        }
        let headers = ["Content-Type: application/json"];
        vec![answer("405 Method Not Allowed", &headers, refusal)]
    })
    .await;
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let get = || ask(&address, request("GET /mcp", &address, &[], ""));
    assert_eq!(get().await.unwrap().body, refusal);
    let call = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let posted = ask(&address, request("POST /mcp", &address, &[], call)).await;
    assert_eq!(posted.unwrap().status(), "200");
    assert_eq!(get().await.unwrap().body, refusal);
    let record = stage.end().await;
    let wires: Vec<WireKind> = record.opened().iter().map(|o| o.transport).collect();
    assert_eq!(wires, [WireKind::Sse, WireKind::Http]);
    assert_eq!(
        record.closed()[0].reason,
        "the response of the server is not a stream"
    );
    assert_eq!(record.said(Direction::ToClient).len(), 3);
    let kinds: Vec<_> = record.folded.findings.iter().map(|f| f.kind).collect();
    // The answer `{}` to the notification, and no other.
    assert_eq!(kinds, [proctor_record::event::FindingKind::Malformed]);
}

#[tokio::test]
async fn streams_are_connections_of_their_own() {
    let counter = std::sync::atomic::AtomicU32::new(0);
    let upstream = RawServer::start(move |came: &RawRequest| {
        if came.head.starts_with("GET ") {
            let n = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            let event = format!("event: endpoint\ndata: /m?s={n}\n\n");
            return vec![
                chunked(&["Content-Type: text/event-stream"]),
                chunk(event.as_bytes()),
            ];
        }
        vec![answer("202 Accepted", &[], b"")]
    })
    .await;
    // That it is the older HTTP turns out by a GET that comes before any POST has succeeded.
    let stage = Stage::open(&http(&upstream.url())).await;
    let address = stage.address();
    let (first, one) = open(&stage).await;
    let (second, two) = open(&stage).await;
    assert_eq!((one.as_str(), two.as_str()), ("/m?s=1", "/m?s=2"));
    for (place, body) in [(&two, "22"), (&one, "1"), (&two, "222")] {
        ask(
            &address,
            request(&format!("POST {place}"), &address, &[], body),
        )
        .await
        .unwrap();
    }
    drop((first, second));
    let record = stage.end().await;
    let frames = record.frames(Direction::ToServer);
    let of = |conn: u32| frames.iter().filter(|(c, _)| *c == conn).count();
    assert_eq!((of(1), of(2), frames.len()), (1, 2, 3));
    assert_eq!(record.closed().len(), 2);
    assert_eq!(
        record.closed()[0].reason,
        "the client disconnected before the end of the response"
    );
}

#[tokio::test]
async fn what_was_not_announced_is_refused() {
    let upstream = announcing("http://elsewhere/messages").await;
    let stage = Stage::open(&sse(&upstream.url())).await;
    let address = stage.address();
    let (_stream, told) = open(&stage).await;
    assert_eq!(told, "http://elsewhere/messages");
    let got = ask(&address, request("POST /messages", &address, &[], "{}"))
        .await
        .unwrap();
    assert_eq!(got.status(), "403");
    assert_eq!(upstream.seen().len(), 1);
    let record = stage.end().await;
    let details: Vec<&str> = record
        .findings()
        .iter()
        .map(|f| f.detail.as_str())
        .collect();
    assert_eq!(details.len(), 2, "{details:?}");
    assert_eq!(details[0], "the endpoint is not on this server");
    assert!(details[1].contains("`/messages`"));
}

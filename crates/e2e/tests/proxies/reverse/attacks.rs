//! Who is turned away, and that nobody hears of it but the record.

use proctor_record::event::{Direction, FindingKind};
use proctor_wire::proxy::Admission;

use super::raw::{RawServer, answer, ask};
use super::stage::{Stage, http, path};

/// Sends a request to a proxy, in which ADDRESS, PATH and TOKEN stand for its own.
async fn attack(admission: Admission, request: &str) {
    let upstream = RawServer::start(|_| vec![answer("200 OK", &[], b"{}")]).await;
    let stage = Stage::new(&http(&upstream.url()), admission).await;
    let address = stage.address();
    let token = match admission {
        Admission::Header => stage.proxy.headers()[0].1.clone(),
        Admission::Path => path(stage.proxy.url())
            .split('/')
            .nth(1)
            .expect("it has one")
            .to_owned(),
        Admission::Open => "none".to_owned(),
    };
    let sent = request
        .replace("ADDRESS", &address)
        .replace("PATH", path(stage.proxy.url()))
        .replace("UPSTREAM", &upstream.address)
        .replace("TOKEN", &token)
        .replace('\n', "\r\n");
    let got = ask(&address, format!("{sent}\r\n\r\n")).await;
    let got = got.expect("an answer");
    assert_eq!(got.status(), "403", "{request}: {}", got.head);
    assert!(got.text().starts_with("refused by Proctor: "));
    assert!(!got.text().contains(&token));
    assert!(upstream.seen().is_empty(), "{request}");
    let record = stage.end().await;
    let findings = record.findings();
    assert_eq!(findings.len(), 1, "{request}");
    assert_eq!(findings[0].kind, FindingKind::Refused);
    assert_eq!(record.said(Direction::ToServer), Vec::<String>::new());
    let bytes = record.bytes();
    assert!(
        !bytes
            .windows(token.len())
            .any(|part| part == token.as_bytes())
    );
}

#[tokio::test]
async fn without_the_token_nobody_comes_in() {
    attack(Admission::Header, "POST /mcp HTTP/1.1\nHost: ADDRESS").await;
    attack(
        Admission::Header,
        "POST /mcp HTTP/1.1\nHost: ADDRESS\nproctor-token: wrong",
    )
    .await;
    attack(Admission::Header, "POST /TOKEN/mcp HTTP/1.1\nHost: ADDRESS").await;
    attack(Admission::Path, "POST /mcp HTTP/1.1\nHost: ADDRESS").await;
    attack(Admission::Path, "POST /wrong/mcp HTTP/1.1\nHost: ADDRESS").await;
    attack(
        Admission::Path,
        "POST /mcp HTTP/1.1\nHost: ADDRESS\nproctor-token: TOKEN",
    )
    .await;
}

#[tokio::test]
async fn with_the_token_only_this_server_is_reached() {
    for head in [
        "GET PATH/ HTTP/1.1\nHost: ADDRESS",
        "GET PATH/../other HTTP/1.1\nHost: ADDRESS",
        "GET /TOKEN/../mcp/x HTTP/1.1\nHost: ADDRESS",
        "GET /TOKEN//evil/mcp HTTP/1.1\nHost: ADDRESS",
        "GET /TOKEN//UPSTREAM/mcp HTTP/1.1\nHost: ADDRESS",
        "GET /TOKEN/ HTTP/1.1\nHost: ADDRESS",
        "GET /TOKEN/%6dcp HTTP/1.1\nHost: ADDRESS",
        "GET /TOKEN/.well-known/oauth-protected-resource HTTP/1.1\nHost: ADDRESS",
        "GET http://evil.example/TOKEN/mcp HTTP/1.1\nHost: ADDRESS",
        "GET http://UPSTREAM/TOKEN/mcp HTTP/1.1\nHost: UPSTREAM",
        "GET PATH HTTP/1.1\nHost: evil.example",
        "GET PATH HTTP/1.1\nHost: UPSTREAM",
        "GET PATH HTTP/1.0",
        "GET PATH HTTP/1.1\nHost: ADDRESS\nHost: evil.example",
        "GET PATH HTTP/1.1\nHost: ADDRESS\nHost: ADDRESS",
        "GET PATH HTTP/1.1\nHost: ADDRESS\nOrigin: http://evil.example",
        "GET PATH HTTP/1.1\nHost: ADDRESS\nOrigin: null",
        "CONNECT UPSTREAM HTTP/1.1\nHost: ADDRESS",
        "OPTIONS * HTTP/1.1\nHost: ADDRESS",
    ] {
        attack(Admission::Path, head).await;
    }
}

#[tokio::test]
async fn the_token_stays_at_the_door() {
    for admission in [Admission::Header, Admission::Path] {
        let upstream = RawServer::start(|_| vec![answer("200 OK", &[], b"{}")]).await;
        let stage = Stage::new(&http(&upstream.url()), admission).await;
        let address = stage.address();
        let place = path(stage.proxy.url()).to_owned();
        let headers = stage.proxy.headers().to_vec();
        let shown: String = headers
            .iter()
            .flat_map(|(name, value)| [name, ": ", value, "\r\n"])
            .collect();
        let token = headers.first().map_or_else(
            || place.split('/').nth(1).unwrap().to_owned(),
            |(_, v)| v.clone(),
        );
        assert_eq!(token.len(), 64);
        let sent = format!(
            "POST {place} HTTP/1.1\r\nHost: {address}\r\n{shown}Referer: http://{address}{place}\r\nX-T: {token}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        assert_eq!(ask(&address, sent).await.unwrap().text(), "{}");
        let seen = &upstream.seen()[0];
        assert!(seen.head.starts_with("POST /mcp HTTP/1.1\r\n"));
        assert!(!seen.head.contains(&token));
        let bytes = stage.end().await.bytes();
        assert!(
            !bytes
                .windows(token.len())
                .any(|part| part == token.as_bytes())
        );
    }
}

//! Who has no business here is turned away, and the record says so.

use proctor_record::event::{Direction, FindingKind};
use proctor_wire::proxy::Admission;
use serde_json::json;

use super::http::Http;
use super::stage::{Stage, fixture};

async fn status(http: &Http) -> u16 {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    http.post(&list).await.status
}

#[tokio::test]
async fn tokens_hosts_origins_and_paths_are_checked() {
    let stage = Stage::on_fixture(&[]).await;
    let http = stage.http();
    let rude = [
        (http.without("proctor-token"), 403),
        (http.with("proctor-token", "guessed"), 403),
        (http.with("host", "evil.example"), 403),
        (http.with("origin", "http://evil.example"), 403),
        (http.with("origin", "null"), 403),
        (http.on("http://evil.example/mcp"), 403),
        (http.on("/"), 404),
        (http.on("/mcp/"), 404),
        (http.on("/mcp/../etc/passwd"), 404),
        (http.on("//evil.example/mcp"), 404),
    ];
    for (number, (http, expected)) in rude.iter().enumerate() {
        assert_eq!(status(http).await, *expected, "{number}: {}", http.path());
    }
    assert_eq!(
        status(&http.with("origin", "http://127.0.0.1:1")).await,
        403
    );
    assert_eq!(status(&http).await, 200);
    let token = &stage.bridge.headers()[0].1.clone();
    let record = stage.end().await;
    assert_eq!(record.found(FindingKind::Refused).len(), rude.len() + 1);
    assert_eq!(record.said(Direction::ToServer).len(), 1);
    // What lets somebody in is not written down.
    let written = serde_json::to_string(&record.events).unwrap();
    assert!(!written.contains(token.as_str()));
}

#[tokio::test]
async fn a_token_in_the_path_lets_in_too_and_stays_out_of_the_record() {
    let stage = Stage::new(&fixture(&["--era", "handshake"]), Admission::Path).await;
    let http = stage.http();
    let token = http.path().split('/').nth(1).unwrap().to_owned();
    assert_eq!(token.len(), 64);
    assert_eq!(status(&http.on("/mcp")).await, 403);
    assert_eq!(
        status(&http.on(&format!("/{}/mcp", "0".repeat(64)))).await,
        403
    );
    http.initialize().await;
    let record = stage.end().await;
    assert!(
        !serde_json::to_string(&record.events)
            .unwrap()
            .contains(&token)
    );
    assert_eq!(record.heads()[0].line, "POST /mcp");
}

#[tokio::test]
async fn what_is_no_message_is_answered_with_an_error_and_goes_nowhere() {
    let stage = Stage::on_fixture(&["--era", "handshake"]).await;
    let (session, _) = stage.http().initialize().await;
    for http in [&stage.http(), &session] {
        for (body, code) in [("{", -32700), ("hello", -32700), ("{}", -32600)] {
            let reply = http.send("POST", body.as_bytes()).await.unwrap();
            assert_eq!(reply.status, 400);
            assert_eq!(reply.json().await["error"]["code"], json!(code), "{body}");
        }
    }
    let large = stage.http().with("content-length", "40000000");
    assert_eq!(large.send("POST", b"").await.unwrap().status, 413);
    for method in ["GET", "DELETE", "PUT", "OPTIONS"] {
        let reply = stage.http().send(method, b"").await.unwrap();
        assert_eq!(reply.status, 405, "{method}");
        assert!(reply.header("allow").is_some());
    }
    let record = stage.end().await;
    assert_eq!(record.found(FindingKind::Refused).len(), 7);
    assert_eq!(record.said(Direction::ToServer).len(), 2);
}

//! Requests that stand for themselves, and share a process.

use std::path::Path;

use proctor_record::event::{Direction, FindingKind};
use serde_json::{Value, json};

use super::http::Http;
use super::stage::{Stage, eventually};

const VERSION: &str = "2026-07-28";

/// A request of the stateless era.
fn request(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let id = id.into();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}},
        "progressToken": id,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
    )
}

#[tokio::test]
async fn requests_without_a_session_share_a_process() {
    let stage = Stage::on_fixture(&[]).await;
    let http = stage.http().with("mcp-protocol-version", VERSION);
    let discovered = http.post(&request(0, "server/discover", json!({}))).await;
    assert_eq!(discovered.header("mcp-session-id"), None);
    assert!(discovered.json().await["result"]["supportedVersions"].is_array());
    for id in 1..4 {
        let reply = http.post(&call(id, "echo", &json!({"text": "hi"}))).await;
        assert_eq!(reply.json().await["id"], json!(id));
    }
    let unknown = http.post(&request(9, "no/such", json!({}))).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json().await["error"]["code"], json!(-32601));
    let unable = http.post(&call(9, "ask", &json!({"kind": "roots"}))).await;
    assert_eq!(unable.status, 400);
    assert_eq!(unable.json().await["error"]["code"], json!(-32021));
    let contradicts = http.with("mcp-method", "tools/list");
    let contradicts = contradicts.post(&call(9, "echo", &json!({}))).await;
    assert_eq!(contradicts.status, 400);
    let error = contradicts.json().await;
    assert_eq!(
        (&error["error"]["code"], &error["id"]),
        (&json!(-32020), &json!(9))
    );
    let record = stage.end().await;
    assert_eq!(record.processes(), 2, "one, and one for what was refused");
    assert_eq!(record.found(FindingKind::Refused).len(), 1);
    assert_eq!(record.said(Direction::ToServer).len(), 6);
    assert_eq!(record.folded.findings.len(), 1);
}

#[tokio::test]
async fn a_slow_start_does_not_hide_the_era_of_a_server() {
    let stage = Stage::on_fixture(&["--era", "handshake", "--mode", "slow-start=2500"]).await;
    let reply = stage
        .http()
        .post(&request(1, "server/discover", json!({})))
        .await;
    assert_eq!((reply.status, reply.is_stream()), (404, false));
    assert_eq!(reply.json().await["error"]["code"], json!(-32601));
    stage.end().await;
}

#[tokio::test]
async fn an_id_that_is_under_way_goes_to_a_further_process() {
    let folder = tempfile::tempdir().expect("there is a folder");
    let (log, go) = (folder.path().join("log"), folder.path().join("go"));
    let stage = Stage::on_fixture(&["--log", &log.display().to_string()]).await;
    let http = stage.http();
    let (slow, fast) = (
        call(1, "sleep", &json!({"until": go})),
        call(1, "echo", &json!({"text": "x"})),
    );
    let (slow, ()) = tokio::join!(http.post(&slow), async {
        eventually("the slow call", || has(&log, "tools/call")).await;
        assert!(http.post(&fast).await.text().await.contains('x'));
        std::fs::write(&go, "").expect("there is a folder");
    });
    assert!(slow.text().await.contains("slept"));
    assert_eq!(http.post(&call(1, "echo", &json!({}))).await.status, 200);
    let record = stage.end().await;
    assert_eq!(record.processes(), 2);
}

#[tokio::test]
async fn input_required_rounds_pass() {
    let stage = Stage::on_fixture(&[]).await;
    let http = stage.http();
    let ask = json!({"name": "ask", "arguments": {"kind": "elicitation", "rounds": 2}});
    let mut round = http
        .post(&request(1, "tools/call", ask.clone()))
        .await
        .json()
        .await;
    for id in 2..4 {
        let result = &round["result"];
        assert_eq!(result["resultType"], "input_required");
        let (key, _) = result["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let mut again = ask.clone();
        again["requestState"] = result["requestState"].clone();
        again["inputResponses"] = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
        round = http
            .post(&request(id, "tools/call", again))
            .await
            .json()
            .await;
    }
    assert!(round["result"].to_string().contains("Ada"), "{round}");
    let record = stage.end().await;
    assert_eq!(
        record.folded.transcript.calls.len(),
        1,
        "one call in three rounds"
    );
}

#[tokio::test]
async fn a_slow_answer_is_an_event_stream_with_its_progress() {
    let stage = Stage::on_fixture(&[]).await;
    let http = stage.http();
    let progress = call(1, "progress", &json!({"steps": 3, "ms": 10}));
    let mut reply = http.post(&progress).await;
    assert!(reply.is_stream());
    let events = reply.events().await;
    let tokens: Vec<&Value> = events
        .iter()
        .map(|e| &e["params"]["progressToken"])
        .collect();
    assert_eq!(tokens, [&json!(1), &json!(1), &json!(1), &Value::Null]);
    assert!(events[3]["result"].is_object());
    let only_json = http.with("accept", "application/json");
    let reply = only_json.post(&progress).await;
    assert!(reply.json().await["result"].is_object());
    let only_events = http.with("accept", "text/event-stream");
    let mut reply = only_events
        .post(&call(1, "echo", &json!({"text": "x"})))
        .await;
    assert!(reply.is_stream() && reply.events().await.len() == 1);
    let neither = http.with("accept", "text/html").post(&progress).await;
    assert_eq!(neither.status, 406);
    stage.end().await;
}

#[tokio::test]
async fn what_one_listens_for_comes_to_who_listens() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().display().to_string();
    let stage = Stage::on_fixture(&["--mode", "tools-change", "--log", &path]).await;
    let http = stage.http();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = http
        .post(&request("l", "subscriptions/listen", listen))
        .await;
    let acknowledged = listening.event().await.unwrap();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    let called = http.post(&call(1, "echo", &json!({"text": "x"}))).await;
    assert!(called.json().await["result"].is_object());
    let changed = listening.event().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    drop(listening);
    let has_come = || {
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("cancelled")
    };
    eventually("the cancellation", has_come).await;
    let record = stage.end().await;
    let sent = record.said(Direction::ToServer);
    assert!(
        sent.last()
            .unwrap()
            .contains(r#""requestId":"l","reason":"no longer wanted""#),
        "{sent:?}"
    );
}

/// Whether a log has this text.
fn has(log: &Path, text: &str) -> bool {
    std::fs::read_to_string(log).is_ok_and(|log| log.contains(text))
}

/// Calls, gives up before the answer or in the middle of the stream, and tells what was sent.
async fn given_up(
    era: &str,
    prepare: impl AsyncFn(&Stage) -> Http,
    call: &Value,
    held: bool,
) -> Vec<String> {
    // On a busy machine, the server may start after the bridge has begun the stream.
    for _ in 0..20 {
        if let Some(sent) = given_up_once(era, &prepare, call, held).await {
            return sent;
        }
    }
    panic!("no response is held back");
}

/// Nothing if the response was to be held back, and was not.
async fn given_up_once(
    era: &str,
    prepare: &impl AsyncFn(&Stage) -> Http,
    call: &Value,
    held: bool,
) -> Option<Vec<String>> {
    let log = tempfile::NamedTempFile::new().expect("there is a file");
    let path = log.path().display().to_string();
    let stage = Stage::on_fixture(&[
        "--era",
        era,
        "--mode",
        "never-answer=tools/call",
        "--log",
        &path,
    ])
    .await;
    let http = prepare(&stage).await;
    if held {
        tokio::select! {
            reply = http.post(call) => {
                assert!(reply.is_stream());
                return None;
            }
            () = eventually("the call", || has(log.path(), "tools/call")) => {}
        }
    } else {
        assert!(http.post(call).await.is_stream());
    }
    if era == "stateless" {
        eventually("the cancellation", || has(log.path(), "cancelled")).await;
    } else {
        // Whatever would be sent is sent before this.
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        assert_eq!(http.post(&list).await.status, 200);
    }
    let record = stage.end().await;
    // In the handshake era a connection that breaks says nothing, so the call has no answer.
    let is_cancelled = era == "stateless";
    let unanswered = record.folded.conduct.unanswered.len();
    assert_eq!(
        (unanswered == 0, record.folded.findings.len()),
        (is_cancelled, unanswered)
    );
    let sent = record.said(Direction::ToServer);
    Some(sent.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn closing_the_post_cancels_in_the_stateless_era_only() {
    for held in [true, false] {
        let one = call("x", "echo", &json!({}));
        let sent = given_up("stateless", async |stage| stage.http(), &one, held).await;
        assert_eq!(sent.len(), 2);
        assert_eq!(
            sent[1],
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"no longer wanted"}}"#
        );
        let one =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}});
        let session = async |stage: &Stage| stage.http().initialize().await.0;
        let sent = given_up("handshake", session, &one, held).await;
        assert!(
            !sent.iter().any(|sent| sent.contains("cancelled")),
            "{sent:?}"
        );
    }
}

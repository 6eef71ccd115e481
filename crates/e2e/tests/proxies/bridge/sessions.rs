//! Sessions of the handshake era: each with a process of its own.

use proctor_record::event::{Direction, FindingKind};
use proctor_wire::proxy::Admission;
use serde_json::{Value, json};

use super::stage::{Stage, command, eventually};

fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

#[tokio::test]
async fn messages_pass_as_they_are_and_the_record_has_them() {
    let stage = Stage::on_fixture(&["--era", "handshake"]).await;
    let (client, answer) = stage.http().initialize().await;
    assert!(answer["result"]["serverInfo"].is_object());
    // Line breaks in a message would end it on stdio.
    let odd = "{\"jsonrpc\":\"2.0\",\r\n \"id\":7.0 ,\n\"strange\":1.000000000000000000001,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"a\\nb\"}}}\n";
    let reply = client.send("POST", odd.as_bytes()).await.unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("mcp-session-id"), None);
    let answered = reply.text().await;
    let record = stage.end().await;
    let sent = record.said(Direction::ToServer);
    assert_eq!(sent[2], odd.replace(['\r', '\n'], " "));
    assert!(answered.contains(record.said(Direction::ToClient)[1]));
    assert_eq!(record.processes(), 1);
    assert_eq!(
        record.closed()[0].reason,
        "was told to stop, and exited with code 0"
    );
    assert_eq!(record.folded.findings, []);
    let heads: Vec<&str> = record.heads().iter().map(|h| h.line.as_str()).collect();
    assert_eq!(
        heads,
        [
            "POST /mcp",
            "200 OK",
            "POST /mcp",
            "202 Accepted",
            "POST /mcp",
            "200 OK"
        ]
    );
}

#[tokio::test]
async fn sessions_have_processes_of_their_own_and_end_with_them() {
    let stage = Stage::on_fixture(&["--era", "handshake", "--mode", "tools-change"]).await;
    let (one, _) = stage.http().initialize().await;
    let (other, _) = stage.http().initialize().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(
        one.post(&call(1, "echo", &json!({"text": "x"})))
            .await
            .status,
        200
    );
    // What changed in one process has not in the other; ids are each one's own.
    let (changed, unchanged) = (one.post(&list).await, other.post(&list).await);
    assert!(changed.text().await.contains("\"late\""));
    assert!(!unchanged.text().await.contains("\"late\""));
    assert_eq!(one.send("DELETE", b"").await.unwrap().status, 204);
    for method in ["DELETE", "GET", "POST"] {
        let reply = one.send(method, list.to_string().as_bytes()).await.unwrap();
        assert_eq!(reply.status, 404, "{method}");
    }
    assert_eq!(other.post(&list).await.status, 200);
    let unknown = stage.http().with("mcp-session-id", "guessed");
    assert_eq!(unknown.post(&list).await.status, 404);
    let record = stage.end().await;
    assert_eq!(record.processes(), 3, "two, and one for what was refused");
    assert_eq!(record.found(FindingKind::Refused), ["unknown session id"]);
}

#[tokio::test]
async fn what_the_server_asks_comes_on_the_get_stream_or_with_the_call() {
    for with_get in [true, false] {
        let stage = Stage::on_fixture(&["--era", "handshake"]).await;
        let (client, _) = stage.http().initialize().await;
        let mut listening = None;
        if with_get {
            let get = client.get().await;
            assert!(get.status == 200 && get.is_stream());
            listening = Some(get);
            assert_eq!(client.get().await.status, 409);
        }
        for kind in ["sampling", "elicitation", "roots"] {
            let asking = call(kind, "ask", &json!({"kind": kind}));
            let copy = client.clone();
            let calling = tokio::spawn(async move { copy.post(&asking).await });
            let answer = |asked: Option<Value>| {
                let id = asked.expect("it asks")["id"].clone();
                json!({"jsonrpc": "2.0", "id": id, "result": {"said": "yes"}})
            };
            let answered = if let Some(get) = &mut listening {
                let answer = answer(get.event().await);
                assert_eq!(client.post(&answer).await.status, 202);
                calling.await.unwrap().json().await
            } else {
                let mut called = calling.await.unwrap();
                let answer = answer(called.event().await);
                assert_eq!(client.post(&answer).await.status, 202);
                called.events().await.pop().unwrap()
            };
            assert!(answered.to_string().contains("yes"), "{answered}");
        }
        let record = stage.end().await;
        assert_eq!(record.folded.findings, []);
    }
}

#[tokio::test]
async fn progress_and_log_messages_keep_their_order() {
    let log =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":N}}"#;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":N}}"#;
    let mut said: Vec<String> = Vec::new();
    for number in 0..20 {
        said.push(log.replace('N', &number.to_string()));
        said.push(progress.replace('N', &number.to_string()));
    }
    said.push(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#.to_owned());
    let script = format!(
        "read a; echo '{}'; read b; read c; cat <<'END'\n{}\nEND\nread d",
        r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
        said.join("\n")
    );
    let stage = Stage::new(&command("sh", &["-c", &script]), Admission::Open).await;
    let (client, _) = stage.http().initialize().await;
    let listening = client.get().await;
    assert_eq!(listening.status, 200);
    let mut asking = call(1, "work", &json!({}));
    asking["params"]["_meta"] = json!({"progressToken": "t"});
    let heard = client.post(&asking).await.events().await;
    let heard: Vec<String> = heard.iter().map(ToString::to_string).collect();
    assert_eq!(heard, said);
    stage.end().await;
}

#[tokio::test]
async fn an_id_that_is_under_way_in_a_session_is_refused() {
    let stage = Stage::on_fixture(&["--era", "handshake"]).await;
    let (client, _) = stage.http().initialize().await;
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let slow = call(1, "sleep", &json!({"until": go}));
    let mut first = client.post(&slow).await;
    assert!(
        first.is_stream(),
        "it took longer than a response is held back"
    );
    let second = client.post(&slow).await;
    assert_eq!(second.status, 400);
    assert_eq!(second.json().await["error"]["code"], json!(-32600));
    std::fs::write(go, "").unwrap();
    assert_eq!(first.events().await.len(), 1);
    stage.end().await;
}

#[tokio::test]
async fn a_session_that_was_not_agreed_on_is_none() {
    let stage = Stage::on_fixture(&["--era", "stateless"]).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let reply = stage.http().post(&message).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(reply.json().await["error"]["code"], json!(-32022));
    let record = stage.end().await;
    assert_eq!(
        record.closed()[0].reason,
        "was told to stop, and exited with code 0"
    );
}

#[tokio::test]
async fn a_batch_goes_as_one_line() {
    let stage = Stage::on_fixture(&["--era", "handshake"]).await;
    let (client, _) = stage.http().initialize().await;
    let batch = json!([{"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "method": "notifications/y"}]);
    assert_eq!(client.post(&batch).await.status, 202);
    let record = stage.end().await;
    assert_eq!(record.said(Direction::ToServer)[2], batch.to_string());
}

#[tokio::test]
async fn what_is_open_ends_with_the_session_and_nobody_is_to_blame() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().display().to_string();
    let stage = Stage::on_fixture(&["--era", "handshake", "--log", &path]).await;
    let (client, _) = stage.http().initialize().await;
    let mut get = client.get().await;
    let slow = call(1, "sleep", &json!({"ms": 60_000}));
    let copy = client.clone();
    let posting = tokio::spawn(async move { copy.post(&slow).await });
    let has_come = || std::fs::read_to_string(&path).unwrap().contains("60000");
    eventually("the call", has_come).await;
    assert_eq!(client.send("DELETE", b"").await.unwrap().status, 204);
    let mut held = posting.await.unwrap();
    assert!(held.is_stream() && !held.is_cut().await);
    assert!(!get.is_cut().await);
    stage.end().await;
}

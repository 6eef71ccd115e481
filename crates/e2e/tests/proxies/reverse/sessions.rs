//! Whole sessions, of clients that do not know of the proxy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::suite::Server;
use proctor_core::suite::replies::Elicitation;
use proctor_e2e::Fixture;
use proctor_record::event::Actor;
use proctor_record::event::Direction::{ToClient, ToServer};
use proctor_wire::answers::{Sampler, SamplingReply, ServerRequestReplies};
use proctor_wire::client::{Client, ConnectOptions, Era, ListLimits, Timeouts};
use proctor_wire::proxy::Admission;
use proctor_wire::recorder::Recorder;
use proctor_wire::worker::BoxedFuture;
use serde_json::{Map, Value, json};

use super::listening::EverythingServer;
use super::raw::{PATIENCE, ask, request};
use super::stage::{Record, Stage, TestRecording, http, sse};

const ADMISSIONS: [Admission; 3] = [Admission::Header, Admission::Path, Admission::Open];

fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A model that always says the same.
struct Hesitant;

impl Sampler for Hesitant {
    fn sample(&self, _: Value) -> BoxedFuture<'static, Result<Value, String>> {
        let content = json!({"type": "text", "text": "hm"});
        let said = json!({"role": "assistant", "content": content, "model": "m"});
        Box::pin(std::future::ready(Ok(said)))
    }
}

/// For servers that are not started, so without what starts them.
fn options(recorder: Recorder) -> ConnectOptions {
    ConnectOptions {
        actor: Actor::Loop,
        recorder,
        inherited: std::env::vars().collect::<BTreeMap<_, _>>().into(),
        pass: Vec::new(),
        guard: std::path::PathBuf::from("not needed"),
        timeouts: Timeouts::default(),
        answers: ServerRequestReplies::default(),
        trial: None,
        credentials: proctor_wire::auth::Credentials::default(),
        era: Some(Era::Handshake),
        ends: proctor_contain::process::ProcessEnds::default(),
    }
}

/// Calls tools of a server, and gives what the client itself kept of that.
async fn session(server: &Server, era: Era, calls: &[(&str, Value)]) -> Record {
    session_until(server, era, calls, None).await
}

/// The same, and does not close before the server has said this unasked: what it says to somebody
/// who goes may be in one record and not in the other.
async fn session_until(
    server: &Server,
    era: Era,
    calls: &[(&str, Value)],
    last: Option<&str>,
) -> Record {
    let kept = TestRecording::new();
    let mut options = options(kept.recorder.clone());
    options.era = Some(era);
    options.answers.roots = Some(vec!["file:///somewhere".to_owned()]);
    options.answers.elicitation = Some(Elicitation::Fields {
        values: arguments(&json!({"name": "me"})),
        place: String::new(),
    });
    options.answers.sampling = Some(SamplingReply::Model(Arc::new(Hesitant)));
    let client = Client::connect(server, &options)
        .await
        .expect("it connects");
    client
        .list_tools(&ListLimits::default())
        .await
        .expect("tools");
    for (tool, given) in calls {
        let called = client.call_tool(tool, arguments(given)).await;
        assert!(called.is_ok(), "{tool}: {called:?}");
    }
    let deadline = Instant::now() + PATIENCE;
    while last.is_some_and(|last| !kept.text().contains(last)) {
        assert!(Instant::now() < deadline, "{last:?} was not said");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.findings(), []);
    client.close().await;
    kept.end()
}

/// Has the same session without and with the proxy: all three records hold the same messages.
async fn compare(server: &Server, era: Era, calls: &[(&str, Value)]) {
    let direct = session(server, era, calls).await;
    for admission in ADMISSIONS {
        let stage = Stage::new(server, admission).await;
        let proxied = session(&stage.offered(server), era, calls).await;
        let record = stage.end().await;
        for way in [ToServer, ToClient] {
            assert_eq!(sorted(&proxied, way), sorted(&direct, way), "{admission:?}");
            assert_eq!(sorted(&record, way), sorted(&direct, way), "{admission:?}");
        }
        assert_eq!(record.folded.findings, []);
        let called = |record: &Record| format!("{:?}", answers(record));
        assert_eq!(called(&record), called(&direct));
        assert_eq!(record.folded.transcript.calls.len(), calls.len());
    }
}

/// What was said one way. Streams race, so their order is not told.
fn sorted(record: &Record, way: proctor_record::event::Direction) -> Vec<String> {
    let mut said = record.said(way);
    said.sort();
    said
}

fn answers(record: &Record) -> Vec<&proctor_record::transcript::CallOutcome> {
    let calls = record.folded.transcript.calls.iter();
    calls.map(|call| &call.answer).collect()
}

fn fixture_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"text": "héllo"})),
        ("fail", json!({})),
        ("big", json!({"bytes": 300_000})),
        ("progress", json!({"steps": 3, "ms": 1})),
        ("ask", json!({"kind": "elicitation"})),
        ("ask", json!({"kind": "sampling"})),
        ("ask", json!({"kind": "roots"})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_era_is_the_same_with_and_without() {
    for mode in [
        &["--era", "handshake"][..],
        &["--era", "handshake", "--mode", "sse-responses"],
    ] {
        let fixture = Fixture::http(mode);
        compare(&http(fixture.url()), Era::Handshake, &fixture_calls()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_era_is_the_same_with_and_without() {
    for mode in [
        &["--era", "stateless"][..],
        &["--era", "stateless", "--mode", "sse-responses"],
    ] {
        let fixture = Fixture::http(mode);
        compare(&http(fixture.url()), Era::Stateless, &fixture_calls()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_http_is_the_same_with_and_without() {
    let fixture = Fixture::sse(&[]);
    compare(&sse(fixture.url()), Era::Handshake, &fixture_calls()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_password_in_the_address_are_a_header_and_no_more() {
    let (newer, older) = (Fixture::http(&["--era", "handshake"]), Fixture::sse(&[]));
    let secret = |url: &str| url.replace("http://", "http://me:hunter2-%40@");
    for server in [http(&secret(newer.url())), sse(&secret(older.url()))] {
        let calls = [("echo", json!({"text": "hi"}))];
        let record = session(&server, Era::Handshake, &calls).await;
        let mut heads = record.http();
        heads.retain(|head| head.direction == ToServer);
        assert!(heads.len() > 3);
        for head in heads {
            assert!(head.headers.contains_key("authorization"), "{head:?}");
        }
        let text = String::from_utf8_lossy(&record.bytes()).into_owned();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_everything_is_the_same_with_and_without() {
    let calls = [
        ("echo", json!({"message": "hi"})),
        ("get-sum", json!({"a": 2, "b": 40})),
        (
            "trigger-sampling-request",
            json!({"prompt": "x", "maxTokens": 5}),
        ),
        ("trigger-elicitation-request", json!({})),
        (
            "trigger-long-running-operation",
            json!({"duration": 0.1, "steps": 2}),
        ),
    ];
    for (mode, is_older) in [("streamableHttp", false), ("sse", true)] {
        let everything = EverythingServer::start(mode);
        let server = if is_older {
            sse(&everything.url)
        } else {
            http(&everything.url)
        };
        for admission in ADMISSIONS {
            let stage = Stage::new(&server, admission).await;
            // It asks for roots some time after the handshake, and says when it has them.
            let last = Some("Roots updated: 1 root(s)");
            let offered = stage.offered(&server);
            let client = session_until(&offered, Era::Handshake, &calls, last).await;
            let record = stage.end().await;
            for way in [ToServer, ToClient] {
                assert_eq!(
                    sorted(&record, way),
                    sorted(&client, way),
                    "{mode} {admission:?}"
                );
            }
            assert_eq!(record.folded.findings, [], "{mode} {admission:?}");
            assert_eq!(record.folded.transcript.calls.len(), calls.len());
            let said = record.said(ToClient).concat();
            assert!(said.contains("The sum of 2 and 40 is 42."));
            assert!(said.contains("sampling/createMessage") && said.contains("elicitation/create"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_knows_is_answered_the_same() {
    let fixture = Fixture::http(&[]);
    let stage = Stage::open(&http(fixture.url())).await;
    let proxied = stage.address();
    let stateless = r#"{"jsonrpc":"2.0","id":7,"method":"METHOD","params":{"x":1e400,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}},"odd":[]}"#;
    let accept = "Accept: application/json, text/event-stream";
    for (line, method, body) in [
        ("POST /mcp", "x/unknown", stateless),
        ("POST /mcp", "server/discover", stateless),
        ("POST /mcp", "tools/list", "{not json"),
        ("POST /mcp", "tools/list", ""),
        ("GET /mcp", "", ""),
        ("DELETE /mcp", "", ""),
        ("PUT /mcp", "x", "?"),
        ("BREW /mcp", "x", "tea"),
        ("OPTIONS /mcp", "", ""),
        ("HEAD /mcp?x=%20", "", ""),
    ] {
        let body = body.replace("METHOD", method);
        let method = format!("Mcp-Method: {method}");
        let headers = [
            accept,
            "MCP-Protocol-Version: 2026-07-28",
            "X-Unknown: 1",
            &method,
        ];
        let mut both = Vec::new();
        for address in [fixture.address(), &proxied] {
            let got = ask(address, request(line, address, &headers, &body)).await;
            both.push(got.map(|got| {
                let mut head: Vec<String> = got.head.lines().map(str::to_owned).collect();
                head.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
                head.sort();
                (head, got.body)
            }));
        }
        assert_eq!(both[0], both[1], "{line} {method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_sessions_at_once_do_not_meet() {
    let fixture = Fixture::http(&["--era", "handshake"]);
    let stage = Stage::open(&http(fixture.url())).await;
    let mut sessions = tokio::task::JoinSet::new();
    for who in 0..50 {
        let server = http(stage.proxy.url());
        sessions.spawn(async move {
            let options = options(Recorder::nothing());
            let client = Client::connect(&server, &options);
            let client = client.await.expect("it connects");
            for turn in 0..4 {
                let text = format!("{who}.{turn}");
                let called = client
                    .call_tool("echo", arguments(&json!({"text": text})))
                    .await;
                assert!(called.expect("an answer").raw.get().contains(&text));
            }
            client.close().await;
        });
    }
    while let Some(done) = sessions.join_next().await {
        done.expect("the session went well");
    }
    let record = stage.end().await;
    assert_eq!(record.folded.transcript.calls.len(), 200);
    for call in &record.folded.transcript.calls {
        let text = format!("{call:?}");
        let asked = text
            .split("\"text\": String(\"")
            .nth(1)
            .expect("an argument");
        let asked = asked.split('"').next().expect("a text");
        assert!(text.matches(asked).count() > 1, "{text}");
    }
    assert_eq!(record.folded.findings, []);
}

//! The tap between a raw HTTP client and a scripted model.

mod outage;

use std::path::PathBuf;
use std::time::Instant;

use proctor_core::replay::Cassette;
use proctor_core::suite::load_script;
use proctor_record::event::{Outcome, RECORD_VERSION, RunStarted, TrialEnded, TrialStarted};
use proctor_record::fold::{FoldOptions, FoldedTrial};
use proctor_record::problem::Problems;
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use serde_json::json;

use super::*;
use crate::Budget;
use crate::serve::ModelServer;

const RULES: &str = "
kind: Script
rules:
  - when: {prompt: down}
    reply: {error: {kind: unavailable, detail: gone}}
  - when: {prompt: locked}
    reply: {error: {kind: key, detail: no such key}}
  - when: {prompt: busy}
    reply: {error: {kind: rateLimit, detail: slow down, retryAfter: 20s}}
  - when: {prompt: closed}
    reply: {error: {kind: rateLimit, detail: come back later, retryAfter: 1h}}
  - when: {prompt: absurd}
    reply: {text: done, usage: {input: 18446744073709551615, output: 2}}
  - when: {prompt: mute}
    reply: {text: never, delay: 1h}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 100, output: 7}}
  - reply: {text: done, usage: {input: 200, output: 3}}
";

/// A recorded trial, a scripted model, and a tap before it.
struct Stage {
    folder: tempfile::TempDir,
    _run: RunWriter,
    recorder: Recorder,
    model: ModelServer,
    tap: ModelTap,
    waiting: RetryWait,
}

impl Stage {
    async fn new(limits: LoopLimits, replay: Option<Replay>) -> Self {
        Self::with(limits, replay, ModelTimeouts::default(), None).await
    }

    /// The provider is elsewhere, or the scripted model.
    async fn with(
        limits: LoopLimits,
        replay: Option<Replay>,
        timeouts: ModelTimeouts,
        address: Option<std::net::SocketAddr>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("model.yaml");
        std::fs::write(&script, RULES).expect("a script");
        let mut problems = Problems::default();
        let script = load_script(&script, &mut problems).expect("a script");
        let model = ModelServer::start(script, 0).await.expect("a model");
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: String::new(),
            started: String::new(),
            name: "tap".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let path = folder.path().join("run");
        let run = RunWriter::create(&path, Redactor::default(), started).expect("a run");
        let trial = TrialStarted {
            case: "case".to_owned(),
            agent: Some("agent".to_owned()),
            repeat: 1,
            attempt: 1,
        };
        let trial = run.trial(0, "case:agent:1", trial).expect("a trial");
        let recorder = Recorder::new(trial, Instant::now());
        let is_replayed = replay.is_some();
        let waiting = RetryWait::default();
        let tap = ModelTap::start(TapOptions {
            provider: (!is_replayed).then(|| {
                TapProvider::own(address.unwrap_or(model.address()), WireFormat::Messages)
            }),
            name: "scripted:model.yaml".to_owned(),
            limits,
            meter: Arc::new(Meter::new(
                proctor_core::price::Prices::default(),
                Budget::default(),
            )),
            timeouts,
            waiting: waiting.clone(),
            recorder: recorder.clone(),
            replay,
        })
        .await
        .expect("a tap");
        Self {
            folder,
            _run: run,
            recorder,
            model,
            tap,
            waiting,
        }
    }

    async fn ask(&self, key: &str, body: &Value) -> (u16, String) {
        let client = proctor_wire::http_client::client().expect("a client");
        let response = client
            .post(format!("{}/v1/messages?beta=true", self.tap.base()))
            .header("x-api-key", key)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .expect("the tap answers");
        let status = response.status().as_u16();
        (status, response.text().await.expect("a body"))
    }

    async fn say(&self, prompt: &str, results: usize, stream: bool) -> (u16, String) {
        self.ask(self.tap.key(), &body(prompt, results, stream))
            .await
    }

    fn folded(&self) -> FoldedTrial {
        let folded = self.recorder.fold(&FoldOptions::default());
        folded.expect("a record").expect("it is kept")
    }

    /// Ends the trial, and returns the run's folder.
    fn end(&self) -> PathBuf {
        let trial = self.recorder.take_trial().expect("a trial");
        let ended = TrialEnded {
            outcome: Outcome::Passed,
            reason: None,
            blame: None,
        };
        trial.end(self.recorder.at(), ended).expect("an end");
        self.folder.path().join("run")
    }
}

/// A request with tools and this many results.
fn body(prompt: &str, results: usize, stream: bool) -> Value {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for n in 0..results {
        let id = format!("toolu_{n}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "mcp__ev__echo", "input": {"text": "hi"}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": "hi"}]}));
    }
    json!({
        "model": "claude-x", "max_tokens": 100, "stream": stream, "messages": messages,
        "tools": [{"name": "mcp__ev__echo", "input_schema": {"type": "object"}}],
    })
}

#[tokio::test]
async fn forwarded_requests_are_counted_and_recorded() {
    for stream in [false, true] {
        let stage = Stage::new(LoopLimits::default(), None).await;
        let (status, text) = stage.say("go", 0, stream).await;
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("mcp__ev__echo"), "{text}");
        let title = json!({"model": "small", "max_tokens": 9, "stream": stream,
            "messages": [{"role": "user", "content": "a title?"}]});
        assert_eq!(stage.ask(stage.tap.key(), &title).await.0, 200);
        assert!(stage.say("go", 1, stream).await.1.contains("done"));
        assert_eq!(stage.tap.turns(), 2, "the title is not a turn");
        let work = stage.folded().work;
        assert_eq!(work.agent.turns, 2);
        assert_eq!(work.agent.unmetered, 0);
        let usage = work.agent.usage;
        assert!(
            usage.input >= Some(300) && usage.output >= Some(10),
            "{usage:?}"
        );
        assert_eq!(work.agent.cost_usd, Some(0.0));
    }
}

#[tokio::test]
async fn only_the_token_is_accepted() {
    let stage = Stage::new(LoopLimits::default(), None).await;
    for key in ["", "sk-ant-real", &stage.tap.key()[1..]] {
        let (status, text) = stage.ask(key, &body("go", 0, false)).await;
        assert_eq!(status, 401, "{text}");
    }
    assert_eq!(stage.tap.turns(), 0);
    assert!(
        stage.folded().work.agent.models.is_empty(),
        "no request was sent"
    );
}

/// The request of a web page of another site, even one whose name resolves to loopback.
#[tokio::test]
async fn pages_in_a_browser_are_refused_by_the_tap_and_by_a_served_script() {
    let stage = Stage::new(LoopLimits::default(), None).await;
    let client = proctor_wire::http_client::client().expect("a client");
    let served = format!("http://{}", stage.model.address());
    for base in [stage.tap.base(), served] {
        let own = base.trim_start_matches("http://").to_owned();
        let localhost = own.replace("127.0.0.1", "localhost");
        for (header, value, status) in [
            ("host", own.as_str(), 200),
            ("host", &localhost, 200),
            ("origin", &base, 200),
            ("host", "evil.example", 403),
            ("host", "evil.example:80", 403),
            ("host", "localhost", 200),
            ("host", "127.0.0.1:9", 200),
            ("host", "localhost.evil.example", 403),
            ("host", "127.0.0.1.evil.example:80", 403),
            ("origin", "http://localhost:9", 403),
            ("origin", "http://evil.example", 403),
            ("origin", "null", 403),
            ("origin", "https://localhost", 403),
        ] {
            let sent = client
                .post(format!("{base}/v1/messages"))
                .header("x-api-key", stage.tap.key())
                .header("content-type", "application/json")
                .header(header, value)
                .body(body("go", 0, false).to_string());
            let response = sent.send().await.expect("an answer");
            assert_eq!(response.status().as_u16(), status, "{header}: {value}");
        }
    }
}

#[tokio::test]
async fn implausible_usage_is_unknown_and_limits_still_apply() {
    let limits = LoopLimits {
        tokens: Some(1_000),
        ..LoopLimits::default()
    };
    let stage = Stage::new(limits, None).await;
    assert_eq!(stage.say("absurd", 0, false).await.0, 200);
    let why = "can't enforce the limit of 1000 tokens";
    assert!(matches!(stage.tap.ended().await, TapEnd::Unpriced(found) if found.starts_with(why)));
    let work = stage.folded().work;
    assert_eq!((work.agent.unmetered, work.agent.usage.input), (1, None));
    assert_eq!(work.findings.len(), 1);
    assert_eq!(
        work.findings[0].kind,
        proctor_record::event::FindingKind::AbsurdUsage
    );
    assert!(
        work.findings[0]
            .detail
            .contains("18446744073709551615 tokens"),
        "{}",
        work.findings[0].detail
    );
}

#[tokio::test]
async fn limits_end_the_trial() {
    let turns = LoopLimits {
        turns: Some(1),
        ..LoopLimits::default()
    };
    let stage = Stage::new(turns, None).await;
    assert_eq!(stage.say("go", 0, false).await.0, 200);
    assert_eq!(stage.say("go", 1, false).await.0, 400);
    let why = "the agent was not done after 1 turns".to_owned();
    assert_eq!(stage.tap.ended().await, TapEnd::Limit(why));
    let tokens = LoopLimits {
        tokens: Some(107),
        ..LoopLimits::default()
    };
    let stage = Stage::new(tokens, None).await;
    assert_eq!(stage.say("go", 0, true).await.0, 200);
    assert_eq!(stage.say("go", 1, true).await.0, 400);
    assert!(
        matches!(stage.tap.ended().await, TapEnd::Limit(why) if why.contains("107 tokens of 107"))
    );
    let fewer = LoopLimits {
        tokens: Some(106),
        ..LoopLimits::default()
    };
    let stage = Stage::new(fewer, None).await;
    assert_eq!(stage.say("go", 0, true).await.0, 200);
    let why = "the agent used 107 tokens of 106".to_owned();
    assert_eq!(
        stage.tap.ended().await,
        TapEnd::Limit(why),
        "it need not ask again"
    );
}

#[tokio::test]
async fn a_retried_request_is_one_turn() {
    let turns = LoopLimits {
        turns: Some(2),
        ..LoopLimits::default()
    };
    let stage = Stage::new(turns, None).await;
    assert!(!stage.tap.has_replies());
    assert_eq!(stage.say("down", 0, false).await.0, 503);
    assert!(matches!(
        stage.tap.unanswered(),
        Some(ModelError::Unavailable { .. })
    ));
    assert_eq!(stage.say("go", 0, false).await.0, 200);
    assert_eq!((stage.tap.turns(), stage.tap.unanswered()), (1, None));
    assert_eq!(stage.say("go", 1, false).await.0, 200);
    assert_eq!(stage.say("go", 2, false).await.0, 400, "there are two");
    assert!(stage.tap.has_replies());
}

#[tokio::test]
async fn unsupported_requests_are_rejected() {
    let stage = Stage::new(LoopLimits::default(), None).await;
    let client = proctor_wire::http_client::client().expect("a client");
    let url = format!("{}/v1beta/models/m:countTokens", stage.tap.base());
    let asked = client.post(url).header("x-goog-api-key", stage.tap.key());
    let response = asked.body("{}").send().await.expect("the tap answers");
    assert_eq!(response.status().as_u16(), 404);
}

#[tokio::test]
async fn recorded_replies_are_replayed_byte_for_byte() {
    let first = Stage::new(LoopLimits::default(), None).await;
    let whole = first.say("go", 0, false).await;
    let streamed = first.say("go", 1, true).await;
    let cassette = Cassette::open(&first.end()).expect("a cassette");
    let tape = cassette.tape("case", "agent", 1).expect("a tape");
    let again = Stage::new(LoopLimits::default(), Some(Replay::new(tape, true))).await;
    assert_eq!(again.say("go", 0, false).await, whole);
    assert_eq!(again.say("go", 1, true).await, streamed);
    let work = again.folded().work;
    assert_eq!((work.agent.replayed, work.agent.drifted), (2, 0));
    let usage = work.agent.usage;
    assert_eq!((usage.input, usage.output), (Some(300), Some(10)));
    let (status, text) = again.say("go", 2, false).await;
    assert_eq!(status, 400);
    assert!(
        text.contains("no model request of the agent after 2 tool results"),
        "{text}"
    );
    assert!(matches!(again.tap.ended().await, TapEnd::Dead(_)));
}

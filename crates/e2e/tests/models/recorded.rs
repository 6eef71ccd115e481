//! What asking leaves in the record, and when the budget ends it.

use std::path::Path;
use std::time::Instant;

use proctor_e2e::model::says::{openai_calls, openai_error};
use proctor_e2e::model::{FixtureModel, FixtureReply};
use proctor_models::{AskError, Budget, ModelClient};
use proctor_record::event::{
    Body, Event, EventKind, Outcome, Purpose, RECORD_VERSION, RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::model::{ModelMessage, ModelRequest, Tool, ToolResult, Turn};
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_wire::recorder::Recorder;
use serde_json::json;

use super::{KEY, Provider, asker, hello};

fn start(folder: &Path) -> (RunWriter, Recorder) {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let run = RunWriter::create(folder, Redactor::default(), started).unwrap();
    let trial = TrialStarted {
        case: "case".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    };
    let trial = run.trial(0, "case", trial).unwrap();
    (run, Recorder::new(trial, Instant::now()))
}

fn end(recorder: &Recorder, folder: &Path) -> (RunReader, Vec<Event>) {
    assert!(recorder.take_error().is_none());
    let ended = TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    };
    recorder
        .take_trial()
        .unwrap()
        .end(recorder.at(), ended)
        .unwrap();
    let reader = RunReader::open(folder).unwrap();
    let trial = &reader.trials().unwrap()[0];
    let events = reader.trial(trial).unwrap().map(Result::unwrap).collect();
    (reader, events)
}

fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: None,
        schema: json!({"type": "object"}),
    }
}

/// A question, a failure, a call, an answer; then a judge.
async fn conversation(asker: &ModelClient) -> Vec<ModelRequest> {
    let mut request = ModelRequest {
        tools: vec![tool("add")].into(),
        ..hello()
    };
    let mut requests = vec![request.clone()];
    let turn = asker.ask(&request).await.unwrap().reply.turn;
    let id = turn.calls[0].id.clone();
    request.messages.push(ModelMessage::Assistant(turn));
    request
        .messages
        .push(ModelMessage::Results(vec![ToolResult {
            id,
            name: "add".to_owned(),
            text: "3".to_owned(),
            is_error: false,
            media: Vec::new(),
        }]));
    requests.push(request.clone());
    asker.ask(&request).await.unwrap();
    let judge = ModelClient {
        purpose: Purpose::Judge,
        ..asker.clone()
    };
    let verdict = ModelRequest {
        tools: vec![tool("verdict")].into(),
        ..hello()
    };
    requests.push(verdict.clone());
    judge.ask(&verdict).await.unwrap();
    requests
}

#[tokio::test]
async fn a_conversation_can_be_read_back_from_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (_run, recorder) = start(&path);
    let fixture = FixtureModel::start([
        openai_error(500, "x", "oops"),
        openai_calls(&[("c1", "add", r#"{"a":1}"#)]),
        Provider::OpenAi.says("3"),
        Provider::OpenAi.says("fine"),
    ]);
    let asker = asker(
        Provider::OpenAi.model(&fixture),
        recorder,
        Budget::default(),
    );
    let requests = conversation(&asker).await;
    let (reader, events) = end(&asker.recorder, &path);
    let mut read: Vec<ModelRequest> = Vec::new();
    let (mut tools, mut seen) = (Vec::new(), Vec::new());
    for event in &events {
        match &event.event {
            EventKind::ToolsOffered { tools: body } => {
                assert!(matches!(body, Body::Blob { .. }));
                let bytes = reader.body_bytes(body).unwrap().unwrap();
                tools = serde_json::from_slice::<Vec<Tool>>(&bytes).unwrap();
                seen.push("tools".to_owned());
            }
            EventKind::ModelAsked(one) => {
                let bytes = reader.body_bytes(&one.request).unwrap().unwrap();
                let mut request: ModelRequest = serde_json::from_slice(&bytes).unwrap();
                let known = usize::try_from(one.known).unwrap();
                let mut messages = match known {
                    0 => Vec::new(),
                    _ => read.last().unwrap().messages[..known].to_vec(),
                };
                messages.append(&mut request.messages);
                read.push(ModelRequest {
                    messages,
                    tools: tools.clone().into(),
                    ..request
                });
                assert_eq!(one.model, "openai:gpt-5");
                seen.push(format!("asked {} {:?} {}", one.ask, one.purpose, one.known));
            }
            EventKind::ModelFailed(one) => {
                assert!(one.again_in.is_some_and(|wait| wait > 0) && one.reason.contains("oops"));
                seen.push(format!("failed {} {}", one.ask, one.attempt));
            }
            EventKind::ModelReplied(one) => {
                let bytes = reader.body_bytes(&one.turn).unwrap().unwrap();
                let turn: Turn = serde_json::from_slice(&bytes).unwrap();
                let raw = reader
                    .body_bytes(one.raw.as_ref().unwrap())
                    .unwrap()
                    .unwrap();
                assert!(serde_json::from_slice::<serde_json::Value>(&raw).is_ok());
                assert!(one.cost_usd.is_some() && one.usage.total() == 15);
                seen.push(format!(
                    "replied {} {}{}",
                    one.ask,
                    turn.text,
                    turn.calls.len()
                ));
            }
            _ => {}
        }
    }
    assert_eq!(
        seen,
        [
            "tools",
            "asked 1 Agent 0",
            "failed 1 1",
            "replied 1 1",
            "asked 2 Agent 1",
            "replied 2 30",
            "tools",
            "asked 3 Judge 0",
            "replied 3 fine0",
        ]
    );
    assert_eq!(read, requests);
    let spent = asker.meter.spent();
    assert_eq!((spent.agent.replies, spent.judge.replies), (2, 1));
    assert_eq!(spent.total().usage.total(), 45);
    assert!(asker.waiting.total() > std::time::Duration::ZERO);
}

#[tokio::test]
async fn the_last_failure_says_that_nobody_asks_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (_run, recorder) = start(&path);
    let echo = format!("bad key {KEY}");
    let fixture =
        FixtureModel::start([openai_error(503, "x", &echo), openai_error(401, "x", &echo)]);
    let asker = asker(
        Provider::OpenAi.model(&fixture),
        recorder,
        Budget::default(),
    );
    let error = asker.ask(&hello()).await.unwrap_err();
    assert!(matches!(error, AskError::Model { attempts: 2, .. }));
    let (_, events) = end(&asker.recorder, &path);
    let failed: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            EventKind::ModelFailed(failed) => Some((failed.attempt, failed.again_in.is_some())),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [(1, true), (2, false)]);
    // The record knew nothing of this key.
    for file in std::fs::read_dir(path.join("trials")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(text.contains("bad key") && !text.contains(KEY));
    }
}

#[tokio::test]
async fn a_spent_budget_ends_the_questions() {
    for budget in [
        Budget {
            tokens: Some(30),
            usd: None,
        },
        // Two replies of 6 + 4 cached tokens in and 5 out, at $1.25, $0.125 and $10.
        Budget {
            tokens: None,
            usd: Some(0.000_11),
        },
    ] {
        let fixture = FixtureModel::start((0..5).map(|_| Provider::OpenAi.says("hi")));
        let asker = asker(
            Provider::OpenAi.model(&fixture),
            Recorder::nothing(),
            budget,
        );
        assert!(asker.ask(&hello()).await.is_ok());
        assert!(asker.ask(&hello()).await.is_ok());
        let Err(AskError::Budget(text)) = asker.ask(&hello()).await else {
            panic!("{budget:?}");
        };
        assert!(
            text.contains("the budget of") && text.contains("is spent"),
            "{text}"
        );
        assert_eq!(fixture.questions().len(), 2);
    }
}

#[tokio::test]
async fn a_reply_without_usage_is_not_taken_for_free() {
    let body = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]});
    let fixture = FixtureModel::start([
        FixtureReply::json(200, &body),
        FixtureReply::json(200, &body),
    ]);
    let budget = Budget {
        usd: Some(1.0),
        tokens: None,
    };
    let asker = asker(
        Provider::OpenAi.model(&fixture),
        Recorder::nothing(),
        budget,
    );
    let first = asker.ask(&hello()).await.unwrap();
    assert_eq!((first.cost_usd, first.reply.usage.input), (None, None));
    assert!(matches!(
        asker.ask(&hello()).await,
        Err(AskError::Budget(_))
    ));
    assert_eq!(asker.meter.spent().total().unknown_costs, 1);
}

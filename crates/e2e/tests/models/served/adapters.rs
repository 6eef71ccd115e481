//! Our own adapters ask a served script: whole conversations, faults, refusals and side calls.

use std::sync::{Arc, Mutex};

use proctor_core::script::Script;
use proctor_core::suite::load_script;
use proctor_models::serve::{ModelServer, ServedReply, ServedRequest};
use proctor_models::{Model, ModelError, Settings};
use proctor_record::model::{ModelMessage, ModelRequest, Reply, StopReason, Tool, ToolResult};
use proctor_record::problem::Problems;
use serde_json::json;

use super::SCRIPT;
use crate::{ALL, Provider, QUICK, SLOW, hello};

fn script(text: &str) -> Script {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.yaml");
    std::fs::write(&path, text).unwrap();
    let mut problems = Problems::default();
    load_script(&path, &mut problems).unwrap_or_else(|| {
        panic!(
            "{:?}",
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        )
    })
}

/// What was told of questions.
pub(super) type LoggedQuestions = Arc<Mutex<Vec<ServedRequest>>>;

pub(super) async fn serve(text: &str) -> (ModelServer, LoggedQuestions) {
    let told = LoggedQuestions::default();
    let watched = told.clone();
    let watch = move |served: &ServedRequest| watched.lock().unwrap().push(served.clone());
    let server = ModelServer::watched(script(text), 0, watch).await.unwrap();
    (server, told)
}

fn model(provider: Provider, server: &ModelServer, quick: bool) -> Model {
    let url = format!("http://{}/v1", server.address());
    let env = std::collections::BTreeMap::new();
    let settings = Settings {
        base_url: Some(&url),
        timeouts: if quick { QUICK } else { SLOW },
        ..Settings::of(&env)
    };
    let reference = proctor_core::suite::agent::ModelRef {
        provider: proctor_core::provider::Provider::parse(provider.word()),
        id: "m".to_owned(),
        script: None,
    };
    Model::open(&reference, &settings).unwrap()
}

fn with_tools(prompt: &str, names: &[&str]) -> ModelRequest {
    let tool = |name: &&str| Tool {
        name: (*name).to_owned(),
        description: None,
        schema: json!({"type": "object"}),
    };
    ModelRequest {
        messages: vec![ModelMessage::User(prompt.to_owned())],
        tools: names.iter().map(tool).collect(),
        ..ModelRequest::default()
    }
}

/// A whole conversation; every call gives its own name.
async fn converse(model: &Model, mut request: ModelRequest) -> Vec<Reply> {
    let mut replies = Vec::new();
    while replies.len() < 5 {
        let mut reply = model.ask(&request).await.unwrap();
        reply.raw = None;
        request
            .messages
            .push(ModelMessage::Assistant(reply.turn.clone()));
        for thought in &mut reply.turn.thinking {
            thought.raw = None;
        }
        reply
            .turn
            .thinking
            .retain(|thought| !thought.text.is_empty());
        let results: Vec<_> = reply.turn.calls.iter().map(given).collect();
        let is_last = results.is_empty();
        request.messages.push(ModelMessage::Results(results));
        replies.push(reply);
        if is_last {
            break;
        }
    }
    replies
}

fn given(call: &proctor_record::model::ToolCall) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: call.name.clone(),
        is_error: false,
        media: Vec::new(),
    }
}

#[tokio::test]
async fn our_own_adapters_get_what_the_script_says() {
    let (server, _) = serve(SCRIPT).await;
    let request = with_tools("add 1 and 2", &["calc__add", "calc__get-sum"]);
    let scripted = Model::Scripted(proctor_models::ScriptedModel::new(
        "m",
        Arc::new(script(SCRIPT)),
    ));
    let mut expected = converse(&scripted, request.clone()).await;
    for reply in &mut expected {
        // What is not known here is said to be none there.
        reply.usage.cached.get_or_insert(0);
        reply.usage.reasoning.get_or_insert(0);
    }
    assert_eq!(expected.len(), 2);
    for provider in ALL {
        let mut replies = converse(&model(provider, &server, false), request.clone()).await;
        for reply in &mut replies {
            reply.usage.cache_written = None;
            reply.usage.cached.get_or_insert(0);
            reply.usage.reasoning.get_or_insert(0);
        }
        assert_eq!(replies, expected, "{provider:?}");
    }
}

#[tokio::test]
async fn sessions_at_once_do_not_disturb_each_other() {
    let (server, _) = serve(SCRIPT).await;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..24 {
        let model = model(ALL[number % 4], &server, false);
        running.spawn(async move {
            let request = with_tools(&format!("add {number} and 2"), &["add", "get_sum"]);
            let replies = converse(&model, request).await;
            let first = serde_json::to_value(&replies[0].turn.calls[0].arguments).unwrap();
            (number, first["object"]["a"].clone(), replies.len())
        });
    }
    while let Some(done) = running.join_next().await {
        let (number, argument, turns) = done.unwrap();
        assert_eq!((argument, turns), (json!(number.to_string()), 2));
    }
}

#[tokio::test]
async fn every_fault_is_what_it_stands_for_in_every_format() {
    for (fault, expected) in [
        (
            "{kind: rateLimit, detail: slow, retryAfter: 2s}",
            "RateLimited { retry_after: Some(2s), detail: \"slow\" }",
        ),
        (
            "{kind: unavailable, detail: gone}",
            "Unavailable { retry_after: None, is_overload: false, detail: \"gone\" }",
        ),
        ("{kind: key, detail: bad}", "Key { detail: \"bad\" }"),
        (
            "{kind: rejected, detail: odd}",
            "Rejected { detail: \"odd\" }",
        ),
        ("{kind: context, detail: long}", "ContextOverflow"),
        ("{kind: malformed, detail: x}", "Malformed"),
        ("{kind: timeout}", "TimedOut"),
    ] {
        let (server, told) = serve(&format!(
            "kind: Script\nrules:\n- reply: {{error: {fault}}}\n"
        ))
        .await;
        for provider in ALL {
            let model = model(provider, &server, fault.contains("timeout"));
            let error = model.ask(&with_tools("hi", &["x"])).await.unwrap_err();
            // Anthropic's status for it, 529, is that of an overload.
            let expected = match provider {
                Provider::Anthropic => expected.replace("overload: false", "overload: true"),
                _ => expected.to_owned(),
            };
            let shown = format!("{error:?}");
            assert!(
                shown.starts_with(&expected),
                "{provider:?} {fault}: {shown}"
            );
        }
        let told = told.lock().unwrap();
        assert!(
            told.iter()
                .all(|one| matches!(one.said, ServedReply::Fault(_))),
            "{told:?}"
        );
        assert_eq!(told.len(), ALL.len(), "{fault}");
    }
}

#[tokio::test]
async fn a_refusal_and_a_cut_reply_are_what_they_are() {
    let rules = "kind: Script\nrules:\n- when: {prompt: bad}\n  reply: {refuse: I can't.}\n- reply: {text: The answer is, stop: length}\n";
    let (server, _) = serve(rules).await;
    for provider in ALL {
        let model = model(provider, &server, false);
        let refused = model.ask(&with_tools("bad", &["x"])).await.unwrap();
        assert_eq!(
            (refused.stop, &*refused.turn.text),
            (StopReason::Refusal, "I can't."),
            "{provider:?}"
        );
        let cut = model.ask(&with_tools("go", &["x"])).await.unwrap();
        assert_eq!(
            (cut.stop, &*cut.turn.text),
            (StopReason::Length, "The answer is"),
            "{provider:?}"
        );
    }
}

#[tokio::test]
async fn what_the_script_does_not_know_is_a_clear_error() {
    let (server, told) =
        serve("kind: Script\nrules:\n- when: {prompt: weather}\n  reply: {text: sunny}\n").await;
    for provider in ALL {
        let model = model(provider, &server, false);
        let error = model
            .ask(&with_tools("hi", &["ev__echo"]))
            .await
            .unwrap_err();
        assert!(matches!(error, ModelError::Rejected { .. }), "{error:?}");
        let error = error.to_string();
        let expected =
            "no rule matches: turn 1, 0 tool results so far, available tools: `ev__echo`";
        assert!(
            error.contains("the script has no reply") && error.ends_with(expected),
            "{error}"
        );
    }
    assert!(
        told.lock()
            .unwrap()
            .iter()
            .all(|one| matches!(one.said, ServedReply::Nothing(_)))
    );
}

#[tokio::test]
async fn a_tool_that_may_be_several_is_a_clear_error() {
    let (server, _) = serve("kind: Script\nrules:\n- reply: {calls: [{tool: read}]}\n").await;
    let model = model(Provider::Anthropic, &server, false);
    let offered = with_tools("hi", &["mcp__a__read", "mcp__b__read"]);
    let error = model.ask(&offered).await.unwrap_err().to_string();
    let expected = "the rule at line 3 calls `read`, which is ambiguous: `mcp__a__read`, `mcp__b__read`; add the server's name, as in `server__read`";
    assert!(error.ends_with(expected), "{error}");
}

#[tokio::test]
async fn side_calls_get_a_harmless_answer_and_leave_the_rest_alone() {
    let rules = "kind: Script\nrules:\n- when: {turn: 1}\n  reply: {calls: [{tool: echo}]}\n- when: {turn: 2}\n  reply: {text: done}\n";
    let (server, told) = serve(rules).await;
    for provider in ALL {
        let model = model(provider, &server, false);
        // A title: no tools, and the prompt in it.
        let title = model
            .ask(&with_tools("title for: echo hi", &[]))
            .await
            .unwrap();
        assert_eq!((&*title.turn.text, title.turn.calls.len()), ("scripted", 0));
        let mut request = with_tools("echo hi", &["ev_echo"]);
        let replies = converse(&model, request.clone()).await;
        assert_eq!(replies.len(), 2);
        assert_eq!(replies[0].turn.calls[0].name, "ev_echo");
        // A guess of what is asked next, after the answer.
        request
            .messages
            .push(ModelMessage::Assistant(replies[0].turn.clone()));
        request.messages.push(ModelMessage::Results(vec![given(
            &replies[0].turn.calls[0],
        )]));
        request
            .messages
            .push(ModelMessage::Assistant(replies[1].turn.clone()));
        request.messages.push(ModelMessage::User(
            "[SUGGESTION MODE: what next?]".to_owned(),
        ));
        let guess = model.ask(&request).await.unwrap();
        assert_eq!((&*guess.turn.text, guess.turn.calls.len()), ("scripted", 0));
    }
    let told = told.lock().unwrap();
    let sides: Vec<bool> = told.iter().take(4).map(|one| one.is_side_call).collect();
    assert_eq!(sides, [true, false, false, true]);
}

#[tokio::test]
async fn a_plain_question_is_answered_without_tools() {
    let (server, _) = serve("kind: Script\nrules:\n- reply: {text: 'you said {user}'}\n").await;
    for provider in ALL {
        let reply = model(provider, &server, false).ask(&hello()).await.unwrap();
        assert_eq!(reply.turn.text, "you said hello", "{provider:?}");
    }
}

//! The model's row of the fault table: each fault has a typed reason, and passes or does not.

use std::time::{Duration, Instant};

use proctor_e2e::model::says::{
    anthropic_blocks, anthropic_error, gemini_error, gemini_parts, openai_calls, openai_error,
    openai_message, responses_items,
};
use proctor_e2e::model::{FixtureModel, FixtureReply};
use proctor_e2e::port::ReservedPort;
use proctor_models::{AskError, Budget, ModelError};
use proctor_record::model::{Arguments, StopReason};
use proctor_wire::recorder::Recorder;
use serde_json::json;

use super::{ALL, Provider, ask, ask_patiently, stalls};

fn kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::RateLimited { .. } => "rate-limited",
        ModelError::Unavailable { .. } => "unavailable",
        ModelError::TimedOut { .. } => "timed-out",
        ModelError::Key { .. } => "key",
        ModelError::ContextOverflow { .. } => "overflow",
        ModelError::Rejected { .. } => "rejected",
        ModelError::Malformed { .. } => "malformed",
        ModelError::Script { .. } => "script",
        ModelError::Replay { .. } => "replay",
    }
}

/// What passes if it is asked again.
fn passing() -> Vec<(FixtureReply, &'static str)> {
    let limited = || openai_error(429, "rate_limit_exceeded", "slow down");
    vec![
        (limited(), "rate-limited"),
        (limited().with("retry-after", "0"), "rate-limited"),
        (limited().with("retry-after", "0.05"), "rate-limited"),
        (limited().with("retry-after-ms", "30"), "rate-limited"),
        (
            limited().with("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
            "rate-limited",
        ),
        (limited().with("retry-after", "-5"), "rate-limited"),
        (limited().with("retry-after", "tomorrow"), "rate-limited"),
        (openai_error(500, "server_error", "oops"), "unavailable"),
        (FixtureReply::text(503, "<html>busy</html>"), "unavailable"),
        (
            anthropic_error(529, "overloaded_error", "Overloaded"),
            "unavailable",
        ),
        (FixtureReply::Reset, "unavailable"),
        (
            FixtureReply::Cut(b"{\"choices\":[],\"content\":[]}".to_vec()),
            "unavailable",
        ),
        (
            FixtureReply::Stalls(b"{\"choices\":[],\"content\":[]}".to_vec()),
            "timed-out",
        ),
        (FixtureReply::Never, "timed-out"),
        (FixtureReply::text(200, "{\"choices\":["), "malformed"),
        (FixtureReply::text(200, "<html>sign in</html>"), "malformed"),
        (FixtureReply::text(200, ""), "malformed"),
        (FixtureReply::text(200, "[]"), "malformed"),
        (FixtureReply::text(200, "{\"choices\":[]}"), "malformed"),
        (FixtureReply::text(200, "\u{0}\u{1}"), "malformed"),
        (
            FixtureReply::json(200, &json!({"error": {"code": 429, "message": "x"}})),
            "rate-limited",
        ),
        (
            FixtureReply::json(200, &json!({"error": {"message": "upstream"}})),
            "unavailable",
        ),
        (FixtureReply::Huge(40 << 20), "malformed"),
        (
            gemini_error(
                429,
                "RESOURCE_EXHAUSTED",
                "x",
                &json!([{"retryDelay": "0.03s"}]),
            ),
            "rate-limited",
        ),
        (
            gemini_error(503, "UNAVAILABLE", "The model is overloaded.", &json!([])),
            "unavailable",
        ),
    ]
}

/// What would be no better a second time.
fn lasting() -> Vec<(FixtureReply, &'static str)> {
    vec![
        (
            openai_error(401, "invalid_api_key", "Incorrect API key provided"),
            "key",
        ),
        (anthropic_error(403, "permission_error", "not yours"), "key"),
        (
            openai_error(429, "insufficient_quota", "check your plan"),
            "key",
        ),
        (
            openai_error(400, "context_length_exceeded", "too long"),
            "overflow",
        ),
        (
            anthropic_error(
                400,
                "invalid_request_error",
                "prompt is too long: 9 tokens > 8 maximum",
            ),
            "overflow",
        ),
        (
            anthropic_error(413, "request_too_large", "too large"),
            "overflow",
        ),
        (
            openai_error(404, "model_not_found", "no such model"),
            "rejected",
        ),
        (
            anthropic_error(400, "invalid_request_error", "messages: odd"),
            "rejected",
        ),
        (
            FixtureReply::text(307, "").with("location", "http://elsewhere.example/v1"),
            "rejected",
        ),
        (
            gemini_error(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                &json!([{"reason": "API_KEY_INVALID"}]),
            ),
            "key",
        ),
        (
            gemini_error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                &json!([]),
            ),
            "overflow",
        ),
    ]
}

#[tokio::test]
async fn every_fault_has_its_reason() {
    for provider in ALL {
        for (answer, expected) in passing().into_iter().chain(lasting()) {
            let error = ask(provider, answer.clone()).await.unwrap_err();
            assert_eq!(kind(&error), expected, "{provider:?} {answer:?}: {error}");
        }
    }
}

#[tokio::test]
async fn what_passes_is_asked_again() {
    for (answer, _) in passing() {
        if !stalls(&answer) {
            is_asked_again(answer).await;
        }
    }
}

#[tokio::test]
async fn what_stalls_is_asked_again() {
    let mut stalling = passing()
        .into_iter()
        .map(|(answer, _)| answer)
        .filter(stalls);
    let (one, other) = (stalling.next().unwrap(), stalling.next().unwrap());
    assert!(stalling.next().is_none());
    tokio::join!(is_asked_again(one), is_asked_again(other));
}

async fn is_asked_again(answer: FixtureReply) {
    // The fixture keeps no question that it resets.
    let asked = 2 - usize::from(matches!(answer, FixtureReply::Reset));
    let answers = vec![answer.clone(), Provider::OpenAi.says("hi")];
    let (reply, waited, questions) = ask_patiently(Provider::OpenAi, answers).await;
    assert_eq!(reply.unwrap().reply.turn.text, "hi", "{answer:?}");
    assert!(waited > Duration::ZERO, "{answer:?}");
    assert_eq!(questions, asked, "{answer:?}");
}

#[tokio::test]
async fn what_lasts_is_not_asked_again() {
    for (answer, _) in lasting() {
        let answers = vec![answer.clone(), Provider::Anthropic.says("hi")];
        let (reply, waited, questions) = ask_patiently(Provider::Anthropic, answers).await;
        assert!(
            matches!(reply, Err(AskError::Model { attempts: 1, .. })),
            "{answer:?}"
        );
        assert_eq!((waited, questions), (Duration::ZERO, 1), "{answer:?}");
    }
}

#[tokio::test]
async fn patience_ends() {
    let down = || openai_error(500, "server_error", "oops");
    let answers = vec![down(), down(), down(), Provider::OpenAi.says("late")];
    let (reply, _, questions) = ask_patiently(Provider::OpenAi, answers).await;
    let error = reply.unwrap_err().to_string();
    assert_eq!(error, "the model is unavailable: oops (3 attempts)");
    assert_eq!(questions, 3);
}

#[tokio::test]
async fn a_provider_is_left_alone_as_long_as_it_asks_and_no_longer_than_makes_sense() {
    let limited = |wait: &str| openai_error(429, "x", "slow down").with("retry-after", wait);
    let started = Instant::now();
    let answers = vec![limited("0.3"), Provider::OpenAi.says("hi")];
    let (reply, waited, _) = ask_patiently(Provider::OpenAi, answers).await;
    assert!(reply.is_ok());
    assert!(waited >= Duration::from_millis(300) && started.elapsed() >= waited);
    for absurd in ["3600", "1e300", "Fri, 15 Nov 2999 08:49:37 GMT"] {
        let answers = vec![limited(absurd), Provider::OpenAi.says("hi")];
        let (reply, waited, questions) = ask_patiently(Provider::OpenAi, answers).await;
        let error = reply.unwrap_err().to_string();
        assert!(error.contains("the maximum wait is 1s"), "{error}");
        assert_eq!((waited, questions), (Duration::ZERO, 1));
    }
}

#[tokio::test]
async fn nobody_there_is_said_with_the_place() {
    let closed = ReservedPort::new();
    let address = format!("127.0.0.1:{}", closed.number());
    let env = std::collections::BTreeMap::new();
    let url = format!("http://name:secret-password@{address}/v1?token=abcdefghijk");
    let settings = proctor_models::Settings {
        base_url: Some(&url),
        ..proctor_models::Settings::of(&env)
    };
    let reference = proctor_core::suite::agent::ModelRef {
        provider: proctor_core::provider::Provider::parse("openai"),
        id: "x".to_owned(),
        script: None,
    };
    let model = proctor_models::Model::open(&reference, &settings).unwrap();
    let error = model.ask(&super::hello()).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("no connection to {address}")),
        "{error}"
    );
    for secret in ["secret-password", "abcdefghijk"] {
        assert!(
            !error.contains(secret) && !format!("{model:?}").contains(secret),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_models_mistakes_are_replies() {
    let malformed = openai_calls(&[
        ("a", "add", "{\"a\": 1"),
        ("b", "no-such-tool", "{}"),
        ("c", "add", "[1]"),
    ]);
    let reply = ask(Provider::OpenAi, malformed).await.unwrap();
    assert_eq!(reply.stop, StopReason::Calls);
    let calls = &reply.turn.calls;
    assert!(
        matches!(&calls[0].arguments, Arguments::Malformed { text, reason } if text == "{\"a\": 1" && reason.contains("not JSON"))
    );
    assert_eq!(
        (calls[1].name.as_str(), &calls[1].arguments),
        ("no-such-tool", &Arguments::Object(serde_json::Map::new()))
    );
    assert!(
        matches!(&calls[2].arguments, Arguments::Malformed { reason, .. } if reason == "not a JSON object")
    );
    let odd = json!([{"type": "tool_use", "id": "a", "name": "add", "input": "text"}]);
    let reply = ask(Provider::Anthropic, anthropic_blocks(&odd, "tool_use"))
        .await
        .unwrap();
    assert!(matches!(
        reply.turn.calls[0].arguments,
        Arguments::Malformed { .. }
    ));
}

#[tokio::test]
async fn a_call_that_gemini_could_not_make_is_asked_for_again() {
    let answers = vec![
        gemini_parts(&json!([]), "MALFORMED_FUNCTION_CALL"),
        Provider::Gemini.says("hi"),
    ];
    let (reply, _, questions) = ask_patiently(Provider::Gemini, answers).await;
    assert_eq!(reply.unwrap().reply.turn.text, "hi");
    assert_eq!(questions, 2);
}

#[tokio::test]
async fn a_provider_that_asks_for_patience_in_its_body_is_given_it() {
    let details = json!([{"@type": "x"}, {"retryDelay": "0.2s"}]);
    let limited = gemini_error(429, "RESOURCE_EXHAUSTED", "quota", &details);
    let answers = vec![limited, Provider::Gemini.says("hi")];
    let (reply, waited, _) = ask_patiently(Provider::Gemini, answers).await;
    assert!(reply.is_ok() && waited >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_response_that_failed_is_an_error() {
    let error = json!({"code": "server_error", "message": "oops"});
    let body = json!({"status": "failed", "error": error, "output": []});
    let error = ask(Provider::Responses, FixtureReply::json(200, &body))
        .await
        .unwrap_err();
    assert_eq!(kind(&error), "unavailable");
}

#[tokio::test]
async fn a_refusal_is_a_reply() {
    let refused = json!({"role": "assistant", "content": null, "refusal": "I can't."});
    let reply = ask(Provider::OpenAi, openai_message(&refused, "stop"))
        .await
        .unwrap();
    assert_eq!(
        (reply.stop, reply.turn.text.as_str()),
        (StopReason::Refusal, "I can't.")
    );
    let filtered = json!({"role": "assistant", "content": ""});
    let reply = ask(
        Provider::OpenAi,
        openai_message(&filtered, "content_filter"),
    )
    .await
    .unwrap();
    assert_eq!(reply.stop, StopReason::Refusal);
    let reply = ask(Provider::Anthropic, anthropic_blocks(&json!([]), "refusal"))
        .await
        .unwrap();
    assert_eq!(reply.stop, StopReason::Refusal);
    let refused = json!([{"type": "message", "role": "assistant", "content": [
        {"type": "refusal", "refusal": "I can't."},
    ]}]);
    let reply = ask(Provider::Responses, responses_items(&refused, "completed"))
        .await
        .unwrap();
    assert_eq!(
        (reply.stop, reply.turn.text.as_str()),
        (StopReason::Refusal, "I can't.")
    );
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}});
    let reply = ask(Provider::Gemini, FixtureReply::json(200, &blocked))
        .await
        .unwrap();
    assert_eq!(
        (reply.stop, reply.usage.input),
        (StopReason::Refusal, Some(7))
    );
}

#[tokio::test]
async fn a_wait_is_announced_before_it_begins() {
    let limited = openai_error(429, "x", "slow down").with("retry-after", "0.9");
    let fixture = FixtureModel::start([limited, Provider::OpenAi.says("hi")]);
    let model = Provider::OpenAi.model(&fixture);
    let asker = super::asker(model, Recorder::nothing(), Budget::default());
    let request = super::hello();
    let asking = asker.ask(&request);
    let watching = async {
        while asker.waiting.total() == Duration::ZERO {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The second question comes after the wait.
        assert_eq!(fixture.questions().len(), 1);
        asker.waiting.total()
    };
    let (reply, announced) = tokio::join!(asking, watching);
    assert!(reply.is_ok());
    assert!(announced >= Duration::from_millis(900));
    assert_eq!(announced, asker.waiting.total());
}

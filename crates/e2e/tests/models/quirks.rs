//! What a model turns out not to take is left out, and remembered.

use proctor_e2e::model::says::{anthropic_error, openai_error};
use proctor_e2e::model::{FixtureModel, FixtureReply};
use proctor_record::model::{ModelRequest, Tool};
use serde_json::{Value, json};

use super::{Provider, SLOW, hello};

/// Asks twice; gives the bodies of all questions.
async fn bodies(provider: Provider, request: &ModelRequest, refusal: FixtureReply) -> Vec<Value> {
    bodies_of(provider, provider.id(), request, refusal).await
}

async fn bodies_of(
    provider: Provider,
    id: &str,
    request: &ModelRequest,
    refusal: FixtureReply,
) -> Vec<Value> {
    let fixture = FixtureModel::start([refusal, provider.says("a"), provider.says("b")]);
    let model = provider.named(&fixture, id, SLOW);
    assert_eq!(model.ask(request).await.unwrap().turn.text, "a");
    assert_eq!(model.ask(request).await.unwrap().turn.text, "b");
    fixture.questions().into_iter().map(|q| q.body).collect()
}

#[tokio::test]
async fn a_temperature_that_is_refused_is_left_out() {
    let request = ModelRequest {
        temperature: Some(0.0),
        ..hello()
    };
    let refusal = "Unsupported value: 'temperature' does not support 0 with this model.";
    for (provider, id, refusal) in [
        (
            Provider::OpenAi,
            "gpt-5",
            openai_error(400, "unsupported_value", refusal),
        ),
        (
            Provider::Anthropic,
            "claude-opus-4-8",
            anthropic_error(
                400,
                "invalid_request_error",
                "`temperature` is deprecated for this model.",
            ),
        ),
    ] {
        let bodies = bodies_of(provider, id, &request, refusal).await;
        let given: Vec<bool> = bodies
            .iter()
            .map(|b| b.get("temperature").is_some())
            .collect();
        assert_eq!(given, [true, false, false], "{provider:?}");
    }
}

#[tokio::test]
async fn thoughts_that_can_not_be_had_are_not_asked_for() {
    let refusal = "Encrypted content is not supported with this model.";
    let refusal = openai_error(400, "x", refusal);
    let bodies = bodies(Provider::Responses, &hello(), refusal).await;
    let given: Vec<bool> = bodies.iter().map(|b| b.get("include").is_some()).collect();
    assert_eq!(given, [true, false, false]);
}

#[tokio::test]
async fn the_limit_of_a_reply_has_two_names() {
    let request = ModelRequest {
        max_tokens: Some(77),
        ..hello()
    };
    let refusal = openai_error(
        400,
        "unsupported_parameter",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    );
    let bodies = bodies(Provider::OpenAi, &request, refusal).await;
    assert_eq!(bodies[0]["max_tokens"], json!(77));
    for body in &bodies[1..] {
        assert_eq!(body["max_completion_tokens"], json!(77));
        assert!(body.get("max_tokens").is_none());
    }
}

#[tokio::test]
async fn a_limit_that_the_model_states_is_kept() {
    let refusal = anthropic_error(
        400,
        "invalid_request_error",
        "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for this model",
    );
    let bodies = bodies(Provider::Anthropic, &hello(), refusal).await;
    let limits: Vec<&Value> = bodies.iter().map(|body| &body["max_tokens"]).collect();
    assert_eq!(limits, [&json!(16_384), &json!(8_192), &json!(8_192)]);
}

#[tokio::test]
async fn a_model_that_can_not_be_forced_is_told() {
    let request = ModelRequest {
        tools: vec![Tool {
            name: "verdict".to_owned(),
            description: None,
            schema: json!({}),
        }]
        .into(),
        must_call: Some("verdict".to_owned()),
        system: Some("Judge.".to_owned()),
        ..hello()
    };
    let refusal = "tool_choice: forced tool use is not supported for this model";
    let anthropic = anthropic_error(400, "invalid_request_error", refusal);
    let sent = bodies(Provider::Anthropic, &request, anthropic).await;
    assert_eq!(
        sent[0]["tool_choice"],
        json!({"type": "tool", "name": "verdict"})
    );
    assert_eq!(sent[0]["system"], "Judge.");
    assert!(sent[2].get("tool_choice").is_none());
    let told = "Judge.\n\nYou must answer by calling the tool `verdict`.";
    assert_eq!(sent[2]["system"], told);
    let sent = bodies(Provider::OpenAi, &request, openai_error(400, "x", refusal)).await;
    assert_eq!(
        sent[0]["tool_choice"],
        json!({"type": "function", "function": {"name": "verdict"}})
    );
    assert_eq!(sent[1]["messages"][0]["content"], told);
}

#[tokio::test]
async fn a_refusal_that_stays_is_given_up() {
    let refusal = || {
        openai_error(
            400,
            "x",
            "max_tokens: 9 > 8 and 'max_tokens', 'temperature' are wrong",
        )
    };
    let fixture = FixtureModel::start((0..20).map(|_| refusal()));
    let request = ModelRequest {
        temperature: Some(1.0),
        max_tokens: Some(9),
        ..hello()
    };
    let error = Provider::OpenAi
        .model(&fixture)
        .ask(&request)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("are wrong"));
    assert!(fixture.questions().len() <= 5);
}

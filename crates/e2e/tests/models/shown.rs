//! Pictures and sounds: sent where the provider takes them, and said to be missing where it does not.

use proctor_e2e::model::FixtureModel;
use proctor_record::model::{
    Arguments, Media, ModelMessage, ModelRequest, ToolCall, ToolResult, Turn,
};
use serde_json::{Value, json};

use super::requests::sent;
use super::{ALL, Provider, hello};

fn media(mime_type: &str) -> Media {
    Media {
        mime_type: mime_type.to_owned(),
        data: "AAAA".to_owned(),
    }
}

/// A user shows a picture, and a tool gives a picture and a sound.
pub fn request() -> ModelRequest {
    let mut request = hello();
    request.messages.extend([
        ModelMessage::Media(media("image/png")),
        ModelMessage::Assistant(Turn {
            calls: vec![ToolCall {
                id: "c".to_owned(),
                name: "look".to_owned(),
                arguments: Arguments::Object(serde_json::Map::new()),
            }],
            ..Turn::default()
        }),
        ModelMessage::Results(vec![ToolResult {
            id: "c".to_owned(),
            name: "look".to_owned(),
            text: "here".to_owned(),
            is_error: false,
            media: vec![media("image/jpeg"), media("audio/wav")],
        }]),
    ]);
    request
}

#[tokio::test]
async fn a_picture_is_sent_in_every_providers_words() {
    let of = async |provider| sent(provider, &request()).await;
    let chat = of(Provider::OpenAi).await;
    assert_eq!(
        chat["messages"][1]["content"],
        json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
    );
    let text = chat["messages"][3]["content"].as_str().unwrap();
    let missing = "here\n[image/jpeg is not shown: it is not taken here]\n[audio/wav is not shown: it is not taken here]";
    assert_eq!(text, missing);
    let responses = of(Provider::Responses).await;
    assert_eq!(
        responses["input"][1]["content"][0]["image_url"],
        "data:image/png;base64,AAAA"
    );
    let output = &responses["input"][3]["output"];
    let without_sound = "here\n[audio/wav is not shown: it is not taken here]";
    assert_eq!(output[0]["text"], without_sound);
    assert_eq!(output[1]["image_url"], "data:image/jpeg;base64,AAAA");
    let anthropic = of(Provider::Anthropic).await;
    let source = |kind: &str| json!({"type": "base64", "media_type": kind, "data": "AAAA"});
    assert_eq!(
        anthropic["messages"][1]["content"][0]["source"],
        source("image/png")
    );
    let content = &anthropic["messages"][3]["content"][0]["content"];
    assert_eq!(content[0]["text"], without_sound);
    assert_eq!(content[1]["source"], source("image/jpeg"));
    let gemini = of(Provider::Gemini).await;
    let inline = |kind: &str| json!({"inlineData": {"mimeType": kind, "data": "AAAA"}});
    assert_eq!(gemini["contents"][1]["parts"], json!([inline("image/png")]));
    let parts: &[Value] = gemini["contents"][3]["parts"].as_array().unwrap();
    assert_eq!(parts[1..], [inline("image/jpeg"), inline("audio/wav")]);
}

#[tokio::test]
async fn a_sound_is_sent_where_it_is_taken_and_an_error_where_not() {
    for provider in ALL {
        let mut request = hello();
        request
            .messages
            .push(ModelMessage::Media(media("audio/wav")));
        let fixture = FixtureModel::start([provider.says("hi")]);
        let asked = provider.model(&fixture).ask(&request).await;
        match provider {
            Provider::OpenAi | Provider::Gemini => assert!(asked.is_ok(), "{provider:?}"),
            Provider::Responses | Provider::Anthropic => {
                let error = asked.unwrap_err().to_string();
                assert!(error.contains("`audio/wav` can't be sent"), "{error}");
                assert!(fixture.questions().is_empty());
            }
        }
    }
}

#[tokio::test]
async fn a_model_that_sees_nothing_is_told_what_there_was() {
    let refusal = "This model does not support image input.";
    for provider in [Provider::Responses, Provider::Anthropic, Provider::Gemini] {
        let fixture = FixtureModel::start([
            proctor_e2e::model::says::openai_error(400, "x", refusal),
            provider.says("a"),
            provider.says("b"),
        ]);
        let model = provider.model(&fixture);
        let mut request = request();
        request.messages.remove(1);
        for text in ["a", "b"] {
            assert_eq!(model.ask(&request).await.unwrap().turn.text, text);
        }
        let sent: Vec<String> = fixture
            .questions()
            .iter()
            .map(|q| q.body.to_string())
            .collect();
        let shows: Vec<bool> = sent.iter().map(|body| body.contains("AAAA")).collect();
        assert_eq!(shows, [true, false, false], "{provider:?}");
        assert!(sent[1].contains("[image/jpeg is not shown: it is not taken here]"));
    }
}

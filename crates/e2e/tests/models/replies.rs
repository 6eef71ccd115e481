//! What is understood of what providers say.

use proctor_e2e::model::FixtureModel;
use proctor_e2e::model::says::{
    anthropic_blocks, gemini_parts, openai_calls, openai_message, responses_items,
};
use proctor_record::model::{Arguments, ModelMessage, StopReason, ToolResult, Usage};
use serde_json::json;

use super::{ALL, KEY, Provider, ask, hello};

#[tokio::test]
async fn a_text_comes_with_its_usage_and_its_bytes() {
    for provider in ALL {
        let reply = ask(provider, provider.says("hi")).await.unwrap();
        assert_eq!(reply.turn.text, "hi");
        assert_eq!(reply.stop, StopReason::Done);
        let is_anthropic = provider == Provider::Anthropic;
        let expected = Usage {
            input: Some(10),
            output: Some(5),
            cached: Some(4),
            cache_written: is_anthropic.then_some(3),
            reasoning: (!is_anthropic).then_some(3),
        };
        assert_eq!(reply.usage, expected, "{provider:?}");
        let raw = String::from_utf8(reply.raw.unwrap()).unwrap();
        assert!(raw.starts_with('{') && raw.contains("\"hi\""), "{raw}");
    }
}

#[tokio::test]
async fn why_a_model_stopped_is_kept() {
    let other = |word: &str| StopReason::Other(word.to_owned());
    let message = json!({"role": "assistant", "content": "x"});
    for (word, stop) in [
        ("stop", StopReason::Done),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refusal),
        ("eos", other("eos")),
    ] {
        let reply = ask(Provider::OpenAi, openai_message(&message, word))
            .await
            .unwrap();
        assert_eq!(reply.stop, stop);
    }
    let content = json!([{"type": "text", "text": "x"}]);
    for (word, stop) in [
        ("end_turn", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refusal),
        ("pause_turn", other("pause_turn")),
    ] {
        let reply = ask(Provider::Anthropic, anthropic_blocks(&content, word))
            .await
            .unwrap();
        assert_eq!(reply.stop, stop);
    }
    let parts = json!([{"text": "x"}]);
    for (word, stop) in [
        ("STOP", StopReason::Done),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("NO_IMAGE", other("NO_IMAGE")),
    ] {
        let reply = ask(Provider::Gemini, gemini_parts(&parts, word)).await;
        assert_eq!(reply.unwrap().stop, stop);
    }
    let items = json!([{"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "x", "annotations": []},
    ]}]);
    for (word, stop) in [
        ("completed", StopReason::Done),
        ("incomplete", StopReason::Length),
        ("cancelled", other("cancelled")),
    ] {
        let reply = ask(Provider::Responses, responses_items(&items, word)).await;
        assert_eq!(reply.unwrap().stop, stop);
    }
}

#[tokio::test]
async fn parallel_calls_have_ids_of_their_own_and_exact_arguments() {
    let calls = [
        ("a", "add", r#"{"n": 12345678901234567890123}"#),
        ("a", "add", "{}"),
        ("", "add", ""),
        ("", "add", "{}"),
    ];
    let openai = ask(Provider::OpenAi, openai_calls(&calls)).await.unwrap();
    let blocks = json!([
        {"type": "tool_use", "id": "a", "name": "add", "input": {"n": 1}},
        {"type": "tool_use", "id": "a", "name": "add", "input": {}},
        {"type": "tool_use", "id": "", "name": "add", "input": {}},
        {"type": "tool_use", "name": "add", "input": {}},
    ]);
    let anthropic = ask(Provider::Anthropic, anthropic_blocks(&blocks, "tool_use"))
        .await
        .unwrap();
    let items = calls.map(|(id, name, arguments)| {
        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
    });
    let responses = ask(
        Provider::Responses,
        responses_items(&json!(items), "completed"),
    )
    .await
    .unwrap();
    let parts = json!([
        {"functionCall": {"id": "a", "name": "add", "args": {"n": 1}}},
        {"functionCall": {"id": "a", "name": "add"}},
        {"functionCall": {"name": "add", "args": {}}},
        {"functionCall": {"name": "add", "args": null}},
    ]);
    let gemini = ask(Provider::Gemini, gemini_parts(&parts, "STOP"))
        .await
        .unwrap();
    for reply in [&openai, &responses, &anthropic, &gemini] {
        let ids: Vec<&str> = reply
            .turn
            .calls
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        assert_eq!(ids, ["a", "a_1", "call_1", "call_2"]);
        assert_eq!(reply.stop, StopReason::Calls);
    }
    let Arguments::Object(arguments) = &openai.turn.calls[0].arguments else {
        panic!("{openai:?}");
    };
    assert_eq!(arguments["n"].to_string(), "12345678901234567890123");
}

#[tokio::test]
async fn an_id_that_an_earlier_turn_used_is_not_used_again() {
    let fixture = FixtureModel::start([
        openai_calls(&[("call_0", "add", "{}")]),
        openai_calls(&[("call_0", "add", "{}")]),
    ]);
    let model = Provider::OpenAi.model(&fixture);
    let mut request = hello();
    let first = model.ask(&request).await.unwrap().turn;
    request.messages.push(ModelMessage::Assistant(first));
    let second = model.ask(&request).await.unwrap().turn;
    assert_eq!(second.calls[0].id, "call_0_1");
}

#[tokio::test]
async fn calls_count_even_where_the_server_says_that_it_is_done() {
    let message = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}},
    ]});
    let reply = ask(Provider::OpenAi, openai_message(&message, "stop"))
        .await
        .unwrap();
    assert_eq!(reply.stop, StopReason::Calls);
    assert!(matches!(&reply.turn.calls[0].arguments, Arguments::Object(a) if a.len() == 1));
}

#[tokio::test]
async fn thinking_is_kept_apart_and_handed_back_as_it_was() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    let hidden = json!({"type": "redacted_thinking", "data": "eA=="});
    let text = json!({"type": "text", "text": "so"});
    let call = json!({"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}});
    let usual = json!([thought, hidden, text, call]);
    let mixed = json!([thought, text, hidden, call]);
    for content in [usual, mixed] {
        let fixture = FixtureModel::start([
            anthropic_blocks(&content, "tool_use"),
            Provider::Anthropic.says("done"),
        ]);
        let model = Provider::Anthropic.model(&fixture);
        let mut request = hello();
        let turn = model.ask(&request).await.unwrap().turn;
        assert_eq!((turn.text.as_str(), turn.calls.len()), ("so", 1));
        let thoughts: Vec<&str> = turn.thinking.iter().map(|t| t.text.as_str()).collect();
        assert_eq!(thoughts, ["hm", ""]);
        let id = turn.calls[0].id.clone();
        request.messages.push(ModelMessage::Assistant(turn));
        request
            .messages
            .push(ModelMessage::Results(vec![ToolResult {
                id,
                name: "add".to_owned(),
                text: String::new(),
                is_error: true,
                media: Vec::new(),
            }]));
        model.ask(&request).await.unwrap();
        let sent = &fixture.questions()[1].body["messages"];
        assert_eq!(sent[1]["content"].to_string(), content.to_string());
        assert_eq!(sent[2]["content"][0]["is_error"], true);
        // The API refuses an error without a text.
        assert_eq!(sent[2]["content"][0]["content"], "(nothing)");
    }
}

#[tokio::test]
async fn reasoning_items_go_back_where_they_stood() {
    let reasoning = |id: &str| {
        json!({"type": "reasoning", "id": id, "summary": [
            {"type": "summary_text", "text": "hm"},
        ], "encrypted_content": "c2VjcmV0"})
    };
    let mut unknown = reasoning("rs_9");
    unknown["encrypted_content"] = serde_json::Value::Null;
    let call = |id: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": "add", "arguments": "{}"});
    let sent_call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "add", "arguments": "{}"});
    let usual = json!([reasoning("rs_1"), call("c1"), call("c2")]);
    let mixed = json!([
        reasoning("rs_1"),
        call("c1"),
        unknown,
        reasoning("rs_2"),
        call("c2")
    ]);
    for (output, expected) in [
        (
            usual,
            json!([reasoning("rs_1"), sent_call("c1"), sent_call("c2")]),
        ),
        (
            mixed,
            json!([
                reasoning("rs_1"),
                sent_call("c1"),
                reasoning("rs_2"),
                sent_call("c2")
            ]),
        ),
    ] {
        let fixture = FixtureModel::start([
            responses_items(&output, "completed"),
            Provider::Responses.says("done"),
        ]);
        let model = Provider::Responses.model(&fixture);
        let mut request = hello();
        let turn = model.ask(&request).await.unwrap().turn;
        assert_eq!(turn.thinking[0].text, "hm");
        request.messages.push(ModelMessage::Assistant(turn));
        model.ask(&request).await.unwrap();
        let sent = &fixture.questions()[1].body;
        let after: Vec<_> = sent["input"].as_array().unwrap()[1..].to_vec();
        assert_eq!(json!(after).to_string(), expected.to_string());
        assert_eq!(sent["store"], false);
        assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
    }
}

#[tokio::test]
async fn signatures_and_ids_of_gemini_go_back_where_they_stood() {
    let parts = json!([
        {"text": "hm", "thought": true},
        {"functionCall": {"id": "f1", "name": "add", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "f2", "name": "add", "args": {"a": 2}}},
    ]);
    let fixture = FixtureModel::start([gemini_parts(&parts, "STOP"), Provider::Gemini.says("x")]);
    let model = Provider::Gemini.model(&fixture);
    let mut request = hello();
    let turn = model.ask(&request).await.unwrap().turn;
    assert_eq!(
        (turn.thinking[0].text.as_str(), turn.text.as_str()),
        ("hm", "")
    );
    let result = |at: usize| ToolResult {
        id: turn.calls[at].id.clone(),
        name: "add".to_owned(),
        text: format!("r{at}"),
        is_error: at == 1,
        media: Vec::new(),
    };
    let results = vec![result(0), result(1)];
    request.messages.push(ModelMessage::Assistant(turn));
    request.messages.push(ModelMessage::Results(results));
    model.ask(&request).await.unwrap();
    let sent = &fixture.questions()[1].body["contents"];
    assert_eq!(sent[1]["role"], "model");
    assert_eq!(sent[1]["parts"].to_string(), parts.to_string());
    let expected = json!([
        {"functionResponse": {"name": "add", "response": {"output": "r0"}, "id": "f1"}},
        {"functionResponse": {"name": "add", "response": {"error": "r1"}, "id": "f2"}},
    ]);
    assert_eq!(sent[2]["parts"].to_string(), expected.to_string());
}

#[tokio::test]
async fn reasoning_of_compatible_servers_goes_back_too() {
    let message = json!({"role": "assistant", "content": "so", "reasoning_content": "hm"});
    let fixture =
        FixtureModel::start([openai_message(&message, "stop"), Provider::OpenAi.says("")]);
    let model = Provider::OpenAi.model(&fixture);
    let mut request = hello();
    let turn = model.ask(&request).await.unwrap().turn;
    assert_eq!(
        (turn.text.as_str(), turn.thinking[0].text.as_str()),
        ("so", "hm")
    );
    request.messages.push(ModelMessage::Assistant(turn));
    model.ask(&request).await.unwrap();
    let sent = &fixture.questions()[1].body["messages"][1];
    assert_eq!(sent["reasoning_content"], "hm");
}

#[tokio::test]
async fn the_key_is_sent_and_in_nothing_that_comes_back() {
    for provider in ALL {
        let echo = format!("you sent {KEY} to me");
        let fixture = FixtureModel::start([
            provider.says(&echo),
            proctor_e2e::model::says::openai_error(401, "x", &echo),
            proctor_e2e::model::FixtureReply::text(200, &echo),
            proctor_e2e::model::FixtureReply::text(500, &echo),
        ]);
        let model = provider.model(&fixture);
        let reply = model.ask(&hello()).await.unwrap();
        let raw = String::from_utf8(reply.raw.unwrap()).unwrap();
        assert!(raw.contains("[redacted:") && !raw.contains(KEY), "{raw}");
        for _ in 0..3 {
            let error = model.ask(&hello()).await.unwrap_err();
            assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
        }
        assert!(!format!("{model:?}").contains(KEY));
        let head = &fixture.questions()[0].head;
        let expected = match provider {
            Provider::OpenAi | Provider::Responses => format!("authorization: Bearer {KEY}"),
            Provider::Anthropic => format!("x-api-key: {KEY}"),
            Provider::Gemini => format!("x-goog-api-key: {KEY}"),
        };
        assert!(head.contains(&expected), "{head}");
    }
}

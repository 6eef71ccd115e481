//! What is sent, by the rules that providers publish: every tool of every list of real servers.

use std::path::Path;

use proctor_e2e::model::FixtureModel;
use proctor_e2e::model::says::anthropic_blocks;
use proctor_record::json::equal;
use proctor_record::model::{
    Arguments, ModelMessage, ModelRequest, Tool, ToolCall, ToolResult, Turn,
};
use serde_json::{Map, Value, json};

use super::{ALL, Provider, hello};

/// The tools of real servers, by the name of the list.
pub fn tool_lists() -> Vec<(String, Vec<Tool>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tool-lists");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let list = |file: &std::path::PathBuf| {
        let list: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let tool = |tool: &Value| Tool {
            name: tool["name"].as_str().unwrap().to_owned(),
            description: tool["description"].as_str().map(str::to_owned),
            schema: tool["inputSchema"].clone(),
        };
        let tools = list["tools"].as_array().unwrap().iter().map(tool).collect();
        (
            file.file_stem().unwrap().to_str().unwrap().to_owned(),
            tools,
        )
    };
    let lists: Vec<(String, Vec<Tool>)> = files.iter().map(list).collect();
    assert!(lists.len() >= 8 && lists.iter().map(|(_, tools)| tools.len()).sum::<usize>() >= 170);
    lists
}

/// What is sent for a request.
pub async fn sent(provider: Provider, request: &ModelRequest) -> Value {
    let fixture = FixtureModel::start([provider.says("ok")]);
    provider.model(&fixture).ask(request).await.unwrap();
    fixture.questions().remove(0).body
}

/// A conversation in which everything happens.
pub fn eventful() -> ModelRequest {
    let call = |id: &str, name: &str, arguments| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    };
    let result = |id: &str, is_error| ToolResult {
        id: id.to_owned(),
        name: "add".to_owned(),
        text: "it broke".to_owned(),
        is_error,
        media: Vec::new(),
    };
    let object = Map::from_iter([("a".to_owned(), json!(1))]);
    let malformed = Arguments::Malformed {
        text: "{\"a\":".to_owned(),
        reason: "cut".to_owned(),
    };
    ModelRequest {
        system: Some("Be brief.".to_owned()),
        messages: vec![
            ModelMessage::User("add".to_owned()),
            ModelMessage::Assistant(Turn {
                text: "I try.".to_owned(),
                thinking: Vec::new(),
                calls: vec![
                    call("c1", "add", Arguments::Object(object.clone())),
                    call("c2", "no such/tool!", malformed),
                ],
            }),
            ModelMessage::Results(vec![result("c1", false), result("c2", true)]),
            ModelMessage::Assistant(Turn {
                calls: vec![call("c3", "", Arguments::Object(object))],
                ..Turn::default()
            }),
            ModelMessage::Results(vec![result("c3", true)]),
            ModelMessage::Assistant(Turn::default()),
            ModelMessage::User("and?".to_owned()),
        ],
        tools: vec![Tool {
            name: "add".to_owned(),
            description: None,
            schema: json!({"oneOf": [{"properties": {"a": {"type": "integer"}}}]}),
        }]
        .into(),
        must_call: Some("add".to_owned()),
        max_tokens: Some(100),
        temperature: Some(0.5),
    }
}

fn is_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_legal)
}

/// The rules for schemas, of both providers at once.
fn check_schema(schema: &Value, place: &str) {
    assert_eq!(schema["type"], "object", "{place}");
    assert!(schema["properties"].is_object(), "{place}");
    for key in ["anyOf", "oneOf", "allOf", "enum", "not"] {
        assert!(schema.get(key).is_none(), "{place}: {key}");
    }
    let is_key = |key: &String| {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        (1..=64).contains(&key.len()) && key.chars().all(is_legal)
    };
    let properties = schema["properties"].as_object().unwrap();
    assert!(properties.keys().all(is_key), "{place}");
    assert!(jsonschema::draft202012::meta::is_valid(schema), "{place}");
}

/// The keywords that Gemini documents, everywhere in a schema.
fn check_subset(schema: &Value, place: &str) {
    const TAKEN: &str = " $id $defs $ref $anchor type format title description enum items prefixItems \
        minItems maxItems minimum maximum anyOf oneOf properties additionalProperties required ";
    for (key, value) in schema.as_object().unwrap() {
        assert!(TAKEN.contains(&format!(" {key} ")), "{place}: {key}");
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                for schema in named.values() {
                    check_subset(schema, place);
                }
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(several)) => {
                for schema in several {
                    check_subset(schema, place);
                }
            }
            ("items" | "additionalProperties", schema @ Value::Object(_)) => {
                check_subset(schema, place);
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn every_tool_of_real_servers_is_sent_as_providers_take_it() {
    for provider in ALL {
        for (list, tools) in tool_lists() {
            let request = ModelRequest {
                tools: tools.clone().into(),
                ..hello()
            };
            let body = sent(provider, &request).await;
            let written = match provider {
                Provider::Gemini => &body["tools"][0]["functionDeclarations"],
                _ => &body["tools"],
            };
            let written = written.as_array().unwrap();
            assert_eq!(written.len(), tools.len());
            for (tool, written) in tools.iter().zip(written) {
                let place = format!("{provider:?} {list} {}", tool.name);
                let (named, schema) = match provider {
                    Provider::OpenAi => (&written["function"], &written["function"]["parameters"]),
                    Provider::Responses => (written, &written["parameters"]),
                    Provider::Anthropic => (written, &written["input_schema"]),
                    Provider::Gemini => (written, &written["parametersJsonSchema"]),
                };
                assert!(is_name(named["name"].as_str().unwrap()), "{place}");
                check_schema(schema, &place);
                if provider == Provider::Gemini {
                    check_subset(schema, &place);
                    continue;
                }
                assert_eq!(
                    named["description"].as_str(),
                    tool.description.as_deref(),
                    "{place}"
                );
                // These need no change but one.
                let mut given = tool.schema.clone();
                given.as_object_mut().unwrap().remove("$schema");
                assert!(equal(schema, &given), "{place}");
            }
        }
    }
}

#[tokio::test]
async fn a_conversation_is_said_in_openais_words() {
    let body = sent(Provider::OpenAi, &eventful()).await;
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": "I try.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "no_such_tool_", "arguments": "{\"malformed\":\"{\\\"a\\\":\"}"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "it broke"},
        {"role": "tool", "tool_call_id": "c2", "content": "error: it broke"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c3", "type": "function", "function": {"name": "unknown", "arguments": "{\"a\":1}"}},
        ]},
        {"role": "tool", "tool_call_id": "c3", "content": "error: it broke"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "and?"},
    ]);
    assert!(equal(&body["messages"], &expected), "{}", body["messages"]);
    assert_eq!(body["model"], "gpt-5");
    assert_eq!(body["max_tokens"], json!(100));
    assert_eq!(body["temperature"], json!(0.5));
    let function = &body["tools"][0]["function"];
    check_schema(&function["parameters"], "add");
    assert!(function["description"].as_str().unwrap().contains("oneOf"));
}

#[tokio::test]
async fn a_conversation_is_said_in_anthropics_words() {
    let body = sent(Provider::Anthropic, &eventful()).await;
    let expected = json!([
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I try."},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "no_such_tool_", "input": {"malformed": "{\"a\":"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "it broke", "is_error": false},
            {"type": "tool_result", "tool_use_id": "c2", "content": "it broke", "is_error": true},
        ]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "unknown", "input": {"a": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c3", "content": "it broke", "is_error": true},
        ]},
        {"role": "user", "content": "and?"},
    ]);
    assert!(equal(&body["messages"], &expected), "{}", body["messages"]);
    assert_eq!(body["system"], "Be brief.");
    assert_eq!(body["max_tokens"], json!(100));
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "add"}));
}

#[tokio::test]
async fn a_conversation_is_said_in_the_words_of_responses() {
    let body = sent(Provider::Responses, &eventful()).await;
    let expected = json!([
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": "I try."},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}"},
        {"type": "function_call", "call_id": "c2", "name": "no_such_tool_", "arguments": "{\"malformed\":\"{\\\"a\\\":\"}"},
        {"type": "function_call_output", "call_id": "c1", "output": "it broke"},
        {"type": "function_call_output", "call_id": "c2", "output": "error: it broke"},
        {"type": "function_call", "call_id": "c3", "name": "unknown", "arguments": "{\"a\":1}"},
        {"type": "function_call_output", "call_id": "c3", "output": "error: it broke"},
        {"role": "user", "content": "and?"},
    ]);
    assert!(equal(&body["input"], &expected), "{}", body["input"]);
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["max_output_tokens"], json!(100));
    assert_eq!(
        body["tool_choice"],
        json!({"type": "function", "name": "add"})
    );
    assert_eq!(body["tools"][0]["strict"], false);
}

#[tokio::test]
async fn a_conversation_is_said_in_geminis_words() {
    let body = sent(Provider::Gemini, &eventful()).await;
    let expected = json!([
        {"role": "user", "parts": [{"text": "add"}]},
        {"role": "model", "parts": [
            {"text": "I try."},
            {"functionCall": {"name": "add", "args": {"a": 1}}},
            {"functionCall": {"name": "no_such_tool_", "args": {"malformed": "{\"a\":"}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "add", "response": {"output": "it broke"}}},
            {"functionResponse": {"name": "add", "response": {"error": "it broke"}}},
        ]},
        {"role": "model", "parts": [{"functionCall": {"name": "unknown", "args": {"a": 1}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "add", "response": {"error": "it broke"}}},
        ]},
        {"role": "user", "parts": [{"text": "and?"}]},
    ]);
    assert!(equal(&body["contents"], &expected), "{}", body["contents"]);
    assert_eq!(
        body["systemInstruction"],
        json!({"parts": [{"text": "Be brief."}]})
    );
    assert_eq!(body["generationConfig"]["maxOutputTokens"], json!(100));
    let config = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}});
    assert_eq!(body["toolConfig"], config);
}

#[tokio::test]
async fn nothing_is_sent_that_was_not_asked_for() {
    let openai = sent(Provider::OpenAi, &hello()).await;
    let keys = |body: &Value| {
        body.as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&openai), ["model", "messages"]);
    let anthropic = sent(Provider::Anthropic, &hello()).await;
    assert_eq!(keys(&anthropic), ["model", "max_tokens", "messages"]);
    let responses = sent(Provider::Responses, &hello()).await;
    assert_eq!(keys(&responses), ["model", "input", "store", "include"]);
    let gemini = sent(Provider::Gemini, &hello()).await;
    assert_eq!(keys(&gemini), ["contents"]);
}

#[tokio::test]
async fn an_argument_with_a_name_that_is_not_taken_comes_back_under_its_own() {
    let blocks =
        json!([{"type": "tool_use", "id": "a", "name": "add", "input": {"argument_1": 1}}]);
    let fixture = FixtureModel::start([anthropic_blocks(&blocks, "tool_use")]);
    let request = ModelRequest {
        tools: vec![Tool {
            name: "add".to_owned(),
            description: None,
            schema: json!({"type": "object", "properties": {"größe [cm]": {"type": "integer"}}}),
        }]
        .into(),
        ..hello()
    };
    let model = Provider::Anthropic.model(&fixture);
    let reply = model.ask(&request).await.unwrap();
    check_schema(
        &fixture.questions()[0].body["tools"][0]["input_schema"],
        "add",
    );
    let Arguments::Object(arguments) = &reply.turn.calls[0].arguments else {
        panic!("{reply:?}");
    };
    assert_eq!(arguments.keys().collect::<Vec<_>>(), ["größe [cm]"]);
}

//! OpenAI's Chat Completions format.

mod reply;
mod stream;

use proctor_record::model::{Media, ModelRequest, Thinking, Tool, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

pub(super) use self::reply::{render, reply};
pub(super) use self::stream::{StreamAssembler, events};
use super::conversation::{ConversationBuilder, looks_like_error, media_of_url, parts, text_of};
use super::{FormatError, ParsedModelRequest};
use crate::turns::{arguments_of, arguments_of_text};

/// The fields in which servers return the model's reasoning and expect it back.
pub(in super::super) const THINKING: [&str; 3] =
    ["reasoning_details", "reasoning_content", "reasoning"];

pub(super) fn question(body: &Value) -> Result<ParsedModelRequest, FormatError> {
    let messages = body["messages"]
        .as_array()
        .ok_or_else(|| FormatError::odd("`messages` is not a list"))?;
    let mut building = ConversationBuilder::default();
    for message in messages {
        add_message(message, &mut building)?;
    }
    let function = |choice: &Value| choice["function"]["name"].as_str().map(str::to_owned);
    let limit = ["max_completion_tokens", "max_tokens"];
    Ok(ParsedModelRequest {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        request: ModelRequest {
            system: building.system_text(),
            messages: building.messages,
            tools: body["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(tool)
                .collect(),
            must_call: function(&body["tool_choice"]),
            max_tokens: limit.iter().find_map(|key| body[*key].as_u64()),
            temperature: body["temperature"].as_f64(),
        },
        stream: body["stream"] == true,
        wants_usage: body["stream_options"]["include_usage"] == true,
        wants_json: wants_json(&body["response_format"]),
        namespaces: Vec::new(),
    })
}

fn wants_json(format: &Value) -> Option<Value> {
    match format["type"].as_str()? {
        "json_schema" => Some(format["json_schema"]["schema"].clone()),
        "json_object" => Some(json!({})),
        _ => None,
    }
}

fn tool(tool: &Value) -> Option<Tool> {
    let function = &tool["function"];
    Some(Tool {
        name: function["name"].as_str()?.to_owned(),
        description: function["description"].as_str().map(str::to_owned),
        schema: function["parameters"].clone(),
    })
}

fn add_message(message: &Value, building: &mut ConversationBuilder) -> Result<(), FormatError> {
    match message["role"].as_str().unwrap_or_default() {
        "system" | "developer" => building.system(&text_of(&message["content"])),
        "user" => {
            for part in parts(&message["content"]) {
                if let Some(text) = part["text"].as_str() {
                    building.user(text);
                } else if let Some(media) = media(&part) {
                    building.media(media);
                }
            }
        }
        "assistant" => {
            let turn = building.turn();
            turn.text.push_str(&text_of(&message["content"]));
            if turn.text.is_empty() {
                turn.text
                    .push_str(message["refusal"].as_str().unwrap_or_default());
            }
            turn.thinking.extend(thinking(message));
            turn.calls.extend(calls(message));
        }
        "tool" => {
            let text = text_of(&message["content"]);
            building.result(ToolResult {
                id: message["tool_call_id"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                name: String::new(),
                is_error: looks_like_error(&text),
                text,
                media: parts(&message["content"])
                    .iter()
                    .filter_map(media)
                    .collect(),
            });
        }
        other => {
            return Err(FormatError::odd(format!("unsupported role `{other}`")));
        }
    }
    Ok(())
}

fn media(part: &Value) -> Option<Media> {
    match part["type"].as_str()? {
        "image_url" => media_of_url(part["image_url"]["url"].as_str()?),
        "input_audio" => Some(Media {
            mime_type: format!("audio/{}", part["input_audio"]["format"].as_str()?),
            data: part["input_audio"]["data"].as_str()?.to_owned(),
        }),
        _ => None,
    }
}

fn calls(message: &Value) -> Vec<ToolCall> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let call = |call: &Value| ToolCall {
        id: call["id"].as_str().unwrap_or_default().to_owned(),
        name: call["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        arguments: match &call["function"]["arguments"] {
            Value::String(text) => arguments_of_text(text),
            // Some servers send the object itself.
            other => arguments_of(other.clone(), &other.to_string()),
        },
    };
    calls.map(call).collect()
}

fn thinking(message: &Value) -> Option<Thinking> {
    let said: Map<String, Value> = THINKING
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), message.get(key)?.clone())))
        .filter(|(_, value)| !value.is_null() && value.as_str() != Some(""))
        .collect();
    let text = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| said.get(*key)?.as_str());
    let text = text.unwrap_or_default().to_owned();
    (!said.is_empty()).then_some(Thinking {
        text,
        raw: Some(Value::Object(said)),
    })
}

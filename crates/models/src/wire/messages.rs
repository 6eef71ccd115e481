//! Anthropic's Messages format.

mod reply;
mod stream;

use proctor_record::model::{Media, ModelRequest, Thinking, Tool, ToolCall, ToolResult};
use serde_json::Value;

pub(super) use self::reply::{render, reply};
pub(super) use self::stream::{StreamAssembler, events};
use super::conversation::{ConversationBuilder, parts, text_of};
use super::{FormatError, ParsedModelRequest};
use crate::turns::{arguments_of, arguments_of_text};

pub(super) fn question(body: &Value) -> Result<ParsedModelRequest, FormatError> {
    let messages = body["messages"]
        .as_array()
        .ok_or_else(|| FormatError::odd("`messages` is not a list"))?;
    let mut building = ConversationBuilder::default();
    building.system(&text_of(&body["system"]));
    for message in messages {
        let is_user = match message["role"].as_str().unwrap_or_default() {
            "user" => true,
            "assistant" => false,
            "system" => {
                building.system(&text_of(&message["content"]));
                continue;
            }
            other => {
                return Err(FormatError::odd(format!("unsupported role `{other}`")));
            }
        };
        for block in parts(&message["content"]) {
            add_block(&block, is_user, &mut building);
        }
    }
    let choice = &body["tool_choice"];
    let schema = ["/output_config/format/schema", "/output_format/schema"];
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
            must_call: choice["name"].as_str().map(str::to_owned),
            max_tokens: body["max_tokens"].as_u64(),
            temperature: body["temperature"].as_f64(),
        },
        stream: body["stream"] == true,
        wants_usage: true,
        wants_json: schema.iter().find_map(|at| body.pointer(at)).cloned(),
        namespaces: Vec::new(),
    })
}

/// `None` for the provider's built-in tools, which have no schema and which a script can't call.
fn tool(tool: &Value) -> Option<Tool> {
    Some(Tool {
        name: tool["name"].as_str()?.to_owned(),
        description: tool["description"].as_str().map(str::to_owned),
        schema: tool.get("input_schema")?.clone(),
    })
}

fn add_block(block: &Value, is_user: bool, building: &mut ConversationBuilder) {
    let text = || block["text"].as_str().unwrap_or_default();
    match block["type"].as_str().unwrap_or_default() {
        "text" if is_user => building.user(text()),
        "text" => building.turn().text.push_str(text()),
        "thinking" | "redacted_thinking" => building.turn().thinking.push(thought(block)),
        "tool_use" => {
            let call = call(block);
            building.turn().calls.push(call);
        }
        "tool_result" => {
            let content = &block["content"];
            building.result(ToolResult {
                id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                name: String::new(),
                text: text_of(content),
                is_error: block["is_error"] == true,
                media: parts(content).iter().filter_map(media).collect(),
            });
        }
        _ => {
            if let Some(media) = media(block) {
                building.media(media);
            }
        }
    }
}

fn media(block: &Value) -> Option<Media> {
    let source = block
        .get("source")
        .filter(|source| source["type"] == "base64")?;
    Some(Media {
        mime_type: source["media_type"].as_str()?.to_owned(),
        data: source["data"].as_str()?.to_owned(),
    })
}

fn thought(block: &Value) -> Thinking {
    Thinking {
        text: block["thinking"].as_str().unwrap_or_default().to_owned(),
        raw: Some(block.clone()),
    }
}

fn call(block: &Value) -> ToolCall {
    let input = &block["input"];
    ToolCall {
        id: block["id"].as_str().unwrap_or_default().to_owned(),
        name: block["name"].as_str().unwrap_or_default().to_owned(),
        arguments: match input {
            // Arguments that were not JSON.
            Value::String(text) => arguments_of_text(text),
            input => arguments_of(input.clone(), &input.to_string()),
        },
    }
}

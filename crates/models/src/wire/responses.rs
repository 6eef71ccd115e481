//! OpenAI's Responses format.
//!
//! A tool can be in a namespace. Its name is then `namespace__tool`, and the request keeps both
//! names.

mod reply;
mod stream;

use proctor_record::model::{Arguments, Media, ModelRequest, Thinking, Tool, ToolCall, ToolResult};
use serde_json::Value;

pub(super) use self::reply::{render, reply};
pub(super) use self::stream::{StreamAssembler, events};
use super::conversation::{ConversationBuilder, looks_like_error, media_of_url, parts, text_of};
use super::{FormatError, NamespacedTool, ParsedModelRequest};
use crate::turns::arguments_of_text;

pub(super) fn question(body: &Value) -> Result<ParsedModelRequest, FormatError> {
    if body["previous_response_id"].is_string() {
        let why = "`previous_response_id` refers to a conversation that this server does not store; send the whole conversation";
        return Err(FormatError::odd(why));
    }
    let mut building = ConversationBuilder::default();
    building.system(body["instructions"].as_str().unwrap_or_default());
    let (mut tools, mut namespaces) = (Vec::new(), Vec::new());
    let mut add_tools = |of: &Value| {
        for tool in of["tools"].as_array().into_iter().flatten() {
            add_tool(tool, &mut tools, &mut namespaces);
        }
    };
    add_tools(body);
    match &body["input"] {
        Value::String(text) => building.user(text),
        Value::Array(items) => {
            for item in items {
                add_item(item, &mut building)?;
                // Codex sends them here for models that it knows.
                if item["type"] == "additional_tools" {
                    add_tools(item);
                }
            }
        }
        _ => return Err(FormatError::odd("`input` is neither a text nor a list")),
    }
    let format = &body["text"]["format"];
    Ok(ParsedModelRequest {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        request: ModelRequest {
            system: building.system_text(),
            messages: building.messages,
            tools: tools.into(),
            must_call: body["tool_choice"]["name"].as_str().map(str::to_owned),
            max_tokens: body["max_output_tokens"].as_u64(),
            temperature: body["temperature"].as_f64(),
        },
        stream: body["stream"] == true,
        wants_usage: true,
        wants_json: (format["type"] == "json_schema").then(|| format["schema"].clone()),
        namespaces,
    })
}

fn add_tool(tool: &Value, tools: &mut Vec<Tool>, namespaces: &mut Vec<NamespacedTool>) {
    let name = tool["name"].as_str();
    match (tool["type"].as_str().unwrap_or_default(), name) {
        ("function" | "custom", Some(name)) => tools.push(function(tool, name)),
        ("namespace", Some(namespace)) => {
            for inner in tool["tools"].as_array().into_iter().flatten() {
                let Some(name) = inner["name"].as_str() else {
                    continue;
                };
                let joined = join(namespace, name);
                tools.push(function(inner, &joined));
                namespaces.push(NamespacedTool {
                    joined,
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                });
            }
        }
        // Built-in tools of the provider.
        _ => {}
    }
}

fn function(tool: &Value, name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: tool["description"].as_str().map(str::to_owned),
        schema: tool["parameters"].clone(),
    }
}

fn join(namespace: &str, name: &str) -> String {
    format!("{}__{name}", namespace.trim_end_matches('_'))
}

fn add_item(item: &Value, building: &mut ConversationBuilder) -> Result<(), FormatError> {
    match item["type"].as_str().unwrap_or("message") {
        "message" => return add_message(item, building),
        "function_call" | "custom_tool_call" => {
            let call = call(item);
            building.turn().calls.push(call);
        }
        "reasoning" => {
            let thought = thought(item);
            building.turn().thinking.push(thought);
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = &item["output"];
            let text = text_of(output);
            building.result(ToolResult {
                id: item["call_id"].as_str().unwrap_or_default().to_owned(),
                name: String::new(),
                is_error: looks_like_error(&text),
                text,
                media: parts(output).iter().filter_map(media).collect(),
            });
        }
        "item_reference" => {
            let why = "an `item_reference` refers to an item that this server does not store; send the item";
            return Err(FormatError::odd(why));
        }
        // Calls of built-in tools of the provider.
        _ => {}
    }
    Ok(())
}

fn add_message(item: &Value, building: &mut ConversationBuilder) -> Result<(), FormatError> {
    let content = &item["content"];
    match item["role"].as_str().unwrap_or_default() {
        "system" | "developer" => building.system(&text_of(content)),
        "user" => {
            for part in parts(content) {
                if let Some(text) = part["text"].as_str() {
                    building.user(text);
                } else if let Some(media) = media(&part) {
                    building.media(media);
                }
            }
        }
        "assistant" => {
            let said = said(content);
            building.turn().text.push_str(&said);
        }
        other => {
            return Err(FormatError::odd(format!("unsupported role `{other}`")));
        }
    }
    Ok(())
}

/// The text of a model's message, including refusals.
fn said(content: &Value) -> String {
    let part = |part: &Value| {
        let text = part["text"].as_str().or(part["refusal"].as_str());
        text.unwrap_or_default().to_owned()
    };
    parts(content).iter().map(part).collect()
}

fn media(part: &Value) -> Option<Media> {
    match part["type"].as_str()? {
        "input_image" => media_of_url(part["image_url"].as_str()?),
        "input_audio" => Some(Media {
            mime_type: format!("audio/{}", part["input_audio"]["format"].as_str()?),
            data: part["input_audio"]["data"].as_str()?.to_owned(),
        }),
        _ => None,
    }
}

fn call(item: &Value) -> ToolCall {
    let name = item["name"].as_str().unwrap_or_default();
    ToolCall {
        id: item["call_id"].as_str().unwrap_or_default().to_owned(),
        name: match item["namespace"].as_str() {
            Some(namespace) if !namespace.is_empty() => join(namespace, name),
            _ => name.to_owned(),
        },
        arguments: match item["input"].as_str() {
            // A tool that takes a text instead of an object.
            Some(_) => Arguments::Object(
                [("input".to_owned(), item["input"].clone())]
                    .into_iter()
                    .collect(),
            ),
            None => arguments_of_text(item["arguments"].as_str().unwrap_or_default()),
        },
    }
}

fn thought(item: &Value) -> Thinking {
    let summary = text_of(&item["summary"]);
    Thinking {
        text: if summary.is_empty() {
            text_of(&item["content"])
        } else {
            summary
        },
        raw: Some(item.clone()),
    }
}

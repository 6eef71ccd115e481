//! Converts the messages of an eval to a model conversation, and a conversation to text.

use std::collections::HashMap;

use mcp_evals::{Content, Role};
use proctor_record::model::{Arguments, Media, ModelMessage, ToolCall, ToolResult, Turn};
use serde_json::Value;

use crate::agent::Toolbox;

/// Converts messages. Tools get the names that the model knows.
pub(super) fn read(
    messages: &[mcp_evals::Message],
    server: &str,
    tools: &Toolbox,
) -> Result<Vec<ModelMessage>, String> {
    read_as(messages, |tool| {
        let known = tools.name_of(server, tool);
        known.unwrap_or(tool).to_owned()
    })
}

fn read_as(
    messages: &[mcp_evals::Message],
    name_for_model: impl Fn(&str) -> String,
) -> Result<Vec<ModelMessage>, String> {
    let mut read = Vec::new();
    // Only the call names the tool of a result.
    let mut names: HashMap<&str, String> = HashMap::new();
    for message in messages {
        let (mut text, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
        let mut shown = Vec::new();
        for block in message.content.blocks() {
            match block {
                Content::Text(block) => text.push(block.text.as_str()),
                Content::ToolUse(call) => {
                    let name = name_for_model(&call.name);
                    names.insert(&call.id, name.clone());
                    calls.push(ToolCall {
                        id: call.id.clone(),
                        name,
                        arguments: Arguments::Object(call.input.clone()),
                    });
                }
                Content::ToolResult(result) => results.push(ToolResult {
                    id: result.tool_use_id.clone(),
                    name: names
                        .get(result.tool_use_id.as_str())
                        .cloned()
                        .unwrap_or_default(),
                    text: blocks_text(&result.content),
                    is_error: result.is_error.unwrap_or(false),
                    media: result.content.iter().filter_map(media_of).collect(),
                }),
                Content::Image(media) | Content::Audio(media) if message.role == Role::User => {
                    shown.push(ModelMessage::Media(Media {
                        mime_type: media.mime_type.clone(),
                        data: media.data.clone(),
                    }));
                }
                other @ (Content::Image(_) | Content::Audio(_) | Content::Other(_)) => {
                    return Err(format!(
                        "a message of the eval contains {}, which can't be sent to a model",
                        kind(other)
                    ));
                }
            }
        }
        let text = text.join("\n");
        if !results.is_empty() {
            read.push(ModelMessage::Results(results));
        }
        match message.role {
            Role::Assistant => read.push(ModelMessage::Assistant(Turn {
                text,
                thinking: Vec::new(),
                calls,
            })),
            Role::User if !text.is_empty() => read.push(ModelMessage::User(text)),
            Role::User => {}
        }
        read.extend(shown);
    }
    Ok(read)
}

fn kind(content: &Content) -> String {
    match content.kind() {
        "image" => "an image".to_owned(),
        "audio" => "audio".to_owned(),
        other => format!("`{other}`"),
    }
}

fn blocks_text(blocks: &[Value]) -> String {
    let text = |block: &Value| match (block.get("text").and_then(Value::as_str), media_of(block)) {
        (Some(text), _) => text.to_owned(),
        (None, Some(media)) => format!("[{}]", media.mime_type),
        (None, None) => block.to_string(),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// An image or audio of a result.
fn media_of(block: &Value) -> Option<Media> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    let is_media = ["image", "audio"].contains(&block.get("type")?.as_str()?);
    is_media.then_some(())?;
    Some(Media {
        mime_type: text("mimeType")?,
        data: text("data")?,
    })
}

/// A conversation as text, for people and judges.
pub(super) fn text(messages: &[ModelMessage]) -> String {
    let parts: Vec<String> = messages.iter().map(message_text).collect();
    match messages {
        // A single message needs no speaker.
        [ModelMessage::User(text)] => text.clone(),
        _ => parts.join("\n"),
    }
}

fn message_text(message: &ModelMessage) -> String {
    match message {
        ModelMessage::User(text) => format!("user: {text}"),
        ModelMessage::Media(media) => format!("user: [{}]", media.mime_type),
        ModelMessage::Assistant(turn) => format!("assistant: {}", turn_text(turn)),
        ModelMessage::Results(results) => {
            let shown = results.iter().map(|result| {
                let failed = if result.is_error { " (failed)" } else { "" };
                format!("result of {}{failed}: {}", result.name, result.text)
            });
            shown.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A turn as text, with its calls and their arguments.
pub(in crate::trial) fn turn_text(turn: &Turn) -> String {
    let mut parts = Vec::new();
    if !turn.text.is_empty() {
        parts.push(turn.text.clone());
    }
    for call in &turn.calls {
        let arguments = match &call.arguments {
            Arguments::Object(arguments) => Value::Object(arguments.clone()).to_string(),
            Arguments::Malformed { text, .. } => format!("{text} (not JSON)"),
        };
        parts.push(format!("calls {} with {arguments}", call.name));
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(value: Value) -> Vec<mcp_evals::Message> {
        serde_json::from_value(value).expect("messages")
    }

    #[test]
    fn e12_messages_become_a_conversation() {
        let read = read_as(
            &messages(json!([
                {"role": "user", "content": {"type": "text", "text": "add 1 and 2"}},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "3"}]},
                    {"type": "text", "text": "and now 4"},
                ]},
            ])),
            |tool| format!("x__{tool}"),
        )
        .unwrap();
        assert_eq!(
            text(&read),
            "user: add 1 and 2\nassistant: I will.\ncalls x__add with {\"a\":1,\"b\":2}\n\
             result of x__add: 3\nuser: and now 4"
        );
    }

    #[test]
    fn e12_a_user_can_show_something_and_a_model_can_not() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let read = |role: &str| {
            let messages = messages(json!([{"role": role, "content": image}]));
            read_as(&messages, str::to_owned)
        };
        assert_eq!(text(&read("user").unwrap()), "user: [image/png]");
        assert!(read("assistant").unwrap_err().contains("contains an image"));
    }
}

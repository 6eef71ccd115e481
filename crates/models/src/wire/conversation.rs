//! Builds a conversation from the messages of a wire format.
//!
//! The main type is [`ConversationBuilder`]. Consecutive messages or items of the model are one
//! turn, and so are the results of its calls.

use proctor_record::model::{Media, ModelMessage, ToolCall, ToolResult, Turn};
use serde_json::Value;

/// A conversation under construction.
#[derive(Default)]
pub(super) struct ConversationBuilder {
    pub(super) messages: Vec<ModelMessage>,
    system: Vec<String>,
}

impl ConversationBuilder {
    pub(super) fn system(&mut self, text: &str) {
        if !text.is_empty() {
            self.system.push(text.to_owned());
        }
    }

    pub(super) fn user(&mut self, text: &str) {
        self.messages.push(ModelMessage::User(text.to_owned()));
    }

    pub(super) fn media(&mut self, media: Media) {
        self.messages.push(ModelMessage::Media(media));
    }

    /// The model's current turn.
    pub(super) fn turn(&mut self) -> &mut Turn {
        if !matches!(self.messages.last(), Some(ModelMessage::Assistant(_))) {
            self.messages.push(ModelMessage::Assistant(Turn::default()));
        }
        match self.messages.last_mut() {
            Some(ModelMessage::Assistant(turn)) => turn,
            _ => unreachable!("it was pushed just now"),
        }
    }

    /// Adds the result of a call. Takes the tool's name from the call if the result has none.
    pub(super) fn result(&mut self, mut result: ToolResult) {
        if result.name.is_empty() {
            let name = self.calls().find(|call| call.id == result.id);
            result.name = name.map_or_else(String::new, |call| call.name.clone());
        }
        match self.messages.last_mut() {
            Some(ModelMessage::Results(results)) => results.push(result),
            _ => self.messages.push(ModelMessage::Results(vec![result])),
        }
    }

    /// All calls, latest first.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let turns = self
            .messages
            .iter()
            .rev()
            .filter_map(|message| match message {
                ModelMessage::Assistant(turn) => Some(turn.calls.iter().rev()),
                _ => None,
            });
        turns.flatten()
    }

    pub(super) fn system_text(&self) -> Option<String> {
        (!self.system.is_empty()).then(|| self.system.join("\n\n"))
    }
}

/// Whether a result's text shows that its call failed, for formats without a flag.
pub(in super::super) fn looks_like_error(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(80).collect();
    let start = start.to_ascii_lowercase();
    // Agents put the server's name before the second.
    start.starts_with("error") || start.contains("mcp error -32")
}

/// Parses a data URL: `data:TYPE;base64,DATA`.
pub(super) fn media_of_url(url: &str) -> Option<Media> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Media {
        mime_type: mime_type.to_owned(),
        data: data.to_owned(),
    })
}

/// Renders a data URL: `data:TYPE;base64,DATA`.
pub(in super::super) fn media_url(media: &Media) -> String {
    format!("data:{};base64,{}", media.mime_type, media.data)
}

/// The parts of a content, which is a text or a list.
pub(super) fn parts(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        Value::Array(parts) => parts.clone(),
        _ => Vec::new(),
    }
}

/// The texts of all parts, joined.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

//! Normalizes the calls of a model for all wire formats: unique ids, valid names, and arguments
//! that are an object or malformed.

use std::collections::HashSet;

use proctor_record::json;
use proctor_record::json::repeats_a_key;
use proctor_record::model::{Arguments, ModelMessage, ModelRequest, StopReason, ToolCall};
use serde_json::{Map, Value, json};

/// The call ids of a conversation. Some servers repeat ids, or send none.
pub(super) struct Ids(HashSet<String>);

impl Ids {
    /// The ids that the conversation has already used.
    pub(super) fn of(request: &ModelRequest) -> Self {
        let turns = request.messages.iter().filter_map(|message| match message {
            ModelMessage::Assistant(turn) => Some(&turn.calls),
            ModelMessage::User(_) | ModelMessage::Media(_) | ModelMessage::Results(_) => None,
        });
        Self(turns.flatten().map(|call| call.id.clone()).collect())
    }

    /// Returns the id, or a new one if it is empty or already used.
    pub(super) fn unique(&mut self, id: &str) -> String {
        let stem = if id.is_empty() { "call" } else { id };
        let mut unique = id.to_owned();
        let mut number = 1;
        while unique.is_empty() || self.0.contains(&unique) {
            unique = format!("{stem}_{number}");
            number += 1;
        }
        self.0.insert(unique.clone());
        unique
    }
}

/// Parses arguments that a model wrote as text. An empty text means no arguments.
pub(super) fn arguments_of_text(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::Object(Map::new());
    }
    match json::from_str(text) {
        Ok(Value::Object(_)) if repeats_a_key(text.as_bytes()) => repeated(text),
        Ok(value) => arguments_of(value, text),
        Err(error) => Arguments::Malformed {
            text: text.to_owned(),
            reason: format!("not JSON: {error}"),
        },
    }
}

/// Malformed arguments with a duplicate key, which servers would read differently.
pub(super) fn repeated(text: &str) -> Arguments {
    Arguments::Malformed {
        text: text.to_owned(),
        reason: "duplicate key".to_owned(),
    }
}

/// The arguments; malformed if they are not an object.
pub(super) fn arguments_of(value: Value, text: &str) -> Arguments {
    match value {
        Value::Object(arguments) => Arguments::Object(arguments),
        Value::Null => Arguments::Object(Map::new()),
        _ => Arguments::Malformed {
            text: text.to_owned(),
            reason: "not a JSON object".to_owned(),
        },
    }
}

/// The arguments as an object, to send back: servers reject malformed ones.
pub(super) fn echoed(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Object(arguments) => Value::Object(arguments.clone()),
        Arguments::Malformed { text, .. } => json!({"malformed": text}),
    }
}

/// Replaces characters that providers reject in a name that the model made up.
pub(super) fn legal_name(name: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let legal = name
        .chars()
        .take(64)
        .map(|c| if is_legal(c) { c } else { '_' });
    match name {
        "" => "unknown".to_owned(),
        _ => legal.collect(),
    }
}

/// Not all servers report that the model stopped to call a tool.
pub(super) fn stopped(stop: StopReason, calls: &[ToolCall]) -> StopReason {
    match stop {
        StopReason::Done if !calls.is_empty() => StopReason::Calls,
        stop => stop,
    }
}

/// The text of a call's result, marked as an error for formats without a flag.
pub(super) fn error_text(text: &str, is_error: bool) -> String {
    let says_so = text.trim_start().to_lowercase().starts_with("error");
    if is_error && !says_so {
        format!("error: {text}")
    } else {
        text.to_owned()
    }
}

/// The system prompt that replaces a forced tool call, if the provider can't force one.
pub(super) fn instruction_to_call(system: Option<&str>, tool: &str) -> String {
    let order = format!("You must answer by calling the tool `{tool}`.");
    match system {
        Some(system) => format!("{system}\n\n{order}"),
        None => order,
    }
}

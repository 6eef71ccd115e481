//! Estimates the tokens of a request and its reply: a quarter of their bytes. The same
//! texts always give the same number.

use serde_json::Value;

use proctor_record::model::{Arguments, ModelMessage, ModelRequest, Turn};

/// The estimated input tokens.
pub(super) fn input(request: &ModelRequest) -> u64 {
    let system = request.system.as_ref().map_or(0, String::len);
    let messages: usize = request.messages.iter().map(message).sum();
    let tools = request.tools.iter().map(|tool| {
        let description = tool.description.as_ref().map_or(0, String::len);
        tool.name.len() + description + value(&tool.schema)
    });
    tokens(system + messages + tools.sum::<usize>())
}

/// The estimated output tokens.
pub(super) fn output(turn: &Turn) -> u64 {
    tokens(said(turn))
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

fn message(message: &ModelMessage) -> usize {
    match message {
        ModelMessage::User(text) => text.len(),
        ModelMessage::Media(media) => media.data.len(),
        ModelMessage::Assistant(turn) => said(turn),
        ModelMessage::Results(results) => results.iter().map(|result| result.text.len()).sum(),
    }
}

fn said(turn: &Turn) -> usize {
    let thinking: usize = turn.thinking.iter().map(|block| block.text.len()).sum();
    let calls = turn.calls.iter().map(|call| {
        call.name.len()
            + match &call.arguments {
                Arguments::Object(map) => map.iter().map(|(key, v)| key.len() + value(v)).sum(),
                Arguments::Malformed { text, .. } => text.len(),
            }
    });
    turn.text.len() + thinking + calls.sum::<usize>()
}

fn value(of: &Value) -> usize {
    match of {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => number.as_str().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            let members = map.iter().map(|(key, item)| key.len() + value(item) + 4);
            members.sum::<usize>() + 2
        }
    }
}

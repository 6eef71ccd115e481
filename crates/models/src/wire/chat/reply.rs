//! A complete reply of Chat Completions.

use proctor_record::model::{Arguments, ModelRequest, Reply, StopReason, ToolCall, Turn, Usage};
use serde_json::{Value, json};

use super::super::{Envelope, FormatError};
use super::{calls, thinking};
use crate::turns::{Ids, stopped};

pub(in super::super) fn reply(body: &Value, asked: &ModelRequest) -> Result<Reply, FormatError> {
    let Some(choice) = body
        .pointer("/choices/0")
        .filter(|choice| choice["message"].is_object())
    else {
        return Err(match body.get("error") {
            Some(error) if !error.is_null() => FormatError::Error(error.clone()),
            _ => FormatError::odd("it has no message"),
        });
    };
    let turn = turn(&choice["message"], asked);
    let stop = match choice["message"]["refusal"].as_str() {
        Some(refusal) if !refusal.is_empty() => StopReason::Refusal,
        _ => stopped(stop(choice["finish_reason"].as_str()), &turn.calls),
    };
    Ok(Reply {
        turn,
        stop,
        usage: usage(&body["usage"]),
        raw: None,
    })
}

fn turn(message: &Value, asked: &ModelRequest) -> Turn {
    let mut ids = Ids::of(asked);
    let mut calls = calls(message);
    for call in &mut calls {
        call.id = ids.unique(&call.id);
    }
    let text = text(&message["content"]);
    let refusal = message["refusal"].as_str().unwrap_or_default();
    Turn {
        calls,
        text: if text.is_empty() {
            refusal.to_owned()
        } else {
            text
        },
        thinking: thinking(message).into_iter().collect(),
    }
}

/// The text of a content, which is a text or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn stop(reason: Option<&str>) -> StopReason {
    match reason {
        Some("stop") => StopReason::Done,
        Some("tool_calls" | "function_call") => StopReason::Calls,
        Some("length") => StopReason::Length,
        Some("content_filter") => StopReason::Refusal,
        Some(other) => StopReason::Other(other.to_owned()),
        None => StopReason::Other("no reason given".to_owned()),
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    Usage {
        input: number("/prompt_tokens"),
        output: number("/completion_tokens"),
        cached: number("/prompt_tokens_details/cached_tokens"),
        cache_written: number("/prompt_tokens_details/cache_write_tokens"),
        reasoning: number("/completion_tokens_details/reasoning_tokens"),
    }
}

pub(in super::super) fn render(reply: &Reply, envelope: &Envelope<'_>) -> Value {
    let turn = &reply.turn;
    let is_refusal = reply.stop == StopReason::Refusal;
    let (content, refusal) = match &*turn.text {
        "" => (Value::Null, Value::Null),
        text if is_refusal => (Value::Null, text.into()),
        text => (text.into(), Value::Null),
    };
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal});
    for thought in &turn.thinking {
        let before = message["reasoning_content"].as_str().unwrap_or_default();
        message["reasoning_content"] = format!("{before}{}", thought.text).into();
    }
    if !turn.calls.is_empty() {
        message["tool_calls"] = turn.calls.iter().map(render_call).collect();
    }
    json!({
        "id": format!("chatcmpl-{}", envelope.id),
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(reply),
        }],
        "usage": render_usage(&reply.usage),
    })
}

pub(super) fn render_call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => Value::Object(arguments.clone()).to_string(),
        Arguments::Malformed { text, .. } => text.clone(),
    };
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    })
}

pub(super) fn finish_reason(reply: &Reply) -> &str {
    match &reply.stop {
        StopReason::Refusal if reply.turn.text.is_empty() => "content_filter",
        // A refusal is in the message; its finish reason is the usual one.
        StopReason::Done | StopReason::Refusal => "stop",
        StopReason::Calls => "tool_calls",
        StopReason::Length => "length",
        StopReason::Other(word) => word,
    }
}

pub(super) fn render_usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input.unwrap_or(0),
        "completion_tokens": usage.output.unwrap_or(0),
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached.unwrap_or(0), "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning.unwrap_or(0),
            "audio_tokens": 0,
        },
    })
}

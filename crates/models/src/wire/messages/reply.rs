//! A complete reply of Messages.

use proctor_record::model::{Arguments, ModelRequest, Reply, StopReason, Turn, Usage};
use serde_json::{Value, json};

use super::super::{Envelope, FormatError};
use super::{call, thought};
use crate::turns::{Ids, stopped};

pub(in super::super) fn reply(body: &Value, asked: &ModelRequest) -> Result<Reply, FormatError> {
    let Some(blocks) = body["content"].as_array() else {
        return Err(match body.get("error") {
            Some(error) if !error.is_null() => FormatError::Error(error.clone()),
            _ => FormatError::odd("it has no content"),
        });
    };
    let turn = turn(blocks, asked);
    let stop = stopped(stop(body["stop_reason"].as_str()), &turn.calls);
    Ok(Reply {
        turn,
        stop,
        usage: usage(&body["usage"]),
        raw: None,
    })
}

fn turn(blocks: &[Value], asked: &ModelRequest) -> Turn {
    let mut ids = Ids::of(asked);
    let mut turn = Turn::default();
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => turn
                .text
                .push_str(block["text"].as_str().unwrap_or_default()),
            "thinking" | "redacted_thinking" => turn.thinking.push(thought(block)),
            "tool_use" => {
                let mut call = call(block);
                call.id = ids.unique(&call.id);
                turn.calls.push(call);
            }
            _ => {}
        }
    }
    keep_order(blocks, &mut turn);
    turn
}

/// If thinking is mixed with other blocks, the signature covers their order, so the first thought
/// keeps all blocks.
fn keep_order(blocks: &[Value], turn: &mut Turn) {
    let is_thinking = |block: &Value| {
        block["type"]
            .as_str()
            .is_some_and(|kind| kind.contains("thinking"))
    };
    let leading = blocks.iter().take_while(|block| is_thinking(block)).count();
    if leading < turn.thinking.len() {
        for thought in &mut turn.thinking {
            thought.raw = None;
        }
        turn.thinking[0].raw = Some(blocks.iter().cloned().collect());
    }
}

fn stop(reason: Option<&str>) -> StopReason {
    match reason {
        Some("end_turn" | "stop_sequence") => StopReason::Done,
        Some("tool_use") => StopReason::Calls,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("refusal") => StopReason::Refusal,
        Some(other) => StopReason::Other(other.to_owned()),
        None => StopReason::Other("no reason given".to_owned()),
    }
}

/// Anthropic's input tokens don't include the cached ones.
fn usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let cached = number("cache_read_input_tokens");
    let cache_written = number("cache_creation_input_tokens");
    let plain = number("input_tokens");
    let cache = cached
        .unwrap_or(0)
        .saturating_add(cache_written.unwrap_or(0));
    Usage {
        input: plain.map(|plain| plain.saturating_add(cache)),
        output: number("output_tokens"),
        cached,
        cache_written,
        reasoning: usage
            .pointer("/output_tokens_details/thinking_tokens")
            .and_then(Value::as_u64),
    }
}

pub(in super::super) fn render(reply: &Reply, envelope: &Envelope<'_>) -> Value {
    json!({
        "id": format!("msg_{}", envelope.id),
        "type": "message",
        "role": "assistant",
        "model": envelope.model,
        "content": blocks(&reply.turn),
        "stop_reason": stop_reason(&reply.stop),
        "stop_sequence": null,
        "usage": render_usage(&reply.usage),
    })
}

pub(super) fn blocks(turn: &Turn) -> Vec<Value> {
    let thoughts = turn.thinking.iter();
    // A placeholder signature, which no client verifies.
    let mut blocks: Vec<Value> = thoughts
        .map(|t| json!({"type": "thinking", "thinking": t.text, "signature": "c2NyaXB0ZWQ="}))
        .collect();
    if !turn.text.is_empty() {
        blocks.push(json!({"type": "text", "text": turn.text}));
    }
    blocks.extend(turn.calls.iter().map(|call| {
        let input = match &call.arguments {
            Arguments::Object(arguments) => Value::Object(arguments.clone()),
            Arguments::Malformed { text, .. } => text.as_str().into(),
        };
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    }));
    blocks
}

pub(super) fn stop_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::Done => "end_turn",
        StopReason::Calls => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Refusal => "refusal",
        StopReason::Other(word) => word,
    }
}

pub(super) fn render_usage(usage: &Usage) -> Value {
    let (cached, written) = (usage.cached.unwrap_or(0), usage.cache_written.unwrap_or(0));
    let mut rendered = json!({
        "input_tokens": usage.input.unwrap_or(0).saturating_sub(cached.saturating_add(written)),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.output.unwrap_or(0),
    });
    if let Some(reasoning) = usage.reasoning {
        rendered["output_tokens_details"] = json!({"thinking_tokens": reasoning});
    }
    rendered
}

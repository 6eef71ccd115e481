//! A complete reply of Responses.

use proctor_record::model::{Arguments, ModelRequest, Reply, StopReason, ToolCall, Turn, Usage};
use serde_json::{Value, json};

use super::super::{Envelope, FormatError};
use super::{call, said, thought};
use crate::turns::{Ids, stopped};

pub(in super::super) fn reply(body: &Value, asked: &ModelRequest) -> Result<Reply, FormatError> {
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        return Err(FormatError::Error(error.clone()));
    }
    let Some(items) = body["output"].as_array() else {
        return Err(FormatError::odd("it has no output"));
    };
    let turn = turn(items, asked);
    let refuses = items
        .iter()
        .flat_map(|item| item["content"].as_array().into_iter().flatten())
        .any(|part| part["type"] == "refusal");
    let stop = if refuses {
        StopReason::Refusal
    } else {
        stopped(stop(body), &turn.calls)
    };
    Ok(Reply {
        turn,
        stop,
        usage: usage(&body["usage"]),
        raw: None,
    })
}

fn turn(items: &[Value], asked: &ModelRequest) -> Turn {
    let mut ids = Ids::of(asked);
    let mut turn = Turn::default();
    for item in items {
        match item["type"].as_str().unwrap_or_default() {
            "message" => turn.text.push_str(&said(&item["content"])),
            "reasoning" => turn.thinking.push(thought(item)),
            "function_call" | "custom_tool_call" => {
                let mut call = call(item);
                call.id = ids.unique(&call.id);
                turn.calls.push(call);
            }
            _ => {}
        }
    }
    keep_order(items, &mut turn);
    turn
}

/// If reasoning is mixed with other items, it belongs to the item after it, so the first thought
/// keeps all items.
fn keep_order(items: &[Value], turn: &mut Turn) {
    let is_reasoning = |item: &&Value| item["type"] == "reasoning";
    let leading = items.iter().take_while(is_reasoning).count();
    if leading < turn.thinking.len() {
        for thought in &mut turn.thinking {
            thought.raw = None;
        }
        turn.thinking[0].raw = Some(items.iter().cloned().collect());
    }
}

fn stop(body: &Value) -> StopReason {
    match body["status"].as_str() {
        Some("completed") => StopReason::Done,
        Some("incomplete") => match body["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens" | "max_tokens") => StopReason::Length,
            Some("content_filter") => StopReason::Refusal,
            other => StopReason::Other(other.unwrap_or("incomplete").to_owned()),
        },
        Some(other) => StopReason::Other(other.to_owned()),
        None => StopReason::Other("no reason given".to_owned()),
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    Usage {
        input: number("/input_tokens"),
        output: number("/output_tokens"),
        cached: number("/input_tokens_details/cached_tokens"),
        cache_written: number("/input_tokens_details/cache_write_tokens"),
        reasoning: number("/output_tokens_details/reasoning_tokens"),
    }
}

pub(in super::super) fn render(reply: &Reply, envelope: &Envelope<'_>) -> Value {
    let (status, reason) = match &reply.stop {
        StopReason::Refusal if reply.turn.text.is_empty() => ("incomplete", Some("content_filter")),
        StopReason::Done | StopReason::Calls | StopReason::Refusal => ("completed", None),
        StopReason::Length => ("incomplete", Some("max_output_tokens")),
        StopReason::Other(word) => ("incomplete", Some(word.as_str())),
    };
    let mut response = begun(envelope);
    response["status"] = status.into();
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["output"] = items(reply, envelope).into();
    response["usage"] = json!({
        "input_tokens": reply.usage.input.unwrap_or(0),
        "input_tokens_details": {
            "cached_tokens": reply.usage.cached.unwrap_or(0),
            "cache_write_tokens": reply.usage.cache_written.unwrap_or(0),
        },
        "output_tokens": reply.usage.output.unwrap_or(0),
        "output_tokens_details": {"reasoning_tokens": reply.usage.reasoning.unwrap_or(0)},
        "total_tokens": reply.usage.total(),
    });
    response
}

/// A response without any output so far.
pub(super) fn begun(envelope: &Envelope<'_>) -> Value {
    json!({
        "id": format!("resp_{}", envelope.id),
        "object": "response",
        "created_at": envelope.created,
        "status": "in_progress",
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "max_output_tokens": envelope.question.request.max_tokens,
        "metadata": {},
        "model": envelope.model,
        "output": [],
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
    })
}

pub(super) fn items(reply: &Reply, envelope: &Envelope<'_>) -> Vec<Value> {
    let (turn, id) = (&reply.turn, envelope.id);
    let mut items = Vec::new();
    for (at, thought) in turn.thinking.iter().enumerate() {
        let summary = json!([{"type": "summary_text", "text": thought.text}]);
        items.push(json!({"type": "reasoning", "id": format!("rs_{id}_{at}"), "summary": summary}));
    }
    if !turn.text.is_empty() {
        let part = if reply.stop == StopReason::Refusal {
            json!({"type": "refusal", "refusal": turn.text})
        } else {
            json!({"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []})
        };
        items.push(json!({
            "type": "message",
            "id": format!("msg_{id}"),
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }));
    }
    let calls = turn.calls.iter().enumerate();
    items.extend(calls.map(|(at, call)| render_call(call, &format!("fc_{id}_{at}"), envelope)));
    items
}

fn render_call(call: &ToolCall, id: &str, envelope: &Envelope<'_>) -> Value {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => Value::Object(arguments.clone()).to_string(),
        Arguments::Malformed { text, .. } => text.clone(),
    };
    let mut item = json!({
        "type": "function_call",
        "id": id,
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": "completed",
    });
    let mut namespaces = envelope.question.namespaces.iter();
    if let Some(known) = namespaces.find(|known| known.joined == call.name) {
        item["name"] = known.name.as_str().into();
        item["namespace"] = known.namespace.as_str().into();
    }
    item
}

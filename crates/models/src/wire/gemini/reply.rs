//! A complete reply of Gemini.

use proctor_record::model::{Arguments, ModelRequest, Reply, StopReason, Thinking, Turn, Usage};
use serde_json::{Value, json};

use super::super::{Envelope, FormatError};
use super::{read_call, thought};
use crate::turns::{Ids, stopped};

pub(in super::super) fn reply(body: &Value, asked: &ModelRequest) -> Result<Reply, FormatError> {
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        return Err(FormatError::Error(error.clone()));
    }
    let usage = usage(&body["usageMetadata"]);
    let Some(candidate) = body.pointer("/candidates/0") else {
        // A blocked request has no candidate, and the reason is elsewhere.
        return match body.pointer("/promptFeedback/blockReason") {
            Some(_) => Ok(refused(usage)),
            None => Err(FormatError::odd("it has no candidate")),
        };
    };
    let reason = candidate["finishReason"].as_str();
    if let Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL")) = reason {
        let said = candidate["finishMessage"].as_str().unwrap_or_default();
        let text = format!("malformed call ({reason}) {said}");
        return Err(FormatError::odd(text.trim_end()));
    }
    let parts = candidate["content"]["parts"].as_array();
    let turn = turn(parts.map_or(&[][..], Vec::as_slice), asked);
    let stop = stopped(stop(reason), &turn.calls);
    Ok(Reply {
        turn,
        stop,
        usage,
        raw: None,
    })
}

fn refused(usage: Usage) -> Reply {
    Reply {
        turn: Turn::default(),
        stop: StopReason::Refusal,
        usage,
        raw: None,
    }
}

fn turn(parts: &[Value], asked: &ModelRequest) -> Turn {
    let mut ids = Ids::of(asked);
    let mut turn = Turn::default();
    for part in parts {
        if let Some(call) = part.get("functionCall") {
            let mut call = read_call(call);
            call.id = ids.unique(&call.id);
            turn.calls.push(call);
        } else if part["thought"] == true {
            turn.thinking.push(thought(part));
        } else if let Some(text) = part["text"].as_str() {
            turn.text.push_str(text);
        }
    }
    keep_signatures(parts, &mut turn);
    turn
}

/// Gemini requires signatures and ids at their original place, so the first thought keeps all
/// parts.
fn keep_signatures(parts: &[Value], turn: &mut Turn) {
    let is_signed = |part: &Value| {
        part.get("thoughtSignature").is_some() || part.pointer("/functionCall/id").is_some()
    };
    if !parts.iter().any(is_signed) {
        return;
    }
    for thought in &mut turn.thinking {
        thought.raw = None;
    }
    let raw = Some(parts.iter().cloned().collect());
    match turn.thinking.first_mut() {
        Some(first) => first.raw = raw,
        None => turn.thinking.push(Thinking {
            text: String::new(),
            raw,
        }),
    }
}

fn stop(reason: Option<&str>) -> StopReason {
    match reason {
        Some("STOP") => StopReason::Done,
        Some("MAX_TOKENS") => StopReason::Length,
        Some(
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY",
        ) => StopReason::Refusal,
        Some(other) => StopReason::Other(other.to_owned()),
        None => StopReason::Other("no reason given".to_owned()),
    }
}

/// Gemini's output tokens don't include the thinking.
fn usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let prompt = number("promptTokenCount");
    let thoughts = number("thoughtsTokenCount");
    let answer = number("candidatesTokenCount");
    let added = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    Usage {
        input: added(prompt, number("toolUsePromptTokenCount")),
        // An empty reply has no output count.
        output: added(answer, thoughts).or(prompt.map(|_| 0)),
        cached: number("cachedContentTokenCount"),
        cache_written: None,
        reasoning: thoughts,
    }
}

pub(in super::super) fn render(reply: &Reply, envelope: &Envelope<'_>) -> Value {
    let mut body = whole(&parts(&reply.turn), envelope);
    end(&mut body, reply);
    body
}

/// A body with these parts.
pub(super) fn whole(parts: &[Value], envelope: &Envelope<'_>) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": envelope.model,
        "responseId": envelope.id,
    })
}

/// Adds the fields that only the end of a reply has.
pub(super) fn end(body: &mut Value, reply: &Reply) {
    let is_malformed = |call: &proctor_record::model::ToolCall| {
        matches!(call.arguments, Arguments::Malformed { .. })
    };
    let candidate = &mut body["candidates"][0];
    candidate["finishReason"] = match &reply.stop {
        _ if reply.turn.calls.iter().any(is_malformed) => {
            candidate["finishMessage"] = "Malformed function call".into();
            "MALFORMED_FUNCTION_CALL"
        }
        StopReason::Done | StopReason::Calls => "STOP",
        StopReason::Length => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        StopReason::Other(word) => word,
    }
    .into();
    let usage = &reply.usage;
    let reasoning = usage.reasoning.unwrap_or(0);
    let mut metadata = json!({
        "promptTokenCount": usage.input.unwrap_or(0),
        "candidatesTokenCount": usage.output.unwrap_or(0).saturating_sub(reasoning),
        "totalTokenCount": usage.total(),
    });
    if usage.reasoning.is_some() {
        metadata["thoughtsTokenCount"] = reasoning.into();
    }
    if let Some(cached) = usage.cached {
        metadata["cachedContentTokenCount"] = cached.into();
    }
    body["usageMetadata"] = metadata;
}

/// The parts of a turn. Leaves out calls whose arguments are not an object, which this format can't
/// express.
pub(super) fn parts(turn: &Turn) -> Vec<Value> {
    let thoughts = turn.thinking.iter();
    let mut parts: Vec<Value> = thoughts
        .map(|thought| json!({"text": thought.text, "thought": true}))
        .collect();
    if !turn.text.is_empty() {
        parts.push(json!({"text": turn.text}));
    }
    for call in &turn.calls {
        if let Arguments::Object(args) = &call.arguments {
            let call = json!({"id": call.id, "name": call.name, "args": args});
            parts.push(json!({"functionCall": call}));
        }
    }
    parts
}

//! A reply of Chat Completions as a stream of chunks.

use proctor_record::model::{Reply, StopReason};
use serde_json::{Map, Value, json};

use super::super::{Envelope, pieces};
use super::THINKING;
use super::reply::{finish_reason, render_call, render_usage};

/// The chunks of a reply.
pub(in super::super) fn events(reply: &Reply, envelope: &Envelope<'_>) -> Vec<Value> {
    let chunk = |choices: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", envelope.id),
            "object": "chat.completion.chunk",
            "created": envelope.created,
            "model": envelope.model,
            "choices": choices,
        });
        if envelope.question.wants_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    };
    let said = |delta: Value, reason: Option<&str>| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]))
    };
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let thoughts = reply.turn.thinking.iter().flat_map(|t| pieces(&t.text));
    deltas.extend(thoughts.map(|piece| json!({"reasoning_content": piece})));
    let key = if reply.stop == StopReason::Refusal {
        "refusal"
    } else {
        "content"
    };
    deltas.extend(
        pieces(&reply.turn.text)
            .into_iter()
            .map(|piece| json!({key: piece})),
    );
    for (index, call) in reply.turn.calls.iter().enumerate() {
        let mut call = render_call(call);
        let arguments = call["function"]["arguments"].take();
        call["function"]["arguments"] = "".into();
        call["index"] = index.into();
        deltas.push(json!({"tool_calls": [call]}));
        for piece in pieces(arguments.as_str().unwrap_or_default()) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            deltas.push(json!({"tool_calls": [more]}));
        }
    }
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| said(delta, None)).collect();
    chunks.push(said(json!({}), Some(finish_reason(reply))));
    if envelope.question.wants_usage {
        let mut last = chunk(json!([]));
        last["usage"] = render_usage(&reply.usage);
        chunks.push(last);
    }
    chunks
}

/// A streamed reply under construction.
#[derive(Default)]
pub(in super::super) struct StreamAssembler {
    body: Map<String, Value>,
    message: Map<String, Value>,
    calls: Vec<Value>,
    finish_reason: Value,
}

impl StreamAssembler {
    pub(in super::super) fn take(&mut self, chunk: &Value) {
        for key in ["id", "model", "created", "usage", "error"] {
            if let Some(value) = chunk.get(key).filter(|value| !value.is_null()) {
                self.body.insert(key.to_owned(), value.clone());
            }
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return;
        };
        if !choice["finish_reason"].is_null() {
            self.finish_reason = choice["finish_reason"].clone();
        }
        let delta = &choice["delta"];
        for key in ["content", "refusal"].iter().chain(&THINKING) {
            append(&mut self.message, key, &delta[*key]);
        }
        for (at, call) in delta["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            self.take_call(at, call);
        }
    }

    /// If a server sends no index, a call with an id is a new one.
    fn take_call(&mut self, at: usize, part: &Value) {
        let index = part["index"]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok());
        let is_new = part["id"].as_str().is_some_and(|id| !id.is_empty());
        let index = index.unwrap_or(match self.calls.len() {
            0 => at,
            known if is_new => known,
            known => known - 1,
        });
        if index > self.calls.len() + 64 {
            return;
        }
        while self.calls.len() <= index {
            self.calls
                .push(json!({"id": "", "function": {"name": "", "arguments": ""}}));
        }
        let call = &mut self.calls[index];
        if is_new {
            call["id"] = part["id"].clone();
        }
        for key in ["name", "arguments"] {
            match &part["function"][key] {
                Value::String(text) => {
                    let before = call["function"][key].as_str().unwrap_or_default();
                    call["function"][key] = format!("{before}{text}").into();
                }
                Value::Null => {}
                whole => call["function"][key] = whole.clone(),
            }
        }
    }

    /// The body of an equal reply without streaming; empty if no part of a message has come.
    pub(in super::super) fn end(mut self) -> Value {
        let begun =
            !self.message.is_empty() || !self.calls.is_empty() || !self.finish_reason.is_null();
        if begun && !self.body.contains_key("error") {
            if !self.calls.is_empty() {
                self.message
                    .insert("tool_calls".to_owned(), Value::Array(self.calls));
            }
            let choice =
                json!({"index": 0, "message": self.message, "finish_reason": self.finish_reason});
            self.body.insert("choices".to_owned(), json!([choice]));
        }
        Value::Object(self.body)
    }
}

fn append(to: &mut Map<String, Value>, key: &str, part: &Value) {
    match (to.get_mut(key), part) {
        (_, Value::Null) => {}
        (Some(Value::String(before)), Value::String(more)) => before.push_str(more),
        (Some(Value::Array(before)), Value::Array(more)) => before.extend(more.iter().cloned()),
        _ => {
            to.insert(key.to_owned(), part.clone());
        }
    }
}

//! A reply of Messages as a stream of events.

use proctor_record::json;
use proctor_record::model::Reply;
use serde_json::{Map, Value, json};

use super::super::{Envelope, pieces};
use super::reply::{blocks, render, render_usage, stop_reason};

/// The events of a reply.
pub(in super::super) fn events(reply: &Reply, envelope: &Envelope<'_>) -> Vec<Value> {
    let mut message = render(reply, envelope);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"]["output_tokens"] = 1.into();
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, mut block) in blocks(&reply.turn).into_iter().enumerate() {
        let deltas = deltas(&mut block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(&reply.stop), "stop_sequence": null},
        "usage": render_usage(&reply.usage),
    }));
    events.push(json!({"type": "message_stop"}));
    events
}

/// Removes from a block what comes after its start, and returns it as deltas.
fn deltas(block: &mut Value) -> Vec<Value> {
    let mut deltas = Vec::new();
    let mut take = |key: &str, kind: &str, part: &str, empty: Value| {
        let Some(whole) = block.get_mut(key) else {
            return;
        };
        let whole = std::mem::replace(whole, empty);
        let text = match &whole {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        deltas.extend(
            pieces(&text)
                .into_iter()
                .map(|p| json!({"type": kind, part: p})),
        );
    };
    take("text", "text_delta", "text", "".into());
    take("thinking", "thinking_delta", "thinking", "".into());
    take("signature", "signature_delta", "signature", "".into());
    take("input", "input_json_delta", "partial_json", json!({}));
    deltas
}

/// A streamed reply under construction.
#[derive(Default)]
pub(in super::super) struct StreamAssembler {
    body: Map<String, Value>,
    blocks: Vec<Value>,
    /// The arguments of calls, as text.
    inputs: Vec<String>,
}

impl StreamAssembler {
    pub(in super::super) fn take(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let message = event["message"].as_object();
                self.body.extend(message.cloned().unwrap_or_default());
            }
            "content_block_start" => {
                let block = event["content_block"].as_object();
                self.blocks.push(block.cloned().unwrap_or_default().into());
                self.inputs.push(String::new());
            }
            "content_block_delta" => {
                let index = event["index"]
                    .as_u64()
                    .and_then(|i| usize::try_from(i).ok());
                if let Some(index) = index.filter(|index| *index < self.blocks.len()) {
                    self.take_delta(index, &event["delta"]);
                }
            }
            "message_delta" => self.take_end(event),
            "error" => {
                self.body.insert("error".to_owned(), event["error"].clone());
            }
            _ => {}
        }
    }

    fn take_delta(&mut self, index: usize, delta: &Value) {
        if let Some(part) = delta["partial_json"].as_str() {
            self.inputs[index].push_str(part);
            return;
        }
        for key in ["text", "thinking", "signature"] {
            if let Some(part) = delta[key].as_str() {
                let before = self.blocks[index][key].as_str().unwrap_or_default();
                self.blocks[index][key] = format!("{before}{part}").into();
            }
        }
    }

    /// The usage at the end replaces the usage at the start.
    fn take_end(&mut self, event: &Value) {
        for (key, value) in event["delta"].as_object().into_iter().flatten() {
            self.body.insert(key.clone(), value.clone());
        }
        let usage = self.body.entry("usage").or_insert_with(|| json!({}));
        let (Value::Object(usage), Some(more)) = (usage, event["usage"].as_object()) else {
            return;
        };
        let known = more.iter().filter(|(_, value)| !value.is_null());
        usage.extend(known.map(|(key, value)| (key.clone(), value.clone())));
    }

    /// The body of an equal reply without streaming; without content if the reply has not begun.
    pub(in super::super) fn end(mut self) -> Value {
        if self.body.contains_key("error") {
            self.body.remove("content");
            return Value::Object(self.body);
        }
        // The output count comes at the end. Without an end, the count at the start is only a
        // guess.
        if self.body.get("stop_reason").is_none_or(Value::is_null)
            && let Some(Value::Object(usage)) = self.body.get_mut("usage")
        {
            usage.remove("output_tokens");
        }
        for (block, input) in self.blocks.iter_mut().zip(self.inputs) {
            if !input.is_empty() {
                block["input"] = match json::from_str(&input) {
                    Ok(object @ Value::Object(_)) => object,
                    _ => input.into(),
                };
            }
        }
        if self.body.contains_key("content") {
            self.body
                .insert("content".to_owned(), Value::Array(self.blocks));
        }
        Value::Object(self.body)
    }
}

//! A reply of Responses as a stream of events.

use proctor_record::model::Reply;
use serde_json::{Value, json};

use super::super::{Envelope, pieces};
use super::reply::{begun, items, render};

/// The events of a reply, numbered.
pub(in super::super) fn events(reply: &Reply, envelope: &Envelope<'_>) -> Vec<Value> {
    let start = begun(envelope);
    let mut events = vec![
        json!({"type": "response.created", "response": start}),
        json!({"type": "response.in_progress", "response": start}),
    ];
    for (index, item) in items(reply, envelope).into_iter().enumerate() {
        item_events(index, &item, &mut events);
    }
    let whole = render(reply, envelope);
    let status = whole["status"].as_str().unwrap_or_default();
    events.push(json!({"type": format!("response.{status}"), "response": whole}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

fn item_events(index: usize, item: &Value, events: &mut Vec<Value>) {
    let mut empty = item.clone();
    let mut push = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "output_index": index});
        if !kind.starts_with("response.output_item") {
            event["item_id"] = item["id"].clone();
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        events.push(event);
    };
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            empty["content"] = json!([]);
            empty["status"] = "in_progress".into();
            push("response.output_item.added", json!({"item": empty}));
            let part = &item["content"][0];
            let is_refusal = part["type"] == "refusal";
            let (kind, key) = if is_refusal {
                ("response.refusal", "refusal")
            } else {
                ("response.output_text", "text")
            };
            let mut before = part.clone();
            before[key] = "".into();
            let at = |more: Value| {
                let mut event = json!({"content_index": 0});
                for (key, value) in more.as_object().into_iter().flatten() {
                    event[key] = value.clone();
                }
                if !is_refusal && event.get("part").is_none() {
                    event["logprobs"] = json!([]);
                }
                event
            };
            push("response.content_part.added", at(json!({"part": before})));
            for piece in pieces(part[key].as_str().unwrap_or_default()) {
                push(&format!("{kind}.delta"), at(json!({"delta": piece})));
            }
            push(&format!("{kind}.done"), at(json!({key: part[key]})));
            push("response.content_part.done", at(json!({"part": part})));
        }
        "function_call" => {
            empty["arguments"] = "".into();
            empty["status"] = "in_progress".into();
            push("response.output_item.added", json!({"item": empty}));
            let kind = "response.function_call_arguments";
            for piece in pieces(item["arguments"].as_str().unwrap_or_default()) {
                push(&format!("{kind}.delta"), json!({"delta": piece}));
            }
            let whole = json!({"arguments": item["arguments"], "name": item["name"]});
            push(&format!("{kind}.done"), whole);
        }
        _ => {
            empty["summary"] = json!([]);
            push("response.output_item.added", json!({"item": empty}));
            let part = &item["summary"][0];
            let before = json!({"type": "summary_text", "text": ""});
            let kind = "response.reasoning_summary";
            push(
                &format!("{kind}_part.added"),
                json!({"summary_index": 0, "part": before}),
            );
            for piece in pieces(part["text"].as_str().unwrap_or_default()) {
                let delta = json!({"summary_index": 0, "delta": piece});
                push(&format!("{kind}_text.delta"), delta);
            }
            let text = json!({"summary_index": 0, "text": part["text"]});
            push(&format!("{kind}_text.done"), text);
            push(
                &format!("{kind}_part.done"),
                json!({"summary_index": 0, "part": part}),
            );
        }
    }
    push("response.output_item.done", json!({"item": item}));
}

/// A streamed reply under construction.
#[derive(Default)]
pub(in super::super) struct StreamAssembler {
    items: Vec<Value>,
    response: Value,
    is_done: bool,
}

impl StreamAssembler {
    pub(in super::super) fn take(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "response.created" | "response.in_progress" if !self.is_done => {
                self.response = event["response"].clone();
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response = event["response"].clone();
                self.is_done = true;
            }
            "response.output_item.done" => self.items.push(event["item"].clone()),
            "error" => {
                self.response = json!({"error": event.get("error").unwrap_or(event)});
                self.is_done = true;
            }
            _ => {}
        }
    }

    /// The body of an equal reply without streaming. Some servers leave the output out of their
    /// last event.
    pub(in super::super) fn end(mut self) -> Value {
        let has_output = self.response["output"]
            .as_array()
            .is_some_and(|o| !o.is_empty());
        if self.response.is_object() && !has_output && self.response["error"].is_null() {
            self.response["output"] = Value::Array(self.items);
        }
        self.response
    }
}

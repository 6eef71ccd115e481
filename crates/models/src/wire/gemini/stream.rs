//! A reply of Gemini as a stream of partial replies.

use proctor_record::model::Reply;
use serde_json::{Map, Value, json};

use super::super::{Envelope, pieces};
use super::reply::{end, parts, whole};

/// The partial replies of a reply; the last one has the finish reason.
pub(in super::super) fn events(reply: &Reply, envelope: &Envelope<'_>) -> Vec<Value> {
    let mut bodies = Vec::new();
    for part in parts(&reply.turn) {
        let Some(text) = part["text"].as_str() else {
            bodies.push(whole(&[part], envelope));
            continue;
        };
        for piece in pieces(text) {
            let mut part = part.clone();
            part["text"] = piece.into();
            bodies.push(whole(&[part], envelope));
        }
    }
    if bodies.is_empty() {
        bodies.push(whole(&[json!({"text": ""})], envelope));
    }
    if let Some(last) = bodies.last_mut() {
        end(last, reply);
    }
    bodies
}

/// A streamed reply under construction.
#[derive(Default)]
pub(in super::super) struct StreamAssembler {
    body: Map<String, Value>,
    candidate: Option<Map<String, Value>>,
    parts: Vec<Value>,
}

impl StreamAssembler {
    pub(in super::super) fn take(&mut self, body: &Value) {
        for (key, value) in body.as_object().into_iter().flatten() {
            if key != "candidates" {
                self.body.insert(key.clone(), value.clone());
            }
        }
        let Some(candidate) = body.pointer("/candidates/0") else {
            return;
        };
        let known = self.candidate.get_or_insert_default();
        for (key, value) in candidate.as_object().into_iter().flatten() {
            if key != "content" {
                known.insert(key.clone(), value.clone());
            }
        }
        let parts = candidate["content"]["parts"].as_array();
        for part in parts.into_iter().flatten() {
            self.take_part(part);
        }
    }

    /// Appends a text to the one before if both are thoughts or neither is, until it is signed.
    fn take_part(&mut self, part: &Value) {
        if let (Some(before), Some(text)) = (self.parts.last_mut(), part["text"].as_str())
            && before.get("thoughtSignature").is_none()
            && (before["thought"] == true) == (part["thought"] == true)
            && let Some(said) = before["text"].as_str()
        {
            before["text"] = format!("{said}{text}").into();
            if let Some(signature) = part.get("thoughtSignature") {
                before["thoughtSignature"] = signature.clone();
            }
            return;
        }
        self.parts.push(part.clone());
    }

    /// The body of an equal reply without streaming.
    pub(in super::super) fn end(mut self) -> Value {
        if let Some(mut candidate) = self.candidate {
            let content = json!({"role": "model", "parts": self.parts});
            candidate.insert("content".to_owned(), content);
            self.body
                .insert("candidates".to_owned(), json!([candidate]));
        }
        Value::Object(self.body)
    }
}

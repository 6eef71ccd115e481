//! Fingerprints of the parts of a request, to see whether they are the same as before.
//!
//! The main type is [`Fingerprints`]. Equal fingerprints mean equal JSON: the order of keys counts, as does the spelling
//! of numbers. Their key is random, so no text can be made that has the fingerprint of another.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::{Map, Value};

use super::{Arguments, Media, ModelMessage, ModelRequest, ToolResult, Tools, Turn};

/// Computes fingerprints with one key.
#[derive(Default)]
pub struct Fingerprints(RandomState);

impl Fingerprints {
    pub fn message(&self, message: &ModelMessage) -> u64 {
        let mut hash = self.0.build_hasher();
        std::mem::discriminant(message).hash(&mut hash);
        match message {
            ModelMessage::User(text) => text.hash(&mut hash),
            ModelMessage::Media(media) => add_media(media, &mut hash),
            ModelMessage::Assistant(turn) => add_turn(turn, &mut hash),
            ModelMessage::Results(results) => {
                results.len().hash(&mut hash);
                for result in results {
                    add_result(result, &mut hash);
                }
            }
        }
        hash.finish()
    }

    pub fn tools(&self, tools: &Tools) -> u64 {
        self.0.hash_one(tools.text())
    }

    /// Everything besides the messages. `tools` is the fingerprint of the tools.
    pub fn frame(&self, request: &ModelRequest, tools: u64) -> u64 {
        let mut hash = self.0.build_hasher();
        request.system.hash(&mut hash);
        tools.hash(&mut hash);
        request.tools.len().hash(&mut hash);
        request.must_call.hash(&mut hash);
        request.max_tokens.hash(&mut hash);
        request.temperature.map(f64::to_bits).hash(&mut hash);
        hash.finish()
    }
}

fn add_media(media: &Media, hash: &mut impl Hasher) {
    media.mime_type.hash(hash);
    media.data.hash(hash);
}

fn add_turn(turn: &Turn, hash: &mut impl Hasher) {
    turn.text.hash(hash);
    turn.thinking.len().hash(hash);
    for thinking in &turn.thinking {
        thinking.text.hash(hash);
        thinking.raw.is_some().hash(hash);
        if let Some(raw) = &thinking.raw {
            add_value(raw, hash);
        }
    }
    turn.calls.len().hash(hash);
    for call in &turn.calls {
        call.id.hash(hash);
        call.name.hash(hash);
        std::mem::discriminant(&call.arguments).hash(hash);
        match &call.arguments {
            Arguments::Object(arguments) => add_map(arguments, hash),
            Arguments::Malformed { text, reason } => (text, reason).hash(hash),
        }
    }
}

fn add_result(result: &ToolResult, hash: &mut impl Hasher) {
    (&result.id, &result.name, &result.text, result.is_error).hash(hash);
    result.media.len().hash(hash);
    for media in &result.media {
        add_media(media, hash);
    }
}

fn add_map(map: &Map<String, Value>, hash: &mut impl Hasher) {
    map.len().hash(hash);
    for (key, value) in map {
        key.hash(hash);
        add_value(value, hash);
    }
}

fn add_value(value: &Value, hash: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hash);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hash),
        Value::Number(number) => number.as_str().hash(hash),
        Value::String(text) => text.hash(hash),
        Value::Array(items) => {
            items.len().hash(hash);
            for item in items {
                add_value(item, hash);
            }
        }
        Value::Object(map) => add_map(map, hash),
    }
}

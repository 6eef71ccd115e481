//! Adds `_meta` to every object of a result, including places where no protocol defines it.

use serde_json::{Map, Value, json};

use crate::payload::Payload;

/// Members that are left unchanged, because additions there would have a meaning.
const KEPT: [&str; 7] = [
    "arguments",
    "inputSchema",
    "outputSchema",
    "structuredContent",
    "capabilities",
    "expected",
    "_meta",
];
/// Longer messages are left unchanged.
const MOST: u64 = 4 * 1024 * 1024;

/// Returns the member of a response with `_meta` everywhere; `None` if it can't be parsed.
pub fn everywhere(member: &Payload) -> Option<Payload> {
    if member.len() > MOST {
        return None;
    }
    let text = Payload::from("{").then(member.clone()).then("}");
    let mut member: Value = serde_json::from_slice(&text.to_bytes()).ok()?;
    add_below(member.as_object_mut()?);
    let text = member.to_string();
    Some(text.strip_prefix('{')?.strip_suffix('}')?.into())
}

fn add(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(add),
        Value::Object(object) => {
            let meta = object.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("org.example/fixture".to_owned(), json!({"passed": true}));
            }
            add_below(object);
        }
        _ => {}
    }
}

fn add_below(object: &mut Map<String, Value>) {
    for (key, value) in object {
        if !KEPT.contains(&key.as_str()) {
            add(value);
        }
    }
}

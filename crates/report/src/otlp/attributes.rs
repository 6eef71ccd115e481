//! Attributes in the JSON form of OTLP: 64-bit numbers are texts.

use serde_json::{Value, json};

/// A list of attributes.
#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.push(key, json!({ "stringValue": text }));
    }

    pub(super) fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    pub(super) fn integer(&mut self, key: &str, number: impl Into<u64>) {
        self.push(key, json!({ "intValue": number.into().to_string() }));
    }

    pub(super) fn count(&mut self, key: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.integer(key, number);
        }
    }

    pub(super) fn double(&mut self, key: &str, number: f64) {
        self.push(key, json!({ "doubleValue": number }));
    }

    pub(super) fn list(&mut self, key: &str, texts: &[&str]) {
        let values: Vec<Value> = texts
            .iter()
            .map(|text| json!({ "stringValue": text }))
            .collect();
        self.push(key, json!({ "arrayValue": { "values": values } }));
    }

    pub(super) fn into_value(self) -> Value {
        Value::Array(self.0)
    }

    fn push(&mut self, key: &str, value: Value) {
        let mut attribute = json!({ "key": key });
        attribute["value"] = value;
        self.0.push(attribute);
    }
}

//! Reads JSONL files: one JSON object per line.

use proctor_record::json;
use proctor_record::problem::{Code, Problem, SourceText, Span};
use serde_json::Value;

use super::{MAX_VALUES, too_many_values};
use crate::decode::Context;
use crate::document::{MapEntry, Node, NodeValue};

/// The rows of a JSONL file.
pub(super) fn read(source: &SourceText, cx: &Context<'_>) -> Option<Vec<Node>> {
    let mut rows = Vec::new();
    let mut values = 0;
    let text = source.text();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let span = Span {
            line: u32::try_from(index + 1).unwrap_or(u32::MAX),
            column: 1,
            chars: u32::MAX,
        };
        match json::decode(line) {
            Ok(value @ Value::Object(_)) => rows.push(node(value, span, &mut values)),
            Ok(_) => {
                let message = "expected a JSON object on each line";
                cx.report(span, Problem::error(Code::Type, message));
            }
            Err(error) => {
                let message = format!("invalid JSON: {}", json_fault(&error));
                cx.report(span, Problem::error(Code::Syntax, message));
            }
        }
        if values > MAX_VALUES {
            too_many_values(span, cx);
            return None;
        }
    }
    Some(rows)
}

/// What is wrong with a JSON text, without the line of the text, which is not that of the file.
pub(in crate::suite) fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (fault, _) = text.split_once(" at line ").unwrap_or((&text, ""));
    fault.to_owned()
}

/// A JSON value as a node. All its parts have the same place.
pub(in crate::suite) fn node_of(value: Value, span: Span) -> Node {
    node(value, span, &mut 0)
}

fn node(value: Value, span: Span, values: &mut usize) -> Node {
    *values += 1;
    let data = match value {
        Value::Null => NodeValue::Null,
        Value::Bool(value) => NodeValue::Bool(value),
        Value::Number(number) => {
            let raw = number.to_string();
            NodeValue::Number(number, raw)
        }
        Value::String(text) => NodeValue::String(text),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| node(item, span, values));
            NodeValue::Sequence(items.collect())
        }
        Value::Object(members) => {
            let entries = members.into_iter().map(|(key, value)| MapEntry {
                key,
                key_span: span,
                value: node(value, span, values),
            });
            NodeValue::Mapping(entries.collect())
        }
    };
    Node { span, data }
}

//! Formats calls, one line each.

use std::collections::BTreeMap;

use proctor_record::json;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use serde_json::Value;

/// The tools with the number of their calls, in the order of their first calls.
pub(super) fn made(calls: &[Call]) -> String {
    if calls.is_empty() {
        return "the agent made no calls".to_owned();
    }
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (index, call) in calls.iter().enumerate() {
        counts.entry(target(call)).or_insert((index, 0)).1 += 1;
    }
    let mut counts: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (first, _))| *first);
    let shown: Vec<String> = counts
        .into_iter()
        .map(|(name, (_, count))| match count {
            1 => name,
            count => format!("{name} ×{count}"),
        })
        .collect();
    format!("calls made: {}", shown.join(", "))
}

fn target(call: &Call) -> String {
    let what = match &call.request {
        CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => name,
        CallRequest::Resource { uri } => uri,
    };
    format!("{}.{what}", call.server)
}

/// Formats a call with its answer: `#12 tools/call fs.read_file {"path":"/a"} → error -32602: no`.
pub(crate) fn describe(call: &Call) -> String {
    format!("{} → {}", request(call), answer(&call.answer))
}

/// Formats a call without its answer.
pub(crate) fn request(call: &Call) -> String {
    let (method, arguments) = match &call.request {
        CallRequest::Tool { arguments, .. } => ("tools/call", Some(arguments)),
        CallRequest::Resource { .. } => ("resources/read", None),
        CallRequest::Prompt { arguments, .. } => ("prompts/get", Some(arguments)),
    };
    let arguments = arguments.and_then(|arguments| match arguments.read() {
        Ok(value) => value.map(json::brief),
        Err(unread) => Some(format!("(arguments {unread})")),
    });
    let arguments = arguments.map_or(String::new(), |text| format!(" {text}"));
    format!("#{} {method} {}{arguments}", call.seq, target(call))
}

/// Whether a call has no good answer. An answer that can't be read counts as an error: it may be one.
pub(crate) fn is_error(answer: &CallOutcome) -> bool {
    match answer {
        CallOutcome::Error { .. } | CallOutcome::None => true,
        CallOutcome::Result(payload) => match payload.read() {
            Ok(value) => value.is_some_and(|value| value["isError"].as_bool() == Some(true)),
            Err(_) => true,
        },
    }
}

/// Formats the answer of a call.
pub(crate) fn answer(answer: &CallOutcome) -> String {
    match answer {
        CallOutcome::Error { code, message } => format!("error {code}: {message}"),
        CallOutcome::None => "no answer".to_owned(),
        CallOutcome::Result(Payload::Absent) => "no result".to_owned(),
        CallOutcome::Result(payload) => match payload.read() {
            Ok(Some(value)) => json::spelled(&result_text(value)).into_owned(),
            Ok(None) => "no result".to_owned(),
            Err(unread) => format!("(the result {unread})"),
        },
    }
}

/// The text of a tool's result, or its JSON if it has no text.
fn result_text(result: &Value) -> String {
    let texts: Vec<&str> = result["content"]
        .as_array()
        .map(|parts| parts.iter().filter_map(|p| p["text"].as_str()).collect())
        .unwrap_or_default();
    let text = if texts.is_empty() {
        json::brief(result)
    } else {
        texts.join(" ")
    };
    match result["isError"].as_bool() {
        Some(true) => format!("error: {text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(seq: u64, request: CallRequest, answer: CallOutcome) -> Call {
        Call {
            seq,
            server: "fs".to_owned(),
            request,
            answer,
            duration: None,
        }
    }

    fn tool(arguments: Payload) -> CallRequest {
        let name = "read".to_owned();
        CallRequest::Tool { name, arguments }
    }

    #[test]
    fn a_call_is_shown_with_its_answer() {
        let check = |request, answer, shown: &str| {
            assert_eq!(describe(&call(7, request, answer)), shown);
        };
        let result = |value| CallOutcome::Result(Payload::Value(value));
        let path = || tool(Payload::Value(json!({ "path": "/a" })));
        check(
            path(),
            result(json!({ "content": [{ "text": "a" }, { "type": "image" }, { "text": "b" }] })),
            r#"#7 tools/call fs.read {"path":"/a"} → a b"#,
        );
        check(
            path(),
            result(json!({ "content": [{ "text": "gone" }], "isError": true })),
            r#"#7 tools/call fs.read {"path":"/a"} → error: gone"#,
        );
        check(
            tool(Payload::Absent),
            result(json!({ "structuredContent": { "n": 1 } })),
            r#"#7 tools/call fs.read → {"structuredContent":{"n":1}}"#,
        );
        check(
            tool(Payload::Cut { bytes: 9 }),
            CallOutcome::Result(Payload::Cut { bytes: 8 }),
            "#7 tools/call fs.read (arguments (9 bytes) can't be read: truncated in the record) → (the result (8 bytes) can't be read: truncated in the record)",
        );
        let uri = "file:///a".to_owned();
        check(
            CallRequest::Resource { uri },
            CallOutcome::None,
            "#7 resources/read fs.file:///a → no answer",
        );
        let (name, arguments) = ("greet".to_owned(), Payload::Absent);
        let message = "no".to_owned();
        check(
            CallRequest::Prompt { name, arguments },
            CallOutcome::Error {
                code: -32602,
                message,
            },
            "#7 prompts/get fs.greet → error -32602: no",
        );
    }

    #[test]
    fn calls_are_counted_in_order() {
        let read = |seq| call(seq, tool(Payload::Absent), CallOutcome::None);
        let uri = "b".to_owned();
        let first = call(1, CallRequest::Resource { uri }, CallOutcome::None);
        assert_eq!(made(&[]), "the agent made no calls");
        assert_eq!(
            made(&[first, read(2), read(3)]),
            "calls made: fs.b, fs.read ×2"
        );
    }
}

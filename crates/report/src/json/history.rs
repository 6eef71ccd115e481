//! The calls of a trial in mcpchecker's format.

use jiff::{SignedDuration, Timestamp};
use proctor_record::fold::FoldedTrial;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use serde_json::{Value, json};

use super::tokens;

/// A history without calls.
pub(super) fn empty() -> Value {
    json!({ "ToolCalls": [], "ResourceReads": [], "PromptGets": [] })
}

/// The calls grouped by kind, in order.
pub(super) fn value(folded: &FoldedTrial, run_started: &str) -> Value {
    let mut out = empty();
    for (call, at) in folded.transcript.calls.iter().zip(&folded.made_at) {
        let kind = match &call.request {
            CallRequest::Tool { .. } => "ToolCalls",
            CallRequest::Resource { .. } => "ResourceReads",
            CallRequest::Prompt { .. } => "PromptGets",
        };
        if let Some(list) = out[kind].as_array_mut() {
            list.push(one(call, &timestamp(run_started, *at)));
        }
    }
    out
}

fn one(call: &Call, timestamp: &str) -> Value {
    let (name, value, params) = match &call.request {
        CallRequest::Tool { name, arguments } | CallRequest::Prompt { name, arguments } => {
            let mut params = json!({ "name": name });
            match arguments {
                Payload::Value(arguments) => params["arguments"] = arguments.clone(),
                Payload::Absent
                | Payload::Cut { .. }
                | Payload::Omitted { .. }
                | Payload::Unreadable { .. } => {}
            }
            ("name", name, params)
        }
        CallRequest::Resource { uri } => ("uri", uri, json!({ "uri": uri })),
    };
    let mut out = json!({
        "serverName": call.server,
        "timestamp": timestamp,
        "success": matches!(call.answer, CallOutcome::Result(_)),
        name: value,
        // Headers may contain credentials, so only the parameters of a request are written.
        "request": { "Session": null, "Params": params, "Extra": null },
        "tokens": tokens::of_call(call),
        "proctor": {
            "seq": call.seq,
            "durationMs": call.duration.map(super::millis),
        },
    });
    match &call.answer {
        CallOutcome::Result(Payload::Value(result)) => out["result"] = result.clone(),
        CallOutcome::Result(Payload::Absent) => {}
        CallOutcome::Result(payload) => {
            if let Err(unread) = payload.read() {
                out["proctor"]["unread"] = Value::from(format!("the result {unread}"));
            }
        }
        CallOutcome::Error { code, message } => out["error"] = json!(format!("{code}: {message}")),
        CallOutcome::None => out["error"] = json!("no answer"),
    }
    out
}

/// The time of a call, in microseconds after the start of the run. If that fails, the start itself.
pub(crate) fn timestamp(run_started: &str, at: u64) -> String {
    let micros = i64::try_from(at).unwrap_or(i64::MAX);
    let moment = run_started
        .parse::<Timestamp>()
        .and_then(|start| start.checked_add(SignedDuration::from_micros(micros)));
    moment.map_or_else(|_| run_started.to_owned(), |moment| moment.to_string())
}

//! The agent's calls and answer in mcpchecker's format. The calls are those that the tap recorded, not
//! those that the agent reports.

use proctor_record::fold::FoldedTrial;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use serde_json::{Value, json};

/// The object of the result file. `why` is the reason if the agent gave no answer.
pub(super) fn value(
    folded: Option<&FoldedTrial>,
    tokens: Option<Value>,
    why: Option<String>,
) -> Value {
    let calls = folded.map_or(&[][..], |folded| &folded.transcript.calls);
    let answer = folded.and_then(|folded| folded.work.answer.as_ref());
    let mut steps = Vec::new();
    let mut output_steps = Vec::new();
    let mut tool_calls = Vec::new();
    for call in calls {
        let entry = tool_call(call);
        let success = entry["status"] == "completed";
        steps.push(json!({ "type": "tool_call", "success": success, "message": entry["title"] }));
        output_steps.push(json!({ "type": "tool_call", "content": "", "toolCall": entry }));
        tool_calls.push(entry);
    }
    if let Some(answer) = answer {
        let text = answer.to_string();
        steps.push(json!({ "type": "message", "success": true, "message": text }));
        output_steps.push(json!({ "type": "message", "content": text }));
    }
    let mut details = json!({ "toolCalls": tool_calls, "outputSteps": output_steps });
    if let Some(tokens) = tokens {
        details["tokenEstimate"] = tokens;
    }
    json!({
        "Steps": steps,
        "Success": why.is_none(),
        "Error": why.unwrap_or_default(),
        "agentDetails": details,
    })
}

fn tool_call(call: &Call) -> Value {
    let (title, kind, arguments) = match &call.request {
        CallRequest::Tool { name, arguments } => (name, "other", Some(arguments)),
        CallRequest::Prompt { name, arguments } => (name, "fetch", Some(arguments)),
        CallRequest::Resource { uri } => (uri, "read", None),
    };
    let is_error = |value: &Value| value.get("isError") == Some(&Value::Bool(true));
    let (status, output) = match &call.answer {
        CallOutcome::Result(Payload::Value(result)) if is_error(result) => {
            ("failed", result.clone())
        }
        CallOutcome::Result(Payload::Value(result)) => ("completed", result.clone()),
        CallOutcome::Result(_) => ("completed", Value::Null),
        CallOutcome::Error { code, message } => {
            ("failed", json!({ "code": code, "message": message }))
        }
        CallOutcome::None => ("failed", Value::Null),
    };
    let input = match arguments {
        Some(Payload::Value(arguments)) => arguments.clone(),
        Some(_) => Value::Null,
        None => json!({ "uri": title }),
    };
    json!({ "title": title, "kind": kind, "status": status, "rawInput": input, "rawOutput": output })
}

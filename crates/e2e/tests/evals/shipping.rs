//! Evals as servers write them, and a judge that finds what it is told to find.

use serde_json::{Value, json};

pub fn eval(id: &str, input: &Value, expected: &Value) -> Value {
    json!({"id": id, "name": id, "gradingType": expected["type"], "input": input, "expected": expected})
}

pub fn calls(tool: &str, arguments: &Value) -> Value {
    json!({"type": "execution", "toolName": tool, "arguments": arguments})
}

pub fn asks(level: &str, text: &str) -> Value {
    json!({"type": level, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
}

pub fn content(content: &str) -> Value {
    let content: Value = serde_json::from_str(content).unwrap();
    json!({"type": "exact-match", "content": content})
}

pub fn call(tool: Option<&str>, arguments: &str) -> Value {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let mut expected = json!({"type": "exact-match", "arguments": arguments});
    if let Some(tool) = tool {
        expected["toolName"] = tool.into();
    }
    expected
}

pub fn rubric(text: &str) -> Value {
    json!({"type": "llm-as-judge", "rubric": text})
}

/// A judge that finds what the rubric says it must find.
pub const JUDGE: &str = "
  - when: {user: 'it fails'}
    reply: {calls: [{tool: verdict, arguments: {reason: It must not., evidence: [], verdict: fail}}]}
  - when: {user: 'there is \\[(.*?)\\]'}
    reply: {calls: [{tool: verdict, arguments: {reason: There it is., evidence: ['{match.1}'], verdict: pass}}]}
  - when: {user: 'it dodges'}
    reply: {text: Who knows.}
";

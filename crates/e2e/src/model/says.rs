//! Replies in the documented formats of the providers.

use serde_json::{Value, json};

use super::FixtureReply;

/// Chat Completions: a text, with its usage (10 in, 5 out).
pub fn openai(text: &str) -> FixtureReply {
    openai_message(
        &json!({"role": "assistant", "content": text, "refusal": null}),
        "stop",
    )
}

/// Chat Completions: calls, as (id, name, arguments as text).
pub fn openai_calls(calls: &[(&str, &str, &str)]) -> FixtureReply {
    let call = |(id, name, arguments): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls: Vec<Value> = calls.iter().map(call).collect();
    let message =
        json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": calls});
    openai_message(&message, "tool_calls")
}

/// Chat Completions: any message.
pub fn openai_message(message: &Value, finish_reason: &str) -> FixtureReply {
    let body = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_763_000_000,
        "model": "fixture-2026-11-15",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    });
    FixtureReply::json(200, &body)
}

/// Messages: a text, with its usage (10 in, of which 4 from the cache and 3 into it, and 5 out).
pub fn anthropic(text: &str) -> FixtureReply {
    anthropic_blocks(&json!([{"type": "text", "text": text}]), "end_turn")
}

/// Messages: any content blocks.
pub fn anthropic_blocks(content: &Value, stop_reason: &str) -> FixtureReply {
    let body = json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fixture",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 4,
            "cache_creation_input_tokens": 3,
            "output_tokens": 5,
        },
    });
    FixtureReply::json(200, &body)
}

/// Responses: a text, with its usage (10 in, 5 out).
pub fn responses(text: &str) -> FixtureReply {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let message = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]});
    responses_items(&json!([message]), "completed")
}

/// Responses: any output. An incomplete one has reached its limit.
pub fn responses_items(output: &Value, status: &str) -> FixtureReply {
    let why = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
    let body = json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1_763_000_000,
        "status": status,
        "error": null,
        "incomplete_details": why,
        "model": "fixture-2026-11-15",
        "output": output,
        "parallel_tool_calls": true,
        "store": false,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 15,
        },
    });
    FixtureReply::json(200, &body)
}

/// Gemini: a text, with its usage (10 in, 5 out).
pub fn gemini(text: &str) -> FixtureReply {
    gemini_parts(&json!([{"text": text}]), "STOP")
}

/// Gemini: any content parts.
pub fn gemini_parts(parts: &Value, finish_reason: &str) -> FixtureReply {
    let body = json!({
        "candidates": [{
            "content": {"role": "model", "parts": parts},
            "finishReason": finish_reason,
            "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 3,
            "totalTokenCount": 15,
        },
        "modelVersion": "fixture",
        "responseId": "r1",
    });
    FixtureReply::json(200, &body)
}

/// Returns an error in Google's format.
pub fn gemini_error(status: u16, word: &str, message: &str, details: &Value) -> FixtureReply {
    let error = json!({"code": status, "message": message, "status": word, "details": details});
    FixtureReply::json(status, &json!({"error": error}))
}

/// Returns an error in OpenAI's format.
pub fn openai_error(status: u16, code: &str, message: &str) -> FixtureReply {
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": null, "code": code});
    FixtureReply::json(status, &json!({"error": error}))
}

/// Returns an error in Anthropic's format.
pub fn anthropic_error(status: u16, kind: &str, message: &str) -> FixtureReply {
    let error = json!({"type": kind, "message": message});
    FixtureReply::json(
        status,
        &json!({"type": "error", "error": error, "request_id": "req_1"}),
    )
}

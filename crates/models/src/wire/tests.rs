//! Requests and replies as the vendors write them; generated ones are in `generated`.

mod generated;

use proctor_record::model::{
    Media, ModelMessage, ModelRequest, Reply, StopReason, ToolCall, Turn, Usage,
};
use serde_json::{Value, json};

use super::*;
use crate::turns::arguments_of_text;

const ALL: [WireFormat; 4] = [
    WireFormat::Chat,
    WireFormat::Responses,
    WireFormat::Messages,
    WireFormat::Gemini,
];

fn question_of() -> ParsedModelRequest {
    ParsedModelRequest {
        wants_usage: true,
        ..ParsedModelRequest::default()
    }
}

fn envelope(question: &ParsedModelRequest) -> Envelope<'_> {
    Envelope {
        id: "7",
        model: "m",
        created: 1,
        question,
    }
}

#[test]
fn a_tool_in_a_namespace_is_called_by_both_names() {
    let body = json!({"model": "m", "input": "hi", "tools": [
        {"type": "namespace", "name": "mcp__ev", "tools": [
            {"type": "function", "name": "get_sum", "parameters": {"type": "object"}},
        ]},
        {"type": "function", "name": "shell", "parameters": {}},
        {"type": "web_search"},
    ]});
    let question = question(WireFormat::Responses, &body).unwrap();
    let names: Vec<&str> = question
        .request
        .tools
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(names, ["mcp__ev__get_sum", "shell"]);
    let said = Reply {
        turn: Turn {
            calls: vec![ToolCall {
                id: "c".to_owned(),
                name: "mcp__ev__get_sum".to_owned(),
                arguments: arguments_of_text("{}"),
            }],
            ..Turn::default()
        },
        stop: StopReason::Calls,
        usage: Usage::default(),
        raw: None,
    };
    let body = render(WireFormat::Responses, &said, &envelope(&question));
    assert_eq!(body["output"][0]["name"], "get_sum");
    assert_eq!(body["output"][0]["namespace"], "mcp__ev");
    let read = reply(WireFormat::Responses, &body, &question.request).unwrap();
    assert_eq!(read.turn.calls[0].name, "mcp__ev__get_sum");
}

/// The form that Codex uses with models that it knows.
#[test]
fn tools_in_the_input_are_read() {
    let body = json!({"model": "m", "input": [
        {"type": "additional_tools", "role": "developer", "tools": [
            {"type": "namespace", "name": "functions", "tools": [
                {"type": "custom", "name": "exec", "format": {"type": "grammar"}},
                {"type": "function", "name": "wait", "parameters": {}},
            ]},
            {"type": "custom", "name": "apply"},
        ]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "tools.echo()"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "hello"},
    ]});
    let question = question(WireFormat::Responses, &body).unwrap();
    let tools = question.request.tools.iter();
    let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["functions__exec", "functions__wait", "apply"]);
    assert!(!is_side_call(&question.request));
    assert_eq!(proctor_core::replay::results(&question.request), 1);
    let body = json!({"status": "completed", "output": [
        {"type": "custom_tool_call", "call_id": "d", "name": "exec", "input": "text(1)"},
    ]});
    let read = reply(WireFormat::Responses, &body, &question.request).unwrap();
    assert_eq!(read.stop, StopReason::Calls);
    let expected = arguments_of_text(r#"{"input": "text(1)"}"#);
    assert_eq!(read.turn.calls[0].arguments, expected);
}

#[test]
fn a_malformed_call_of_gemini_is_a_malformed_reply() {
    let said = Reply {
        turn: Turn {
            calls: vec![ToolCall {
                id: "c".to_owned(),
                name: "add".to_owned(),
                arguments: arguments_of_text("{\"a\": "),
            }],
            ..Turn::default()
        },
        stop: StopReason::Calls,
        usage: Usage::default(),
        raw: None,
    };
    let question = ParsedModelRequest::default();
    let body = render(WireFormat::Gemini, &said, &envelope(&question));
    let error = reply(WireFormat::Gemini, &body, &ModelRequest::default()).unwrap_err();
    assert!(
        error.to_string().contains("MALFORMED_FUNCTION_CALL"),
        "{error}"
    );
}

/// The same conversation in all formats: two calls at once, a picture, and a text afterwards.
fn conversations() -> [(WireFormat, Value); 4] {
    [
        (WireFormat::Chat, chat_conversation()),
        (WireFormat::Responses, responses_conversation()),
        (WireFormat::Messages, messages_conversation()),
        (WireFormat::Gemini, gemini_conversation()),
    ]
}

fn chat_conversation() -> Value {
    json!({"model": "m", "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "assistant", "content": "ok", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "sub", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "tool", "tool_call_id": "c2", "content": "error: no"},
        {"role": "user", "content": "and?"},
    ]})
}

fn responses_conversation() -> Value {
    json!({"model": "m", "instructions": "be brief", "input": [
        {"role": "user", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        ]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}"},
        {"type": "function_call", "call_id": "c2", "name": "sub", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
        {"type": "function_call_output", "call_id": "c2", "output": [
            {"type": "input_text", "text": "error: no"},
        ]},
        {"type": "message", "role": "user", "content": "and?"},
    ]})
}

fn messages_conversation() -> Value {
    json!({"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "be brief"}], "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "ok"},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "sub", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "2"}]},
            {"type": "tool_result", "tool_use_id": "c2", "content": "error: no", "is_error": true},
            {"type": "text", "text": "and?"},
        ]},
    ]})
}

fn gemini_conversation() -> Value {
    json!({"systemInstruction": {"parts": [{"text": "be brief"}]}, "contents": [
        {"role": "user", "parts": [
            {"text": "look"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        ]},
        {"role": "model", "parts": [
            {"text": "ok"},
            {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}},
            {"functionCall": {"id": "c2", "name": "sub", "args": {}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "c1", "name": "add", "response": {"output": "2"}}},
            {"functionResponse": {"name": "sub", "response": {"error": "error: no"}}},
            {"text": "and?"},
        ]},
    ]})
}

#[test]
fn a_conversation_is_the_same_in_every_format() {
    let told = conversations().map(|(format, body)| question(format, &body).unwrap().request);
    for request in &told {
        assert_eq!(request.system.as_deref(), Some("be brief"));
        let ModelMessage::Results(results) = &request.messages[3] else {
            panic!("{request:?}");
        };
        let told: Vec<_> = results
            .iter()
            .map(|r| (&*r.id, &*r.name, &*r.text, r.is_error))
            .collect();
        assert_eq!(
            told,
            [("c1", "add", "2", false), ("c2", "sub", "error: no", true)]
        );
        let media = Media {
            mime_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        };
        assert_eq!(request.messages[1], ModelMessage::Media(media));
        assert_eq!(request.messages[4], ModelMessage::User("and?".to_owned()));
        assert_eq!(request.messages, told_as_chat().messages);
    }
}

fn told_as_chat() -> ModelRequest {
    let (format, body) = &conversations()[0];
    question(*format, body).expect("it is understood").request
}

#[test]
fn references_to_stored_conversations_are_rejected() {
    for body in [
        json!({"model": "m", "input": "hi", "previous_response_id": "resp_1"}),
        json!({"model": "m", "input": [{"type": "item_reference", "id": "x"}]}),
        json!({"model": "m"}),
        json!({"model": "m", "input": [{"role": "stranger", "content": "hi"}]}),
    ] {
        assert!(question(WireFormat::Responses, &body).is_err(), "{body}");
    }
}

#[test]
fn side_calls_are_recognized() {
    let tool = json!({"name": "add", "input_schema": {}});
    for (said, tools, expected) in [
        ("make a title", json!([]), true),
        ("add 1 and 1", json!([tool]), false),
        ("[SUGGESTION MODE: what next?]", json!([tool]), true),
    ] {
        let body = json!({"messages": [{"role": "user", "content": said}], "tools": tools});
        let request = question(WireFormat::Messages, &body).unwrap().request;
        assert_eq!(is_side_call(&request), expected, "{said}");
    }
}

#[test]
fn an_incomplete_stream_has_no_output_count() {
    let start = json!({"type": "message_start", "message": {"content": [], "stop_reason": null,
        "usage": {"input_tokens": 7, "output_tokens": 1}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 40}});
    for (events, output) in [(vec![&start], None), (vec![&start, &end], Some(40))] {
        let mut gathered = StreamedReply::new(WireFormat::Messages);
        for event in events {
            gathered.take(format!("data: {event}\n\n").as_bytes());
        }
        let read = reply(
            WireFormat::Messages,
            &gathered.end(),
            &ModelRequest::default(),
        )
        .unwrap();
        assert_eq!((read.usage.input, read.usage.output), (Some(7), output));
    }
}

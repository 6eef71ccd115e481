//! What agents ask besides a conversation: lists of models, counts of tokens, paths that are unknown.

use std::io::{Read, Write};

use proctor_models::serve::ServedReply;
use serde_json::{Value, json};

use super::SCRIPT;
use super::adapters::serve;

/// One exchange over HTTP; gives all that came back.
fn exchange(address: &str, head: &str, body: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\ncontent-length: {length}"
    );
    stream
        .write_all(format!("{head}\r\n\r\n{body}").as_bytes())
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[tokio::test]
async fn what_agents_ask_besides_is_answered() {
    let (server, told) = serve(SCRIPT).await;
    let address = server.address().to_string();
    let asked = tokio::task::spawn_blocking(move || {
        let count = r#"{"messages": [{"role": "user", "content": "four letters here"}]}"#;
        let gemini = r#"{"generateContentRequest": {"contents": [{"parts": [{"text": "hi"}]}]}}"#;
        [
            ("GET /v1/models", "", "\"scripted-1\""),
            ("GET /v1beta/models", "", "\"models/scripted-1\""),
            ("GET /v1/models/claude-x", "", "\"claude-x\""),
            (
                "POST /v1/messages/count_tokens",
                count,
                "{\"input_tokens\":5}",
            ),
            (
                "POST /v1beta/models/m:countTokens",
                gemini,
                "{\"totalTokens\":1}",
            ),
            ("HEAD /", "", "200 OK"),
            (
                "POST /v1/embeddings",
                "{}",
                "unknown path: `POST /v1/embeddings`",
            ),
            (
                "POST /v1/messages",
                "{",
                "\"type\":\"invalid_request_error\"",
            ),
            (
                "POST /v1beta/models/m:generateContent",
                "{}",
                "\"status\":\"INVALID_ARGUMENT\"",
            ),
            (
                "POST /v1/responses",
                r#"{"input": "x", "previous_response_id": "r"}"#,
                "send the whole conversation",
            ),
        ]
        .map(|(head, body, expected)| (head, exchange(&address, head, body), expected))
    });
    for (head, said, expected) in asked.await.unwrap() {
        assert!(said.contains(expected), "{head}: {said}");
    }
    let refused = told.lock().unwrap();
    let refused = refused
        .iter()
        .filter(|one| matches!(one.said, ServedReply::Nothing(_)));
    assert_eq!(refused.count(), 4);
}

#[tokio::test]
async fn a_stream_of_gemini_can_be_one_list() {
    let (server, _) = serve("kind: Script\nrules:\n- reply: {text: hello there}\n").await;
    let address = server.address().to_string();
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}]}).to_string();
    let asked = tokio::task::spawn_blocking(move || {
        exchange(
            &address,
            "POST /v1beta/models/m:streamGenerateContent",
            &body,
        )
    });
    let said = asked.await.unwrap();
    let (_, list) = said.split_once("\r\n\r\n").unwrap();
    let list: Vec<Value> = serde_json::from_str(list).unwrap();
    let text: String = list
        .iter()
        .filter_map(|one| one.pointer("/candidates/0/content/parts/0/text")?.as_str())
        .collect();
    assert_eq!(text, "hello there");
}

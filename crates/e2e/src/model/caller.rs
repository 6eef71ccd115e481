//! A model that calls one tool and then says what came of it, whichever agent asks, streamed or whole.
//!
//! Its main type is [`Caller`]. Which step it is comes from the number of tool results in the question, not
//! from a counter: agents ask besides, for titles and guesses. A tool is found by how its name ends, since
//! agents put something before it and turn `-` into `_`.

use serde_json::{Value, json};

use super::says::{anthropic_blocks, openai_message};
use super::{Answer, FixtureModel, Question};

/// What is called.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The tool, as its server names it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

impl Caller {
    /// Starts the model.
    pub fn start(self) -> FixtureModel {
        FixtureModel::thinking(move |question| {
            let asked = &question.body;
            let is_stream = asked["stream"] == true;
            if question.path.starts_with("/v1/messages") {
                anthropic(
                    self.think(asked, anthropic_tools, anthropic_results),
                    is_stream,
                )
            } else {
                openai(self.think(asked, openai_tools, openai_results), is_stream)
            }
        })
    }

    fn think(
        &self,
        asked: &Value,
        tools: fn(&Value) -> Vec<String>,
        results: fn(&Value) -> Vec<String>,
    ) -> Thought {
        if let Some(result) = results(asked).last() {
            return Thought::Text(format!("The tool said: {result}"));
        }
        let wanted = folded(&self.tool);
        match tools(asked)
            .into_iter()
            .find(|name| folded(name).ends_with(&wanted))
        {
            Some(name) => Thought::Call(name, self.arguments.clone()),
            None => Thought::Text("A title".to_owned()),
        }
    }
}

/// The questions that were more than asides: those that offered tools.
pub fn offers(questions: &[Question]) -> impl Iterator<Item = &Question> {
    let has_tools = |question: &&Question| {
        question.body["tools"]
            .as_array()
            .is_some_and(|t| !t.is_empty())
    };
    questions.iter().filter(has_tools)
}

enum Thought {
    Text(String),
    Call(String, Value),
}

fn folded(name: &str) -> String {
    name.replace('-', "_")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn names<'a>(tools: impl Iterator<Item = &'a Value>) -> Vec<String> {
    tools
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

fn anthropic_tools(asked: &Value) -> Vec<String> {
    names(list(&asked["tools"]).map(|tool| &tool["name"]))
}

fn openai_tools(asked: &Value) -> Vec<String> {
    names(list(&asked["tools"]).map(|tool| &tool["function"]["name"]))
}

fn anthropic_results(asked: &Value) -> Vec<String> {
    let blocks = list(&asked["messages"]).flat_map(|message| list(&message["content"]));
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|result| text(&result["content"])).collect()
}

fn openai_results(asked: &Value) -> Vec<String> {
    let results = list(&asked["messages"]).filter(|message| message["role"] == "tool");
    results.map(|result| text(&result["content"])).collect()
}

/// The first text of a content, which may be a text itself.
fn text(content: &Value) -> String {
    let first = list(content).find_map(|block| block["text"].as_str());
    first.or(content.as_str()).unwrap_or_default().to_owned()
}

fn openai(thought: Thought, is_stream: bool) -> Answer {
    let (message, reason) = match thought {
        Thought::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Thought::Call(name, arguments) => {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            let call =
                json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            (
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                "tool_calls",
            )
        }
    };
    if !is_stream {
        return openai_message(&message, reason);
    }
    let chunk = |delta: &Value, reason: Option<&str>, usage: &Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_763_000_000,
            "model": "fixture", "choices": [choice], "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let body = [
        chunk(&message, None, &Value::Null),
        chunk(&json!({}), Some(reason), &usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    Answer::text(200, &body.concat())
}

fn anthropic(thought: Thought, is_stream: bool) -> Answer {
    let (block, begun, delta, reason) = match thought {
        Thought::Text(text) => (
            json!({"type": "text", "text": text}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        Thought::Call(name, input) => {
            let block = |input: &Value| json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input});
            let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
            (block(&input), block(&json!({})), delta, "tool_use")
        }
    };
    if !is_stream {
        return anthropic_blocks(&json!([block]), reason);
    }
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "fixture", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1},
    });
    let stop = json!({"stop_reason": reason, "stop_sequence": null});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": begun}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    Answer::text(200, &events.iter().map(event).collect::<String>())
}

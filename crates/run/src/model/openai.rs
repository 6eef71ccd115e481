//! OpenAI's Chat Completions, and every server that speaks it.
//!
//! Its main type is [`OpenAi`].

use proctor_core::model::{
    Message, Reply, Request, Stop, Thinking, ToolCall, ToolResult, Turn, Usage,
};
use serde_json::{Map, Value, json};

use super::ModelError;
use super::failure;
use super::http::{Answer, Endpoint};
use super::quirks::{Quirks, Taken};
use super::schema;
use super::turns::{
    Ids, arguments_of, arguments_of_text, legal_name, said_back, stopped, told_to_call,
};

/// In which a server says what the model thought, and wants it back.
const THINKING: [&str; 3] = ["reasoning_details", "reasoning_content", "reasoning"];

/// A model behind Chat Completions.
#[derive(Debug)]
pub struct OpenAi {
    name: String,
    id: String,
    endpoint: Endpoint,
    quirks: Quirks,
    /// Whether it is OpenAI itself, which has a newer name for the limit of a reply.
    is_original: bool,
}

impl OpenAi {
    pub(super) fn new(id: &str, endpoint: Endpoint, is_original: bool) -> Self {
        Self {
            name: format!("openai:{id}"),
            id: id.to_owned(),
            endpoint,
            quirks: Quirks::default(),
            is_original,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn ask(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut left = Quirks::SORTS;
        loop {
            let taken = self.quirks.taken(request);
            let asked = self.endpoint.post(&self.body(request, taken)).await;
            match asked {
                Err(error) if left > 0 && self.quirks.learn(&error, request, taken) => left -= 1,
                Err(error) => return Err(error),
                Ok(answer) => return self.reply(answer, request),
            }
        }
    }

    /// What is sent.
    pub(super) fn body(&self, request: &Request, taken: Taken) -> Value {
        let mut body = json!({"model": self.id, "messages": messages(request, taken)});
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let (Some(name), true) = (&request.must_call, taken.force) {
            body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
        }
        if let Some(limit) = request.max_tokens {
            let key = if self.is_original == taken.other_limit {
                "max_tokens"
            } else {
                "max_completion_tokens"
            };
            body[key] = limit.min(taken.longest.unwrap_or(limit)).into();
        }
        if let Some(temperature) = taken.temperature {
            body["temperature"] = json!(temperature);
        }
        body
    }

    fn reply(&self, answer: Answer, request: &Request) -> Result<Reply, ModelError> {
        let shown = |text: &str| self.endpoint.shown(text);
        let malformed = |detail: String| ModelError::Malformed { detail };
        let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
            let said = shown(&String::from_utf8_lossy(&answer.body));
            return Err(malformed(format!("not JSON: {said}")));
        };
        let Some(choice) = body
            .pointer("/choices/0")
            .filter(|c| c["message"].is_object())
        else {
            return Err(match body.get("error") {
                Some(error) if !error.is_null() => failure::in_success(error, shown),
                _ => malformed(format!("it has no message: {}", shown(&body.to_string()))),
            });
        };
        let turn = turn(&choice["message"], request);
        let stop = match choice["message"]["refusal"].as_str() {
            Some(refusal) if !refusal.is_empty() => Stop::Refusal,
            _ => stopped(stop(choice["finish_reason"].as_str()), &turn.calls),
        };
        Ok(Reply {
            turn,
            stop,
            usage: usage(&body["usage"]),
            raw: Some(answer.raw),
        })
    }
}

fn messages(request: &Request, taken: Taken) -> Vec<Value> {
    let mut all = Vec::new();
    let system = match (&request.must_call, taken.force) {
        (Some(tool), false) => Some(told_to_call(request.system.as_deref(), tool)),
        _ => request.system.clone(),
    };
    all.extend(system.map(|system| json!({"role": "system", "content": system})));
    for message in &request.messages {
        match message {
            Message::User(text) => all.push(json!({"role": "user", "content": text})),
            Message::Assistant(turn) => all.push(assistant(turn)),
            Message::Results(results) => all.extend(results.iter().map(result)),
        }
    }
    all
}

fn assistant(turn: &Turn) -> Value {
    let mut message = json!({"role": "assistant", "content": turn.text});
    if !turn.calls.is_empty() {
        if turn.text.is_empty() {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = turn.calls.iter().map(call).collect();
    }
    for (key, value) in turn
        .thinking
        .iter()
        .filter_map(|t| t.raw.as_ref()?.as_object())
        .flatten()
    {
        if THINKING.contains(&key.as_str()) {
            message[key] = value.clone();
        }
    }
    message
}

fn call(call: &ToolCall) -> Value {
    let arguments = said_back(&call.arguments).to_string();
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": legal_name(&call.name), "arguments": arguments},
    })
}

/// Here only the text can say that a call failed.
fn result(result: &ToolResult) -> Value {
    let says_so = result.text.trim_start().to_lowercase().starts_with("error");
    let content = if result.is_error && !says_so {
        format!("error: {}", result.text)
    } else {
        result.text.clone()
    };
    json!({"role": "tool", "tool_call_id": result.id, "content": content})
}

fn tool(tool: &proctor_core::model::Tool) -> Value {
    let fitted = schema::fit(tool);
    let mut function = json!({"name": tool.name, "parameters": fitted.schema});
    if let Some(description) = fitted.description {
        function["description"] = description.into();
    }
    json!({"type": "function", "function": function})
}

fn turn(message: &Value, request: &Request) -> Turn {
    let mut ids = Ids::of(request);
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls = calls.map(|call| ToolCall {
        id: ids.unique(call["id"].as_str().unwrap_or_default()),
        name: call["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        arguments: match &call["function"]["arguments"] {
            Value::String(text) => arguments_of_text(text),
            // Some servers send the object itself.
            other => arguments_of(other.clone(), &other.to_string()),
        },
    });
    let text = text(&message["content"]);
    let refusal = message["refusal"].as_str().unwrap_or_default();
    Turn {
        calls: calls.collect(),
        text: if text.is_empty() {
            refusal.to_owned()
        } else {
            text
        },
        thinking: thinking(message).into_iter().collect(),
    }
}

/// Text, or a list of parts with text among them.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn thinking(message: &Value) -> Option<Thinking> {
    let said: Map<String, Value> = THINKING
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), message.get(key)?.clone())))
        .filter(|(_, value)| !value.is_null() && value.as_str() != Some(""))
        .collect();
    let text = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| said.get(*key)?.as_str());
    let text = text.unwrap_or_default().to_owned();
    (!said.is_empty()).then_some(Thinking {
        text,
        raw: Some(Value::Object(said)),
    })
}

fn stop(reason: Option<&str>) -> Stop {
    match reason {
        Some("stop") => Stop::Done,
        Some("tool_calls" | "function_call") => Stop::Calls,
        Some("length") => Stop::Length,
        Some("content_filter") => Stop::Refusal,
        Some(other) => Stop::Other(other.to_owned()),
        None => Stop::Other("no reason given".to_owned()),
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    Usage {
        input: number("/prompt_tokens"),
        output: number("/completion_tokens"),
        cached: number("/prompt_tokens_details/cached_tokens"),
        cache_written: number("/prompt_tokens_details/cache_write_tokens"),
        reasoning: number("/completion_tokens_details/reasoning_tokens"),
    }
}

//! OpenAI's Chat Completions API, and every compatible endpoint.
//!
//! The main type is [`OpenAi`].

use proctor_core::provider::Provider;
use proctor_record::model::{Media, ModelMessage, ModelRequest, Reply, ToolCall, ToolResult, Turn};
use serde_json::{Value, json};

use super::ModelError;
use super::http::ModelEndpoint;
use super::media;
use super::pace::ProviderAccount;
use super::quirks::{AcceptedFeatures, Quirks};
use super::schema;
use super::turns::{echoed, error_text, instruction_to_call, legal_name};
use super::wire::{THINKING, WireFormat, media_url};

/// A model behind the Chat Completions API.
#[derive(Debug)]
pub struct OpenAi {
    name: String,
    id: String,
    endpoint: ModelEndpoint,
    quirks: Quirks,
    /// Whether this is OpenAI itself, which has a newer name for the limit of the reply's length.
    is_original: bool,
}

impl OpenAi {
    pub(super) fn new(id: &str, endpoint: ModelEndpoint, is_original: bool) -> Self {
        Self {
            name: Provider::OpenAi.model(id),
            id: id.to_owned(),
            endpoint,
            quirks: Quirks::default(),
            is_original,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn account(&self) -> ProviderAccount {
        self.endpoint.account()
    }

    pub(super) async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        media::check(WireFormat::Chat, request)?;
        let body = |request: &ModelRequest, features| self.body(request, features);
        let answer = self.quirks.ask(&self.endpoint, request, body).await?;
        answer.read(WireFormat::Chat, request, &self.endpoint)
    }

    fn body(&self, request: &ModelRequest, features: AcceptedFeatures) -> Value {
        let mut body = json!({"model": self.id, "messages": messages(request, features)});
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let (Some(name), true) = (&request.must_call, features.force) {
            body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
        }
        if let Some(limit) = request.max_tokens {
            let key = if self.is_original == features.other_limit {
                "max_tokens"
            } else {
                "max_completion_tokens"
            };
            body[key] = limit.min(features.longest.unwrap_or(limit)).into();
        }
        if let Some(temperature) = features.temperature {
            body["temperature"] = json!(temperature);
        }
        body
    }
}

fn messages(request: &ModelRequest, features: AcceptedFeatures) -> Vec<Value> {
    let mut all = Vec::new();
    let system = match (&request.must_call, features.force) {
        (Some(tool), false) => Some(instruction_to_call(request.system.as_deref(), tool)),
        _ => request.system.clone(),
    };
    all.extend(system.map(|system| json!({"role": "system", "content": system})));
    for message in &request.messages {
        match message {
            ModelMessage::User(text) => all.push(json!({"role": "user", "content": text})),
            ModelMessage::Media(media) => all.push(shown(media)),
            ModelMessage::Assistant(turn) => all.push(assistant(turn)),
            ModelMessage::Results(results) => all.extend(results.iter().map(result)),
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
    let arguments = echoed(&call.arguments).to_string();
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": legal_name(&call.name), "arguments": arguments},
    })
}

/// An image or a sound of a supported type.
fn shown(media: &Media) -> Value {
    let part = match media::sound(&media.mime_type) {
        Some(format) => {
            let sound = json!({"data": media.data, "format": format});
            json!({"type": "input_audio", "input_audio": sound})
        }
        None => json!({"type": "image_url", "image_url": {"url": media_url(media)}}),
    };
    json!({"role": "user", "content": [part]})
}

fn result(result: &ToolResult) -> Value {
    let (text, _) = media::of_result(WireFormat::Chat, result);
    let content = error_text(&text, result.is_error);
    json!({"role": "tool", "tool_call_id": result.id, "content": content})
}

fn tool(tool: &proctor_record::model::Tool) -> Value {
    let fitted = schema::fit(tool);
    let mut function = json!({"name": tool.name, "parameters": fitted.schema});
    if let Some(description) = fitted.description {
        function["description"] = description.into();
    }
    json!({"type": "function", "function": function})
}

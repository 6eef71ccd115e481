//! OpenAI's Responses API.
//!
//! The main type is [`OpenAiResponses`]. The provider stores nothing: each request holds the whole
//! conversation, with the model's reasoning in encrypted form.

use proctor_core::provider::Provider;
use proctor_record::model::{ModelMessage, ModelRequest, Reply, ToolCall, ToolResult, Turn};
use serde_json::{Value, json};

use super::ModelError;
use super::http::ModelEndpoint;
use super::media;
use super::pace::ProviderAccount;
use super::quirks::{AcceptedFeatures, Quirks};
use super::schema;
use super::turns::{echoed, error_text, instruction_to_call, legal_name};
use super::wire::{WireFormat, media_url};

/// A model behind the Responses API.
#[derive(Debug)]
pub struct OpenAiResponses {
    name: String,
    id: String,
    endpoint: ModelEndpoint,
    quirks: Quirks,
}

impl OpenAiResponses {
    pub(super) fn new(id: &str, endpoint: ModelEndpoint) -> Self {
        Self {
            name: Provider::OpenAiResponses.model(id),
            id: id.to_owned(),
            endpoint,
            quirks: Quirks::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn account(&self) -> ProviderAccount {
        self.endpoint.account()
    }

    pub(super) async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        media::check(WireFormat::Responses, request)?;
        let body = |request: &ModelRequest, features| self.body(request, features);
        let answer = self.quirks.ask(&self.endpoint, request, body).await?;
        answer.read(WireFormat::Responses, request, &self.endpoint)
    }

    fn body(&self, request: &ModelRequest, features: AcceptedFeatures) -> Value {
        let mut body = json!({"model": self.id, "input": input(request), "store": false});
        if features.thoughts {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        let system = match (&request.must_call, features.force) {
            (Some(tool), false) => Some(instruction_to_call(request.system.as_deref(), tool)),
            _ => request.system.clone(),
        };
        if let Some(system) = system {
            body["instructions"] = system.into();
        }
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let (Some(name), true) = (&request.must_call, features.force) {
            body["tool_choice"] = json!({"type": "function", "name": name});
        }
        if let Some(limit) = request.max_tokens {
            body["max_output_tokens"] = limit.min(features.longest.unwrap_or(limit)).into();
        }
        if let Some(temperature) = features.temperature {
            body["temperature"] = json!(temperature);
        }
        body
    }
}

fn input(request: &ModelRequest) -> Vec<Value> {
    let mut all = Vec::new();
    for message in &request.messages {
        match message {
            ModelMessage::User(text) => all.push(json!({"role": "user", "content": text})),
            ModelMessage::Media(media) => {
                let picture = json!({
                    "type": "input_image",
                    "image_url": media_url(media),
                    "detail": "auto",
                });
                all.push(json!({"role": "user", "content": [picture]}));
            }
            ModelMessage::Assistant(turn) => all.extend(items(turn)),
            ModelMessage::Results(results) => all.extend(results.iter().map(result)),
        }
    }
    all
}

/// The items of a turn, in their original order if it is known.
fn items(turn: &Turn) -> Vec<Value> {
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let Some(all) = whole(turn) else {
        let mut items: Vec<Value> = thoughts(turn).cloned().collect();
        if !turn.text.is_empty() {
            items.push(said(&turn.text));
        }
        items.extend(turn.calls.iter().map(call));
        return items;
    };
    let mut calls = turn.calls.iter();
    let item = |item: &Value| match item["type"].as_str() {
        Some("reasoning") => can_go_back(item).then(|| item.clone()),
        Some("function_call") => calls.next().map(call),
        Some("message") => {
            let parts = item["content"].as_array().into_iter().flatten();
            let text: String = parts.filter_map(|p| p["text"].as_str()).collect();
            (!text.is_empty()).then(|| said(&text))
        }
        _ => None,
    };
    all.iter().filter_map(item).collect()
}

/// All items of a turn, if reasoning was mixed with other items and the calls are unchanged.
fn whole(turn: &Turn) -> Option<&Vec<Value>> {
    let all = turn.thinking.first()?.raw.as_ref()?.as_array()?;
    let ids = all.iter().filter(|item| item["type"] == "function_call");
    let ids = ids.map(|item| item["call_id"].as_str().unwrap_or_default());
    ids.eq(turn.calls.iter().map(|call| call.id.as_str()))
        .then_some(all)
}

fn thoughts(turn: &Turn) -> impl Iterator<Item = &Value> {
    let raw = turn
        .thinking
        .iter()
        .filter_map(|thought| thought.raw.as_ref());
    raw.filter(|item| item["type"] == "reasoning" && can_go_back(item))
}

/// Only reasoning in encrypted form can be sent back, since the provider stores nothing.
fn can_go_back(item: &Value) -> bool {
    item["encrypted_content"].is_string()
}

fn call(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": legal_name(&call.name),
        "arguments": echoed(&call.arguments).to_string(),
    })
}

fn result(result: &ToolResult) -> Value {
    let (text, media) = media::of_result(WireFormat::Responses, result);
    let text = error_text(&text, result.is_error);
    let output = if media.is_empty() {
        Value::from(text)
    } else {
        let mut parts = vec![json!({"type": "input_text", "text": text})];
        parts.extend(
            media
                .into_iter()
                .map(|media| json!({"type": "input_image", "image_url": media_url(media)})),
        );
        Value::Array(parts)
    };
    json!({"type": "function_call_output", "call_id": result.id, "output": output})
}

fn tool(tool: &proctor_record::model::Tool) -> Value {
    let fitted = schema::fit(tool);
    // By default this API enforces strict schemas, which most are not.
    let mut function = json!({
        "type": "function",
        "name": tool.name,
        "parameters": fitted.schema,
        "strict": false,
    });
    if let Some(description) = fitted.description {
        function["description"] = description.into();
    }
    function
}

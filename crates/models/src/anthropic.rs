//! Anthropic's Messages API.
//!
//! The main type is [`Anthropic`].

use proctor_core::provider::Provider;
use proctor_record::model::{
    Arguments, Media, ModelMessage, ModelRequest, Reply, ToolCall, ToolResult, Turn,
};
use serde_json::{Value, json};

use super::ModelError;
use super::http::{ModelEndpoint, RawResponse};
use super::media;
use super::pace::ProviderAccount;
use super::quirks::{AcceptedFeatures, Quirks};
use super::schema::{self, RenamedArguments};
use super::turns::{echoed, instruction_to_call, legal_name};
use super::vertex;
use super::wire::WireFormat;

/// The API requires a limit. It includes the thinking, so it is not small.
const MAX_TOKENS: u64 = 16_384;

/// A model behind the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    name: String,
    id: String,
    endpoint: ModelEndpoint,
    /// Whether Google serves the model. Then the URL has the model, and the body the version of the API.
    is_on_vertex: bool,
    quirks: Quirks,
}

impl Anthropic {
    pub(super) fn new(id: &str, endpoint: ModelEndpoint) -> Self {
        Self {
            name: Provider::Anthropic.model(id),
            id: id.to_owned(),
            endpoint: endpoint.with_header("anthropic-version", "2023-06-01"),
            is_on_vertex: false,
            quirks: Quirks::default(),
        }
    }

    /// The endpoint's URL includes the model.
    pub(super) fn on_vertex(id: &str, endpoint: ModelEndpoint) -> Self {
        Self {
            name: Provider::Anthropic.model(id),
            id: id.to_owned(),
            endpoint,
            is_on_vertex: true,
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
        media::check(WireFormat::Messages, request)?;
        let body = |request: &ModelRequest, features| self.body(request, features);
        let answer = self.quirks.ask(&self.endpoint, request, body).await?;
        self.reply(answer, request)
    }

    fn body(&self, request: &ModelRequest, features: AcceptedFeatures) -> Value {
        let limit = request.max_tokens.unwrap_or(MAX_TOKENS);
        let mut body = if self.is_on_vertex {
            json!({"anthropic_version": vertex::ANTHROPIC_VERSION})
        } else {
            json!({"model": self.id})
        };
        body["max_tokens"] = limit.min(features.longest.unwrap_or(limit)).into();
        body["messages"] = request.messages.iter().filter_map(message).collect();
        let system = match (&request.must_call, features.force) {
            (Some(tool), false) => Some(instruction_to_call(request.system.as_deref(), tool)),
            _ => request.system.clone(),
        };
        if let Some(system) = system.filter(|system| !system.is_empty()) {
            body["system"] = system.into();
        }
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let (Some(name), true) = (&request.must_call, features.force) {
            body["tool_choice"] = json!({"type": "tool", "name": name});
        }
        if let Some(temperature) = features.temperature
            && has_temperature(&self.id)
        {
            body["temperature"] = json!(temperature);
        }
        body
    }

    fn reply(&self, answer: RawResponse, request: &ModelRequest) -> Result<Reply, ModelError> {
        let mut reply = answer.read(WireFormat::Messages, request, &self.endpoint)?;
        for call in &mut reply.turn.calls {
            own_names(call, request);
        }
        Ok(reply)
    }
}

/// Claude models have no temperature since the fifth generation, and neither have the API's own
/// types.
fn has_temperature(id: &str) -> bool {
    let Some(words) = id.strip_prefix("claude-") else {
        return true;
    };
    let generation = words.split('-').find_map(|word| word.parse::<u32>().ok());
    generation.is_none_or(|generation| generation < 5)
}

/// A message; `None` if it is empty, since the API rejects empty ones.
fn message(message: &ModelMessage) -> Option<Value> {
    match message {
        ModelMessage::User(text) => Some(json!({"role": "user", "content": text})),
        ModelMessage::Media(media) => Some(json!({"role": "user", "content": [picture(media)]})),
        ModelMessage::Assistant(turn) => {
            let blocks = blocks(turn);
            (!blocks.is_empty()).then(|| json!({"role": "assistant", "content": blocks}))
        }
        ModelMessage::Results(results) => {
            let blocks: Vec<Value> = results.iter().map(result).collect();
            (!blocks.is_empty()).then(|| json!({"role": "user", "content": blocks}))
        }
    }
}

fn result(result: &ToolResult) -> Value {
    let (text, media) = media::of_result(WireFormat::Messages, result);
    let text = if text.trim().is_empty() {
        "(nothing)"
    } else {
        text.as_str()
    };
    let content = if media.is_empty() {
        Value::from(text)
    } else {
        let mut blocks = vec![json!({"type": "text", "text": text})];
        blocks.extend(media.into_iter().map(picture));
        Value::Array(blocks)
    };
    json!({
        "type": "tool_result",
        "tool_use_id": result.id,
        "content": content,
        "is_error": result.is_error,
    })
}

fn picture(media: &Media) -> Value {
    let source = json!({"type": "base64", "media_type": media.mime_type, "data": media.data});
    json!({"type": "image", "source": source})
}

fn blocks(turn: &Turn) -> Vec<Value> {
    if let Some(all) = whole(turn) {
        return all.clone();
    }
    let is_block = |raw: &&Value| raw.get("type").is_some();
    let thinking = turn.thinking.iter().filter_map(|t| t.raw.as_ref());
    let mut blocks: Vec<Value> = thinking.filter(is_block).cloned().collect();
    if !turn.text.trim().is_empty() {
        blocks.push(json!({"type": "text", "text": turn.text}));
    }
    blocks.extend(turn.calls.iter().map(|call| {
        json!({
            "type": "tool_use",
            "id": call.id,
            "name": legal_name(&call.name),
            "input": echoed(&call.arguments),
        })
    }));
    blocks
}

/// The original blocks, if thinking was mixed with other blocks: the signature covers their order.
/// `None` if the calls have changed.
fn whole(turn: &Turn) -> Option<&Vec<Value>> {
    let all = turn.thinking.first()?.raw.as_ref()?.as_array()?;
    let ids = all.iter().filter(|block| block["type"] == "tool_use");
    let ids = ids.map(|block| block["id"].as_str().unwrap_or_default());
    ids.eq(turn.calls.iter().map(|call| call.id.as_str()))
        .then_some(all)
}

fn tool(tool: &proctor_record::model::Tool) -> Value {
    let mut fitted = schema::fit(tool);
    RenamedArguments::in_schema(&mut fitted.schema);
    let mut written = json!({"name": tool.name, "input_schema": fitted.schema});
    if let Some(description) = fitted.description {
        written["description"] = description.into();
    }
    written
}

/// Restores the server's names of a call's arguments.
fn own_names(call: &mut ToolCall, request: &ModelRequest) {
    let Some(tool) = request.tools.iter().find(|tool| call.name == tool.name) else {
        return;
    };
    if let Arguments::Object(arguments) = &mut call.arguments {
        let renamed = RenamedArguments::in_schema(&mut schema::fit(tool).schema);
        *arguments = renamed.back(std::mem::take(arguments));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_models_have_a_temperature() {
        for (id, expected) in [
            ("claude-3-5-haiku-20241022", true),
            ("claude-haiku-4-5", true),
            ("claude-opus-4-1-20250805", true),
            ("claude-opus-5", false),
            ("claude-sonnet-5-5", false),
            ("claude-fable-5-1", false),
            ("some-other-model-9", true),
        ] {
            assert_eq!(has_temperature(id), expected, "{id}");
        }
    }
}

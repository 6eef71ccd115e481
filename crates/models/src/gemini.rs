//! Google's Gemini API.
//!
//! The main type is [`Gemini`].

use proctor_core::provider::Provider;
use proctor_record::model::{
    Arguments, Media, ModelMessage, ModelRequest, Reply, ToolCall, ToolResult, Turn,
};
use serde_json::{Value, json};

use super::ModelError;
use super::http::ModelEndpoint;
use super::media;
use super::pace::ProviderAccount;
use super::quirks::{AcceptedFeatures, Quirks};
use super::schema;
use super::turns::{echoed, instruction_to_call, legal_name};
use super::wire::WireFormat;

/// A model behind the Gemini API.
#[derive(Debug)]
pub struct Gemini {
    name: String,
    endpoint: ModelEndpoint,
    quirks: Quirks,
}

impl Gemini {
    /// The endpoint's URL includes the model.
    pub(super) fn new(id: &str, endpoint: ModelEndpoint) -> Self {
        Self {
            name: Provider::Gemini.model(id),
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
        media::check(WireFormat::Gemini, request)?;
        let answer = self.quirks.ask(&self.endpoint, request, body).await?;
        answer.read(WireFormat::Gemini, request, &self.endpoint)
    }
}

fn body(request: &ModelRequest, features: AcceptedFeatures) -> Value {
    let mut body = json!({"contents": contents(&request.messages)});
    let system = match (&request.must_call, features.force) {
        (Some(tool), false) => Some(instruction_to_call(request.system.as_deref(), tool)),
        _ => request.system.clone(),
    };
    if let Some(system) = system.filter(|system| !system.is_empty()) {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    if let (Some(name), true) = (&request.must_call, features.force) {
        let config = json!({"mode": "ANY", "allowedFunctionNames": [name]});
        body["toolConfig"] = json!({"functionCallingConfig": config});
    }
    if let Some(limit) = request.max_tokens {
        let limit = limit.min(features.longest.unwrap_or(limit));
        body["generationConfig"]["maxOutputTokens"] = limit.into();
    }
    if let Some(temperature) = features.temperature {
        body["generationConfig"]["temperature"] = json!(temperature);
    }
    body
}

/// The conversation without empty turns, which the API rejects.
fn contents(messages: &[ModelMessage]) -> Vec<Value> {
    let mut contents = Vec::new();
    let mut latest: Option<&Turn> = None;
    for message in messages {
        let (role, parts) = match message {
            ModelMessage::User(text) => ("user", vec![json!({"text": text})]),
            ModelMessage::Media(media) => ("user", vec![inline(media)]),
            ModelMessage::Assistant(turn) => {
                latest = Some(turn);
                ("model", parts(turn))
            }
            ModelMessage::Results(results) => {
                let ids = latest.map(ids).unwrap_or_default();
                (
                    "user",
                    results.iter().flat_map(|r| result(r, &ids)).collect(),
                )
            }
        };
        if !parts.is_empty() {
            contents.push(json!({"role": role, "parts": parts}));
        }
    }
    contents
}

fn inline(media: &Media) -> Value {
    json!({"inlineData": {"mimeType": media.mime_type, "data": media.data}})
}

fn parts(turn: &Turn) -> Vec<Value> {
    if let Some(all) = whole(turn) {
        return all.clone();
    }
    let mut parts = Vec::new();
    if !turn.text.is_empty() {
        parts.push(json!({"text": turn.text}));
    }
    parts.extend(turn.calls.iter().map(|call| {
        let args = echoed(&call.arguments);
        json!({"functionCall": {"name": legal_name(&call.name), "args": args}})
    }));
    parts
}

/// The original parts with their signatures; `None` if the calls have changed.
fn whole(turn: &Turn) -> Option<&Vec<Value>> {
    let all = turn.thinking.first()?.raw.as_ref()?.as_array()?;
    let names = all
        .iter()
        .filter_map(|part| part["functionCall"]["name"].as_str());
    let is_sound = |call: &ToolCall| matches!(call.arguments, Arguments::Object(_));
    let are_same = names.eq(turn.calls.iter().map(|call| call.name.as_str()));
    (are_same && turn.calls.iter().all(is_sound)).then_some(all)
}

/// The provider's ids of calls, with ours.
fn ids(turn: &Turn) -> Vec<(&str, &str)> {
    let parts = whole(turn).into_iter().flatten();
    let given = parts
        .filter_map(|part| part.get("functionCall"))
        .map(|call| call["id"].as_str());
    let ours = turn.calls.iter().map(|call| call.id.as_str());
    ours.zip(given)
        .filter_map(|(ours, given)| Some((ours, given?)))
        .collect()
}

/// The result of a call; media are separate parts.
fn result(result: &ToolResult, ids: &[(&str, &str)]) -> Vec<Value> {
    let (text, media) = media::of_result(WireFormat::Gemini, result);
    let key = if result.is_error { "error" } else { "output" };
    let mut response = json!({"name": legal_name(&result.name), "response": {key: text}});
    if let Some((_, given)) = ids.iter().find(|(ours, _)| *ours == result.id) {
        response["id"] = (*given).into();
    }
    let mut parts = vec![json!({"functionResponse": response})];
    parts.extend(media.into_iter().map(inline));
    parts
}

fn tool(tool: &proctor_record::model::Tool) -> Value {
    let fitted = schema::fit_subset(tool);
    let mut declared = json!({"name": tool.name, "parametersJsonSchema": fitted.schema});
    if let Some(description) = fitted.description {
        declared["description"] = description.into();
    }
    declared
}

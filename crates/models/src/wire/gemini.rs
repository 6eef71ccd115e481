//! Google's Gemini format.
//!
//! Calls don't always have ids; results refer to calls by the tool's name.

mod reply;
mod stream;

use proctor_record::model::{Media, ModelRequest, Thinking, Tool, ToolCall, ToolResult};
use serde_json::{Value, json};

pub(super) use self::reply::{render, reply};
pub(super) use self::stream::{StreamAssembler, events};
use super::conversation::{ConversationBuilder, text_of};
use super::{FormatError, ParsedModelRequest};
use crate::turns::arguments_of;

/// Parses a request. The path has the model and whether to stream.
pub(super) fn question(body: &Value) -> Result<ParsedModelRequest, FormatError> {
    let contents = match &body["contents"] {
        Value::Array(contents) => contents.clone(),
        one @ Value::Object(_) => vec![one.clone()],
        _ => return Err(FormatError::odd("`contents` is not a list")),
    };
    let mut building = ConversationBuilder::default();
    building.system(&text_of(&body["systemInstruction"]["parts"]));
    let mut calls = CallTracker::default();
    for content in &contents {
        let role = content["role"].as_str().unwrap_or("user");
        if !["user", "model", "function"].contains(&role) {
            return Err(FormatError::odd(format!("unsupported role `{role}`")));
        }
        for part in content["parts"].as_array().into_iter().flatten() {
            calls.add_part(part, role == "model", &mut building);
        }
    }
    let config = &body["generationConfig"];
    let lists = body["tools"].as_array().into_iter().flatten();
    let declared = lists.flat_map(|list| {
        list["functionDeclarations"]
            .as_array()
            .into_iter()
            .flatten()
    });
    Ok(ParsedModelRequest {
        request: ModelRequest {
            system: building.system_text(),
            messages: building.messages,
            tools: declared.filter_map(tool).collect(),
            must_call: must_call(&body["toolConfig"]["functionCallingConfig"]),
            max_tokens: config["maxOutputTokens"].as_u64(),
            temperature: config["temperature"].as_f64(),
        },
        wants_usage: true,
        wants_json: wants_json(config),
        ..ParsedModelRequest::default()
    })
}

fn must_call(config: &Value) -> Option<String> {
    let names = config["allowedFunctionNames"].as_array()?;
    match (&config["mode"] == "ANY", &names[..]) {
        (true, [only]) => only.as_str().map(str::to_owned),
        _ => None,
    }
}

fn wants_json(config: &Value) -> Option<Value> {
    let schema = ["responseJsonSchema", "responseSchema"];
    let schema = schema.iter().find_map(|key| config.get(*key)).cloned();
    let is_json = config["responseMimeType"] == "application/json";
    schema.or_else(|| is_json.then(|| json!({})))
}

fn tool(tool: &Value) -> Option<Tool> {
    let schema = ["parametersJsonSchema", "parameters"];
    let schema = schema.iter().find_map(|key| tool.get(*key));
    Some(Tool {
        name: tool["name"].as_str()?.to_owned(),
        description: tool["description"].as_str().map(str::to_owned),
        schema: schema.cloned().unwrap_or_default(),
    })
}

/// The calls so far.
#[derive(Default)]
struct CallTracker {
    calls: usize,
    /// Calls without a result: id and tool.
    open: Vec<(String, String)>,
}

impl CallTracker {
    fn add_part(&mut self, part: &Value, is_model: bool, building: &mut ConversationBuilder) {
        if let Some(call) = part.get("functionCall") {
            self.calls += 1;
            let mut call = read_call(call);
            if call.id.is_empty() {
                call.id = format!("call_{}", self.calls);
            }
            self.open.push((call.id.clone(), call.name.clone()));
            building.turn().calls.push(call);
        } else if let Some(response) = part.get("functionResponse") {
            let result = self.result(response);
            building.result(result);
        } else if let Some(text) = part["text"].as_str() {
            match (is_model, part["thought"] == true) {
                (_, true) => building.turn().thinking.push(thought(part)),
                (true, false) => building.turn().text.push_str(text),
                (false, false) => building.user(text),
            }
        } else if let Some(media) = media(part) {
            building.media(media);
        }
    }

    fn result(&mut self, response: &Value) -> ToolResult {
        let name = response["name"].as_str().unwrap_or_default();
        let id = response["id"].as_str().unwrap_or_default();
        let is_it = |(open, tool): &(String, String)| {
            if id.is_empty() {
                tool == name
            } else {
                open == id
            }
        };
        let found = self
            .open
            .iter()
            .position(is_it)
            .map(|at| self.open.remove(at));
        let (text, is_error) = outcome(&response["response"]);
        let parts = response["parts"].as_array().into_iter().flatten();
        ToolResult {
            id: found.map_or_else(|| id.to_owned(), |(id, _)| id),
            name: name.to_owned(),
            text,
            is_error,
            media: parts.filter_map(media).collect(),
        }
    }
}

/// The text of a call's result and whether the call failed: from `output`, `result` or `error`,
/// from an MCP result, or from the agent's own text.
fn outcome(response: &Value) -> (String, bool) {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(content) = response["content"].as_array() {
        let is_error = response["isError"] == true;
        return (text_of(&Value::Array(content.clone())), is_error);
    }
    let found = |key: &str| response.get(key).filter(|value| !value.is_null());
    if let Some(error) = found("error") {
        return (written(error), true);
    }
    match found("output").or_else(|| found("result")) {
        Some(output) => (written(output), false),
        None => (written(response), false),
    }
}

fn media(part: &Value) -> Option<Media> {
    let data = part.get("inlineData")?;
    Some(Media {
        mime_type: data["mimeType"].as_str()?.to_owned(),
        data: data["data"].as_str()?.to_owned(),
    })
}

fn thought(part: &Value) -> Thinking {
    Thinking {
        text: part["text"].as_str().unwrap_or_default().to_owned(),
        raw: Some(part.clone()),
    }
}

fn read_call(call: &Value) -> ToolCall {
    let args = &call["args"];
    ToolCall {
        id: call["id"].as_str().unwrap_or_default().to_owned(),
        name: call["name"].as_str().unwrap_or_default().to_owned(),
        arguments: arguments_of(args.clone(), &args.to_string()),
    }
}

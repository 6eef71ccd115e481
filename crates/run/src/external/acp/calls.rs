//! The calls that an agent tells of, from their first mention to their end.
//!
//! Main types: [`AcpCalls`] and [`AcpCall`]. Each call becomes one claim.

use proctor_core::event::{AgentClaimed, Body, Claim};
use serde_json::Value;

use super::Dialect;

/// How many calls are remembered.
const MOST: usize = 10_000;

/// The longest explanation that is kept.
const LONGEST: usize = 2_000;

/// What is known of an agent's calls.
#[derive(Debug)]
pub(super) struct AcpCalls {
    dialect: Dialect,
    all: Vec<AcpCall>,
}

/// What is known of one call.
#[derive(Debug, Default)]
pub(super) struct AcpCall {
    /// What it is told apart by.
    pub(super) id: String,
    /// What people read. The first one: when a call has ended, some write something else.
    pub(super) title: String,
    /// The tool's name, where the agent says it beside the title.
    pub(super) tool: Option<String>,
    /// What sort of call it is.
    pub(super) kind: Option<String>,
    /// The arguments.
    pub(super) input: Option<Value>,
    /// It has been claimed.
    is_claimed: bool,
}

impl AcpCalls {
    pub(super) fn new(dialect: Dialect) -> Self {
        let all = Vec::new();
        Self { dialect, all }
    }

    /// Takes what is told of a call: that it is made, or what has become of it.
    pub(super) fn told(&mut self, told: &Value) -> Option<AgentClaimed> {
        let status = match told["status"].as_str() {
            Some("completed") => Some(Claim::Completed),
            Some("failed") => Some(Claim::Failed),
            _ => None,
        };
        let dialect = self.dialect;
        let call = self.update(told)?;
        let detail = match status? {
            Claim::Failed => detail(told),
            _ => None,
        };
        call.claim(dialect, status?, detail)
    }

    /// Takes a call that is to be allowed or not.
    pub(super) fn asked(&mut self, told: &Value) -> Option<&AcpCall> {
        self.update(told).map(|call| &*call)
    }

    /// Notes that a call was not allowed.
    pub(super) fn denied(&mut self, id: &str) -> Option<AgentClaimed> {
        let dialect = self.dialect;
        let call = self.all.iter_mut().find(|call| call.id == id)?;
        call.claim(dialect, Claim::Denied, None)
    }

    /// The calls of which the agent never said what came of them.
    pub(super) fn rest(&mut self) -> Vec<AgentClaimed> {
        let dialect = self.dialect;
        let all = self.all.iter_mut();
        all.filter_map(|call| call.claim(dialect, Claim::Unknown, None))
            .collect()
    }

    fn update(&mut self, told: &Value) -> Option<&mut AcpCall> {
        let id = told["toolCallId"].as_str()?;
        let at = match self.all.iter().rposition(|call| call.id == id) {
            Some(at) => at,
            None if self.all.len() == MOST => return None,
            None => {
                self.all.push(AcpCall {
                    id: id.to_owned(),
                    ..AcpCall::default()
                });
                self.all.len() - 1
            }
        };
        let call = &mut self.all[at];
        if let (true, Some(title)) = (call.title.is_empty(), told["title"].as_str()) {
            title.clone_into(&mut call.title);
        }
        if let Some(kind) = told["kind"].as_str() {
            call.kind = Some(kind.to_owned());
        }
        if let Some(tool) = tool(self.dialect, id, told) {
            call.tool = Some(tool.to_owned());
        }
        match &told["rawInput"] {
            Value::Null => {}
            Value::Object(empty) if empty.is_empty() && call.input.is_some() => {}
            input => call.input = Some(input.clone()),
        }
        Some(call)
    }
}

impl AcpCall {
    /// The tool, by the agent's own name for it.
    pub(super) fn name(&self) -> &str {
        match (&self.tool, self.title.as_str()) {
            (Some(tool), _) => tool,
            (None, "") => &self.id,
            (None, title) => title,
        }
    }

    fn claim(
        &mut self,
        dialect: Dialect,
        status: Claim,
        detail: Option<String>,
    ) -> Option<AgentClaimed> {
        if std::mem::replace(&mut self.is_claimed, true) {
            return None;
        }
        let input = self.input.take();
        let arguments = match (dialect, input) {
            // Codex puts the server and the tool beside the arguments.
            (Dialect::Codex, Some(mut input)) if input["arguments"].is_object() => {
                Some(input["arguments"].take())
            }
            (_, input) => input,
        };
        Some(AgentClaimed {
            tool: self.name().to_owned(),
            arguments: arguments.map(|arguments| Body::Text(arguments.to_string())),
            status,
            detail,
        })
    }
}

/// The tool's name, where the agent says it beside the title.
fn tool<'a>(dialect: Dialect, id: &'a str, told: &'a Value) -> Option<&'a str> {
    match dialect {
        Dialect::Claude => told["_meta"]["claudeCode"]["toolName"].as_str(),
        Dialect::Goose => told["_meta"]["goose"]["toolCall"]["toolName"].as_str(),
        Dialect::Gemini => before(id),
        Dialect::Codex | Dialect::Opencode | Dialect::Unknown => None,
    }
}

/// The tool in `mcp_ev_echo__call_1`, where the model named the call, or in
/// `mcp_ev_echo__mcp_ev_echo_1794739400199_0`, where it did not. The name may have the mark in it too.
fn before(id: &str) -> Option<&str> {
    let repeated = id.match_indices("__").find_map(|(at, mark)| {
        let (name, rest) = (&id[..at], &id[at + mark.len()..]);
        let number = rest.strip_prefix(name)?;
        number.starts_with('_').then_some(name)
    });
    repeated.or_else(|| Some(id.split_once("__")?.0))
}

/// Why a call failed, in the agent's words.
fn detail(told: &Value) -> Option<String> {
    let output = &told["rawOutput"];
    let content = &told["content"][0]["content"]["text"];
    let places = [
        &output["error"]["message"],
        &output["error"],
        output,
        content,
    ];
    let text = places.into_iter().find_map(Value::as_str)?.trim();
    let end = text.floor_char_boundary(LONGEST);
    (end > 0).then(|| text[..end].to_owned())
}

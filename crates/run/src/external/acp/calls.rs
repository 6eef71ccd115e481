//! Tracks the calls that an agent reports.
//!
//! Main types: [`AcpCalls`] and [`AcpCall`]. Each call becomes one claim.

use proctor_record::event::{AgentClaimed, Body, Claim};
use serde_json::Value;

use super::dialect::Dialect;

/// The maximum number of tracked calls.
const MOST: usize = 10_000;

/// The maximum length of an explanation.
const LONGEST: usize = 2_000;

/// The calls of an agent.
#[derive(Debug)]
pub(super) struct AcpCalls {
    dialect: &'static Dialect,
    all: Vec<AcpCall>,
}

/// One call of an agent.
#[derive(Debug, Default)]
pub(super) struct AcpCall {
    pub(super) id: String,
    /// The first title of the call, since some agents change it when the call ends.
    pub(super) title: String,
    /// The tool's name, if the agent gives it beside the title.
    pub(super) tool: Option<String>,
    /// The kind of the call, as the protocol defines it.
    pub(super) kind: Option<String>,
    pub(super) input: Option<Value>,
    /// Whether the call was already reported as a claim.
    is_claimed: bool,
}

impl AcpCalls {
    pub(super) fn new(dialect: &'static Dialect) -> Self {
        let all = Vec::new();
        Self { dialect, all }
    }

    /// Takes a new call or an update of one.
    pub(super) fn take_update(&mut self, update: &Value) -> Option<AgentClaimed> {
        let status = match update["status"].as_str() {
            Some("completed") => Some(Claim::Completed),
            Some("failed") => Some(Claim::Failed),
            _ => None,
        };
        let dialect = self.dialect;
        let call = self.entry(update)?;
        let detail = match status? {
            Claim::Failed => detail(update),
            _ => None,
        };
        call.claim(dialect, status?, detail)
    }

    /// Takes the call of a permission request.
    pub(super) fn take_request(&mut self, update: &Value) -> Option<&AcpCall> {
        self.entry(update).map(|call| &*call)
    }

    /// Marks a call as denied.
    pub(super) fn denied(&mut self, id: &str) -> Option<AgentClaimed> {
        let dialect = self.dialect;
        let call = self.all.iter_mut().find(|call| call.id == id)?;
        call.claim(dialect, Claim::Denied, None)
    }

    /// The calls whose end the agent never reported.
    pub(super) fn rest(&mut self) -> Vec<AgentClaimed> {
        let dialect = self.dialect;
        let all = self.all.iter_mut();
        all.filter_map(|call| call.claim(dialect, Claim::Unknown, None))
            .collect()
    }

    fn entry(&mut self, update: &Value) -> Option<&mut AcpCall> {
        let id = update["toolCallId"].as_str()?;
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
        if let (true, Some(title)) = (call.title.is_empty(), update["title"].as_str()) {
            title.clone_into(&mut call.title);
        }
        if let Some(kind) = update["kind"].as_str() {
            call.kind = Some(kind.to_owned());
        }
        if let Some(tool) = (self.dialect.tool_name)(id, update) {
            call.tool = Some(tool.to_owned());
        }
        match &update["rawInput"] {
            Value::Null => {}
            Value::Object(empty) if empty.is_empty() && call.input.is_some() => {}
            input => call.input = Some(input.clone()),
        }
        Some(call)
    }
}

impl AcpCall {
    /// The tool, as the agent names it.
    pub(super) fn name(&self) -> &str {
        match (&self.tool, self.title.as_str()) {
            (Some(tool), _) => tool,
            (None, "") => &self.id,
            (None, title) => title,
        }
    }

    fn claim(
        &mut self,
        dialect: &Dialect,
        status: Claim,
        detail: Option<String>,
    ) -> Option<AgentClaimed> {
        if std::mem::replace(&mut self.is_claimed, true) {
            return None;
        }
        let arguments = self.input.take().map(dialect.arguments);
        Some(AgentClaimed {
            tool: self.name().to_owned(),
            arguments: arguments.map(|arguments| Body::Text(arguments.to_string())),
            status,
            detail,
        })
    }
}

/// Why a call failed, in the agent's words.
fn detail(update: &Value) -> Option<String> {
    let output = &update["rawOutput"];
    let content = &update["content"][0]["content"]["text"];
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

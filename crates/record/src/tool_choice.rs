//! What was expected in a selection trial, and what was chosen, in short.
//!
//! Its main type is [`ToolChoice`].

use serde::{Deserialize, Serialize};

use crate::event::{ToolName, ToolsSelected};
use crate::excerpt::excerpt;

/// How many calls of a turn are kept.
const MAX_CALLS: usize = 64;

/// What was expected in a selection trial, and what was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChoice {
    /// The tools of which one was expected; empty if no call was.
    pub expected: Vec<ToolName>,
    /// Whether other calls besides the expected ones were allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others_allowed: bool,
    /// The distinct tools that were chosen, in order.
    pub chosen: Vec<ToolName>,
    /// The distinct names that the model invented.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<String>,
}

impl ToolChoice {
    /// The choice that a record shows.
    pub fn of(selected: &ToolsSelected) -> Self {
        let mut choice = Self {
            expected: selected.expected.clone(),
            others_allowed: selected.others_allowed,
            chosen: Vec::new(),
            invented: Vec::new(),
        };
        for call in selected.calls.iter().take(MAX_CALLS) {
            if let Some(server) = &call.server {
                let name = ToolName {
                    server: server.clone(),
                    tool: call.tool.clone(),
                };
                if !choice.chosen.contains(&name) {
                    choice.chosen.push(name);
                }
            } else {
                let name = excerpt(&call.tool).into_owned();
                if !choice.invented.contains(&name) {
                    choice.invented.push(name);
                }
            }
        }
        choice
    }
}

//! The choice of tools in a selection trial.

use serde::{Deserialize, Serialize};

use super::Body;

/// The tools that an agent chose in its first turn. Proctor called none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsSelected {
    /// The tools of which one was expected; empty if no call was.
    pub expected: Vec<ToolName>,
    /// Whether other calls besides the expected ones were allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others_allowed: bool,
    /// The calls, in order.
    pub calls: Vec<SelectedCall>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ToolName {
    pub server: String,
    pub tool: String,
}

/// A call that an agent asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectedCall {
    /// The server that offers the tool; absent if no server does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The server's own name of the tool, or the name that the model invented.
    pub tool: String,
    /// The arguments as JSON, or the text that is not a JSON object.
    pub arguments: Body,
}

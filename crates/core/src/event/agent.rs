//! What an external agent is, and what it says of itself. Checks read the tap, not this.

use serde::{Deserialize, Serialize};

use super::{Body, Purpose};
use crate::model::Usage;

/// An external agent was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStarted {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The version that it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its tool that loads skills, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_tool: Option<String>,
    /// What for: to do the task, or to judge it. All that it writes up to its end is for that too.
    #[serde(default, skip_serializing_if = "is_for_the_task")]
    pub purpose: Purpose,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes by reference"
)]
fn is_for_the_task(purpose: &Purpose) -> bool {
    *purpose == Purpose::Agent
}

/// A call that an external agent says it made, or wanted to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentClaimed {
    /// The tool, by the agent's own name for it.
    pub tool: String,
    /// The arguments, as JSON, if it tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Body>,
    /// What came of it.
    pub status: Claim,
    /// Why, in the agent's words, unless all went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What an external agent says came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Claim {
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was not allowed.
    Denied,
    /// It does not tell.
    Unknown,
}

/// An external agent ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEnded {
    /// How, in words: `exited with code 0`.
    pub how: String,
    /// The tokens that it says it took, all of them; absent is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How often it says its model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The end of what it wrote to its stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

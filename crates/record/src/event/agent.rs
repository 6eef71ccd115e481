//! What an external agent reports about itself. Checks use the tap's events instead.

use serde::{Deserialize, Serialize};

use super::{Body, Purpose};
use crate::model::Usage;

/// An external agent was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStarted {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The version that the program reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The name of its tool that loads skills, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_tool: Option<String>,
    /// Whether it does the task or judges it. This holds for all its events up to its end.
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

/// A call that an external agent reports, made or only attempted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentClaimed {
    /// The tool's name, as the agent reports it.
    pub tool: String,
    /// The arguments as JSON, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Body>,
    pub status: Claim,
    /// The agent's reason, unless the call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The outcome of a call, as an external agent reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Claim {
    Completed,
    Failed,
    Denied,
    /// The agent did not report it.
    Unknown,
}

/// An external agent ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEnded {
    /// A description such as `exited with code 0`.
    pub how: String,
    /// The total token usage that the agent reports; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The number of model requests that the agent reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The end of the agent's stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

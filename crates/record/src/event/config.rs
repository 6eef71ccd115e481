//! The configuration of a run for result files, without headers and keys.
//!
//! The main type is [`RunConfig`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ChangeClass;

/// How a run is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunConfig {
    /// The absolute folder that relative paths of cases refer to.
    pub folder: String,
    /// The agents, in the order of the plan.
    pub agents: Vec<AgentConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<AgentConfig>,
    pub servers: Vec<ServerConfig>,
    /// The task sets that the cases come from.
    pub task_sets: Vec<TaskSetConfig>,
    /// The other repositories that the cases come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceConfig>,
    /// The surface contract, if the suite has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceConfig>,
    /// The folders with the agents' skills.
    pub skills: Vec<String>,
    /// The timeouts of all cases.
    pub timeouts: TimeoutConfig,
    /// The number of trials in parallel.
    pub workers: u32,
}

/// A repository that a suite takes tasks from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceConfig {
    pub name: String,
    pub repo: String,
    /// The branch, tag or commit as written.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The commit that was used. `None` if the user's own checkout was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// The surface contract of a suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SurfaceConfig {
    /// The path of the lock.
    pub lock: String,
    /// The classes of changes that are allowed.
    pub allow: Vec<ChangeClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_schema_tokens: Option<u64>,
}

/// An agent, or a judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentConfig {
    /// `file`, or `builtin.` and its name.
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// The model as `provider:id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The command, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A server under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerConfig {
    /// The name in the suite.
    pub name: String,
    /// `stdio`, `http` or `sse`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The URL without user, query and fragment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The program without arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A task set, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSetConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The pattern of task files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The labels that select tasks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, String>,
}

/// Timeouts, such as `5m`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeoutConfig {
    /// For cases without a timeout of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_task: Option<String>,
    /// For all cases, which overrides their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// For the cleanup of cases without a timeout of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cleanup: Option<String>,
    /// For the cleanup of all cases, which overrides their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
}

//! How a run is configured, as result files describe it. Knows nothing of headers and keys.
//!
//! Its main type is [`RunConfig`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a run is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunConfig {
    /// The folder that relative paths of cases start from, absolute.
    pub folder: String,
    /// The agents, in the order of the plan.
    pub agents: Vec<AgentConfig>,
    /// Who judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<AgentConfig>,
    /// The servers under test.
    pub servers: Vec<ServerConfig>,
    /// Where the cases come from.
    pub task_sets: Vec<TaskSetConfig>,
    /// The folders of skills that agents get.
    pub skills: Vec<String>,
    /// Limits of time that hold for all cases.
    pub timeouts: TimeoutConfig,
    /// How many trials run at once.
    pub workers: u32,
}

/// An agent, or a judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentConfig {
    /// `file`, or `builtin.` with its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its model, as `provider:id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its agent file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is started, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A server under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerConfig {
    /// Its name in the suite.
    pub name: String,
    /// `stdio`, `http` or `sse`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its address, without user, query and fragment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its program, without arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A task set, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSetConfig {
    /// One task file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Task files by pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The labels that its tasks have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, String>,
}

/// Limits of time, such as `5m`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeoutConfig {
    /// For cases that set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_task: Option<String>,
    /// Whatever a case sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// For the cleanup of cases that set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cleanup: Option<String>,
    /// For the cleanup, whatever a case sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
}

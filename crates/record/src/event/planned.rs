//! The plan of a run, and what Proctor learned about the servers before the first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::problem::Problem;

use super::{Body, CheckId, PlannedGates, PlannedKnownFailure, PlannedShard, RunConfig};

/// The plan of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPlanned {
    /// The absolute path of the eval file.
    pub suite: String,
    /// The absolute path of the MCP config that replaces the suite's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_config: Option<String>,
    pub cases: Vec<PlannedCase>,
    pub agents: Vec<PlannedAgent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Whether trials share their servers.
    #[serde(default)]
    pub shared_servers: bool,
    /// The SHA-256 of the servers and the scripts of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<String>,
    /// The SHA-256 of each server's settings, by name and without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_settings: BTreeMap<String, String>,
    /// The SHA-256 of each agent's settings, by name and without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_settings: BTreeMap<String, String>,
    #[serde(default)]
    pub kind: RunKind,
    /// The shipped evals that are listed but not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<SkippedEval>,
    /// The options of the command line, which stay in effect when the run is resumed.
    #[serde(default)]
    pub asked: PlannedOptions,
    /// The configuration of the run, for result files. Older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Box<RunConfig>>,
    /// The warnings about the suite's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<PlannedWarning>,
}

impl RunPlanned {
    /// A plan of which only these parts are known.
    pub fn new(suite: String, cases: Vec<PlannedCase>, agents: Vec<PlannedAgent>) -> Self {
        Self {
            suite,
            mcp_config: None,
            cases,
            agents,
            judge: None,
            shared_servers: false,
            surroundings: None,
            server_settings: BTreeMap::new(),
            agent_settings: BTreeMap::new(),
            kind: RunKind::default(),
            not_run: Vec::new(),
            asked: PlannedOptions::default(),
            config: None,
            warnings: Vec::new(),
        }
    }
}

/// A warning about a file of the suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedWarning {
    /// The kind of problem, such as `unknown-key`.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl From<&Problem> for PlannedWarning {
    fn from(problem: &Problem) -> Self {
        let code = serde_json::to_value(problem.code).ok();
        let place = problem.place.as_ref();
        Self {
            code: code
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            message: problem.message.clone(),
            path: problem.path.as_ref().map(|path| path.display().to_string()),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            hint: problem.hint.clone(),
        }
    }
}

/// What a run evaluates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunKind {
    /// A suite, which a file defines.
    #[default]
    Suite,
    /// Evals that servers ship, without a file.
    Evals,
    /// The results of another tool, imported from its result file.
    Imported,
}

/// The options of the command line.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedOptions {
    /// The agents that replace the suite's own, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Whether external agents reach their models through Proctor, regardless of the suite.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub model_tap: bool,
    /// The model of the built-in agent, which replaces the suite's agents; or the model of `agents`
    /// that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The absolute path of the run whose model replies are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Whether a request that differs from the replayed run is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replay_strict: bool,
    /// The model that replaces the suite's judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Whether a server that violates the protocol fails its trials.
    #[serde(default)]
    pub strict: bool,
    /// The additional environment variables of servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// The gates, also those of the suite's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Box<PlannedGates>>,
    /// The cases that are expected to fail, from the suite's file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_failures: Vec<PlannedKnownFailure>,
    /// Whether trials that can't change the answer of the gate are not started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_when_decided: bool,
    /// The protocol version or era of all servers, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The profile that set flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<PlannedProfile>>,
    /// The shard, if several machines execute the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Box<PlannedShard>>,
}

/// The profile of a run: defaults for flags, from `proctor.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedProfile {
    pub name: String,
    /// The absolute path of its file.
    pub file: String,
    /// Its values by key, as text.
    pub values: BTreeMap<String, String>,
    /// The keys whose values the command line replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
}

/// A case of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCase {
    /// Identifies the case across runs.
    pub id: String,
    pub name: String,
    pub path: String,
    /// The SHA-256 of the resolved case and the files that it names.
    pub hash: String,
    /// The number of trials by each agent.
    pub runs: u32,
    /// The pass rule: at least the first number of the second number of trials must pass. Absent
    /// means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it may run in parallel with other cases.
    #[serde(default)]
    pub parallel: bool,
    /// The number of verify steps. Older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_steps: Option<u32>,
    /// The hashes of its parts. Older records don't have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<CaseParts>,
    /// Where its checks are written. Older records don't have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<CheckPlace>,
    #[serde(default)]
    pub limits: PlannedLimits,
    /// The shipped eval, if the case is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval: Option<PlannedEval>,
}

/// The SHA-256 of each part of a case. A regrade compares them: the record holds no result of a step
/// that was added or changed since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseParts {
    pub prompt: String,
    pub setup: String,
    /// The assertions.
    pub checks: String,
    pub verify: Vec<StepPart>,
}

/// A verify step of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPart {
    pub id: String,
    /// The SHA-256 of the step, with the bytes of its script.
    pub hash: String,
}

/// The place of a check in the suite's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckPlace {
    pub check: CheckId,
    /// The file, as the suite's author would write its path.
    pub path: String,
    /// The line, from one.
    pub line: u32,
}

impl PlannedCase {
    /// A case of which only these parts are known. All its trials must pass.
    pub fn new(id: String, name: String, runs: u32) -> Self {
        Self {
            id,
            name,
            path: String::new(),
            hash: String::new(),
            runs,
            pass: None,
            difficulty: None,
            labels: BTreeMap::new(),
            parallel: false,
            verify_steps: None,
            parts: None,
            places: Vec::new(),
            limits: PlannedLimits::default(),
            eval: None,
        }
    }

    /// The place of a check; `None` if it is unknown, or if the case has several checks of that name.
    pub fn place(&self, check: &CheckId) -> Option<&CheckPlace> {
        self.only_place(|id| id == check)
    }

    /// The same for a check of which only the name is known.
    pub fn place_of(&self, name: &str) -> Option<&CheckPlace> {
        self.only_place(|id| id.name() == name)
    }

    fn only_place(&self, is_meant: impl Fn(&CheckId) -> bool) -> Option<&CheckPlace> {
        let mut places = self.places.iter().filter(|place| is_meant(&place.check));
        match (places.next(), places.next()) {
            (Some(only), None) => Some(only),
            (Some(_), Some(_)) | (None, _) => None,
        }
    }
}

/// An eval that a server ships.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedEval {
    pub server: String,
    /// The server's id of the eval.
    pub id: String,
    /// `invocation`, `execution` or `scenario`.
    pub level: String,
    /// Whether it needs a judge.
    pub judged: bool,
}

/// The limits of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedLimits {
    /// For setup, agent and verification together, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// For the cleanup, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
}

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedAgent {
    pub name: String,
    /// The model as `provider:id`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl PlannedAgent {
    /// An agent whose model is unknown.
    pub fn new(name: String) -> Self {
        Self { name, model: None }
    }
}

/// What a server reported before the first trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSeen {
    /// The server, by its name in the suite.
    pub server: String,
    /// The name that the server reports.
    pub name: Option<String>,
    pub version: Option<String>,
    /// The version of MCP that client and server agreed on.
    pub protocol: String,
    pub tools: u64,
    /// The number of resources and resource templates.
    pub resources: u64,
    pub prompts: u64,
    /// The SHA-256 of the tools, independent of their order. Older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_digest: Option<String>,
    /// The tools as a JSON array with `name`, `description` and `inputSchema`. Only records of
    /// earlier versions have it; now it is part of the surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_list: Option<Body>,
    /// Everything that the server offers: a [`Surface`] as JSON, always as a blob, since most runs
    /// see the same one. Older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Body>,
    /// The microseconds from its start to its first answer. Older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_in: Option<u64>,
}

/// Everything that a server offers, each item as the server sent it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Surface {
    pub tools: Vec<Box<RawValue>>,
    pub resources: Vec<Box<RawValue>>,
    pub resource_templates: Vec<Box<RawValue>>,
    pub prompts: Vec<Box<RawValue>>,
    /// The server's usage instructions.
    pub instructions: Option<String>,
    /// The capabilities that the server declares. Older records don't have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Map<String, Value>>,
    /// The lists that the server declares and did not return, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unlisted: BTreeMap<String, String>,
}

impl ServerSeen {
    /// The changes since `before`, for people; empty if it is the same server. Data that an older
    /// record lacks counts as unchanged.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let shown = |text: &Option<String>| match text {
            Some(text) => format!("`{text}`"),
            None => "none".to_owned(),
        };
        let mut changes = Vec::new();
        for (what, old, new) in [
            ("name", shown(&before.name), shown(&self.name)),
            ("version", shown(&before.version), shown(&self.version)),
            (
                "protocol",
                format!("`{}`", before.protocol),
                format!("`{}`", self.protocol),
            ),
        ] {
            if old != new {
                changes.push(format!("its {what} changed from {old} to {new}"));
            }
        }
        if self.tools != before.tools {
            changes.push(format!(
                "the number of its tools changed from {} to {}",
                before.tools, self.tools
            ));
        } else if let (Some(old), Some(new)) = (&before.tools_digest, &self.tools_digest)
            && old != new
        {
            changes.push("its tools changed".to_owned());
        }
        changes
    }
}

/// An eval that is listed, and not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedEval {
    /// The eval, if it has an id.
    pub eval_id: Option<String>,
    /// The server that ships it.
    pub server: String,
    /// Why it is not run, in a word.
    pub outcome: NotRunOutcome,
    pub reason: String,
}

/// Why an eval is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotRunOutcome {
    /// It breaks a rule; the run fails for it.
    Invalid,
    /// It is of a type that is not known here.
    Skipped,
}

#[cfg(test)]
mod tests;

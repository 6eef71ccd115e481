//! What a run set out to do, and what it found before its first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::problem::Problem;

use super::{Body, RunConfig};

/// What a run will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPlanned {
    /// The eval file, absolute.
    pub suite: String,
    /// The MCP config that stands in for the suite's own, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_config: Option<String>,
    /// The cases, in order.
    pub cases: Vec<PlannedCase>,
    /// The agents that do each of them.
    pub agents: Vec<PlannedAgent>,
    /// Who judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Whether trials share their servers.
    #[serde(default)]
    pub shared_servers: bool,
    /// The SHA-256 of the servers and of the scripts of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<String>,
    /// The SHA-256 of what each server is started or reached with, by its name and without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_settings: BTreeMap<String, String>,
    /// The SHA-256 of what each agent is, by its name and without secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_settings: BTreeMap<String, String>,
    /// Whether the run is of a suite, or of evals that servers ship.
    #[serde(default)]
    pub kind: RunKind,
    /// Of servers' own evals: those that are listed and not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<SkippedEval>,
    /// What the command line asked for, and still holds when the run is gone on with.
    #[serde(default)]
    pub asked: PlannedOptions,
    /// How the run is configured, for result files; older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Box<RunConfig>>,
    /// The warnings about the suite's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<PlannedWarning>,
}

/// A warning about a file of the suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedWarning {
    /// What sort of problem it is, such as `unknown-key`.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line in it, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What may help.
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

/// What a run is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunKind {
    /// A suite, which a file describes.
    #[default]
    Suite,
    /// Evals that servers ship, which no file describes.
    Evals,
}

/// What the command line asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedOptions {
    /// The agents, instead of the suite's own, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Whether external agents reach their models through Proctor, whatever the suite says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub model_tap: bool,
    /// The model of the built-in agent, instead of the suite's own agents; or of `agents` that name
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The run whose models are heard again, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Whether a question that has changed since that run is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replay_strict: bool,
    /// The model that judges, instead of the suite's own judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Whether a server that breaks the protocol fails its trials.
    #[serde(default)]
    pub strict: bool,
    /// The variables that servers get besides the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
}

/// A case of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCase {
    /// Which case it is, across runs.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The SHA-256 of the resolved case and the files that it names.
    pub hash: String,
    /// How often each agent runs it.
    pub runs: u32,
    /// At least this many of so many trials must pass; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<(u32, u32)>,
    /// How hard it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it may run beside others.
    #[serde(default)]
    pub parallel: bool,
    /// How many steps verify it; unknown in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_steps: Option<u32>,
    /// The limits of its trials.
    #[serde(default)]
    pub limits: PlannedLimits,
    /// What it is, if a server ships it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval: Option<PlannedEval>,
}

/// An eval that a server ships.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedEval {
    /// The server.
    pub server: String,
    /// The eval's own id.
    pub id: String,
    /// `invocation`, `execution` or `scenario`.
    pub level: String,
    /// Whether a judge decides.
    pub judged: bool,
}

/// What ends a trial, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedLimits {
    /// For setup, agent and verification together, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// For the cleanup, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_timeout: Option<u64>,
    /// Turns of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
}

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedAgent {
    /// Its name.
    pub name: String,
    /// Its model, as `provider:id`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSeen {
    /// The server, by its name in the suite.
    pub server: String,
    /// The name that it gives itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The version of the protocol.
    pub protocol: String,
    /// How many tools it has.
    pub tools: u64,
    /// How many resources and templates of resources.
    pub resources: u64,
    /// How many prompts.
    pub prompts: u64,
    /// The SHA-256 of its tools, in whatever order it lists them; older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_digest: Option<String>,
    /// Its tools as a JSON array, each with `name`, `description` and `inputSchema`. Only records of
    /// earlier versions have it; now it is a part of the surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_list: Option<Body>,
    /// All that it offers, a [`Surface`] as JSON; always a blob, since most runs see the same. Older
    /// records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Body>,
}

/// All that a server offers, each item as the server wrote it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Surface {
    pub tools: Vec<Box<RawValue>>,
    pub resources: Vec<Box<RawValue>>,
    pub resource_templates: Vec<Box<RawValue>>,
    pub prompts: Vec<Box<RawValue>>,
    /// What it says of how it is to be used.
    pub instructions: Option<String>,
}

impl ServerSeen {
    /// What is not as it was, for people; nothing if it is the same server. What an older record does
    /// not tell is taken to be the same.
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
                changes.push(format!("its {what} was {old} and is {new}"));
            }
        }
        if self.tools != before.tools {
            changes.push(format!(
                "it had {} tools and has {}",
                before.tools, self.tools
            ));
        } else if let (Some(old), Some(new)) = (&before.tools_digest, &self.tools_digest)
            && old != new
        {
            changes.push("its tools are not the same".to_owned());
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> ServerSeen {
        ServerSeen {
            server: "todo".to_owned(),
            name: Some("todo".to_owned()),
            version: Some("1.0".to_owned()),
            protocol: "2025-11-25".to_owned(),
            tools: 2,
            resources: 0,
            prompts: 0,
            tools_digest: Some("a".to_owned()),
            tool_list: None,
            surface: None,
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut ServerSeen), expected: &[&str]) {
        let mut now = seen();
        change(&mut now);
        assert_eq!(now.changes_since(&seen()), expected);
    }

    #[test]
    fn a_server_that_is_not_what_it_was_says_in_what() {
        check(|_| {}, &[]);
        check(|now| now.resources = 5, &[]);
        check(|now| now.tools_digest = None, &[]);
        check(
            |now| now.version = None,
            &["its version was `1.0` and is none"],
        );
        check(
            |now| now.tools_digest = Some("b".to_owned()),
            &["its tools are not the same"],
        );
        check(
            |now| {
                now.tools = 3;
                now.protocol = "2026-07-28".to_owned();
            },
            &[
                "its protocol was `2025-11-25` and is `2026-07-28`",
                "it had 2 tools and has 3",
            ],
        );
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
    /// Why exactly.
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

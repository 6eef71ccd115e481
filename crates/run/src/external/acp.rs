//! Agents that speak the Agent Client Protocol, version 1: JSON-RPC on stdin and stdout, one
//! message per line.
//!
//! Main types: [`Acp`], which prepares a [`LaunchPlan`], and [`AcpClient`](client::AcpClient),
//! which computes the messages to send. Neither does I/O; [`work`] does. The differences between
//! known agents are data: see [`Preset`].

mod answer;
mod calls;
mod client;
mod dialect;
mod failures;
mod greet;
mod policy;
mod preset;
mod titles;
mod work;

use serde_json::{Map, Value, json};

use self::dialect::Dialect;
pub(crate) use self::greet::greet;
pub(crate) use self::preset::{CLAUDE, CODEX, GEMINI, GOOSE, OPENCODE, Preset};
pub(crate) use self::work::work;
use super::cli::aliases;
use super::{Acp, Assignment, AssignmentError, Launch, ModelAccess, ServerRoute, environment_note};
use proctor_models::WireFormat;

/// The program to start for an assignment, and the first messages to it.
#[derive(Debug, Clone)]
struct LaunchPlan {
    launch: Launch,
    opening: AcpSessionRequest,
}

/// The parameters of a new session.
#[derive(Debug, Clone, Default)]
struct AcpSessionRequest {
    folder: String,
    /// The servers, by their names in the session. Servers in the agent's own configuration are
    /// missing here.
    servers: Vec<(String, ServerRoute)>,
    /// The agent's own extension of the parameters (`_meta`).
    meta: Option<Value>,
    /// The mode to set for the session.
    mode: Option<&'static str>,
    prompt: String,
    /// A note to add to errors of an agent that Proctor does not know.
    note: String,
}

impl Acp<'_> {
    pub(super) fn preset(self) -> Option<&'static Preset> {
        match self {
            Self::Preset(preset) => Some(preset),
            Self::Program { .. } => None,
        }
    }

    fn dialect(self) -> &'static Dialect {
        self.preset()
            .map_or(&dialect::UNKNOWN, |preset| &preset.dialect)
    }

    /// The name of the program.
    pub(crate) fn program(&self) -> &str {
        match *self {
            Self::Preset(preset) => preset.agent.command(),
            Self::Program { cmd, .. } => cmd,
        }
    }

    /// The arguments with which the program prints its version, if known.
    pub(crate) fn version(self) -> Option<&'static [&'static str]> {
        self.preset().map(|preset| preset.version)
    }

    /// The model APIs that it supports, best first. Empty if it does not support a custom model
    /// URL.
    pub(crate) fn formats(self) -> &'static [WireFormat] {
        self.preset().map_or(&[], |preset| preset.formats)
    }

    /// The folder in which it looks for skills, and its tool that loads a skill, if known.
    pub(crate) fn skills(self) -> Option<(&'static str, &'static str)> {
        self.preset().and_then(|preset| preset.skills)
    }

    /// Checks whether it can do an assignment.
    pub(crate) fn fits(self, assignment: &Assignment) -> Result<(), AssignmentError> {
        self.prepare(assignment).map(drop)
    }

    fn prepare(self, assignment: &Assignment) -> Result<LaunchPlan, AssignmentError> {
        let (program, args) = match self {
            Self::Preset(preset) => (preset.agent.command(), Vec::new()),
            Self::Program { cmd, args } => (cmd, args.to_vec()),
        };
        let names = aliases(&assignment.servers).into_iter();
        let ways = assignment.servers.iter().map(|server| server.way.clone());
        let mut plan = LaunchPlan {
            launch: Launch {
                program: program.to_owned(),
                args,
                env: assignment.environment.clone(),
                ..Launch::default()
            },
            opening: AcpSessionRequest {
                folder: assignment.folder.to_string_lossy().into_owned(),
                servers: names.zip(ways).collect(),
                prompt: assignment.prompt.clone(),
                note: match self {
                    Self::Preset(_) => String::new(),
                    Self::Program { .. } => environment_note(&assignment.environment),
                },
                ..AcpSessionRequest::default()
            },
        };
        if let Some(preset) = self.preset() {
            preset.configure(assignment, &mut plan)?;
        }
        Ok(plan)
    }
}

impl LaunchPlan {
    fn args(&mut self, args: &[&str]) {
        let args = args.iter().map(|arg| (*arg).to_owned());
        self.launch.args.extend(args);
    }

    fn set(&mut self, name: &str, value: &str) {
        self.launch.env.insert(name.to_owned(), value.to_owned());
    }
}

impl AcpSessionRequest {
    /// The parameters of `session/new`.
    fn session(&self) -> Value {
        let servers: Vec<Value> = self.servers.iter().map(offer).collect();
        let mut params = Map::new();
        params.insert("cwd".to_owned(), self.folder.as_str().into());
        params.insert("mcpServers".to_owned(), servers.into());
        if let Some(meta) = &self.meta {
            params.insert("_meta".to_owned(), meta.clone());
        }
        params.into()
    }
}

/// A server in the protocol's form.
fn offer((name, way): &(String, ServerRoute)) -> Value {
    let pairs = |headers: &[(String, String)]| -> Vec<Value> {
        let headers = headers.iter();
        headers
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    };
    match way {
        ServerRoute::Stdio { program, args } => {
            json!({"name": name, "command": program, "args": args, "env": []})
        }
        ServerRoute::Http { url, headers } => {
            json!({"type": "http", "name": name, "url": url, "headers": pairs(headers)})
        }
        ServerRoute::Sse { url, headers } => {
            json!({"type": "sse", "name": name, "url": url, "headers": pairs(headers)})
        }
    }
}

#[cfg(test)]
mod tests;

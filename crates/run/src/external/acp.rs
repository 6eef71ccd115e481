//! Agents that speak the Agent Client Protocol, version 1: JSON-RPC on their stdin and stdout, a
//! message a line.
//!
//! Main types: [`Acp`], which prepares a [`LaunchPlan`], and [`Client`](client::Client), which says what is sent for what was
//! received. Both are functions of what they are given; [`work`] is what runs them. What the known
//! agents differ in is data: see [`Preset`].

mod answer;
mod calls;
mod client;
mod greet;
mod policy;
mod preset;
mod tells;
mod titles;
mod work;

use serde_json::{Map, Value, json};

pub(crate) use self::greet::greet;
pub(crate) use self::preset::{CLAUDE, CODEX, GEMINI, GOOSE, OPENCODE, Preset};
pub(crate) use self::work::work;
use super::cli::aliases;
use super::{Acp, Assignment, AssignmentError, Launch, ModelAccess, ServerRoute, environment_note};
use proctor_models::WireFormat;

/// What an agent's words mean, where the protocol leaves that open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// That of Claude's adapter.
    Claude,
    /// That of Codex's adapter.
    Codex,
    /// That of the Gemini CLI.
    Gemini,
    /// That of opencode.
    Opencode,
    /// That of goose.
    Goose,
    /// Nobody's.
    Unknown,
}

/// What is started for an assignment, and what is said then.
#[derive(Debug, Clone)]
struct LaunchPlan {
    launch: Launch,
    opening: AcpSessionRequest,
}

/// What an agent is told at first.
#[derive(Debug, Clone, Default)]
struct AcpSessionRequest {
    /// Its working folder.
    folder: String,
    /// The servers that it is told of, by their names there. Those that are in its configuration
    /// already are not among them.
    servers: Vec<(String, ServerRoute)>,
    /// What the protocol does not know, but the agent does.
    meta: Option<Value>,
    /// The mode that its session is put into.
    mode: Option<&'static str>,
    /// The task.
    prompt: String,
    /// What is said beside an error, of an agent that Proctor does not know.
    note: String,
}

impl Acp<'_> {
    pub(super) fn preset(self) -> Option<&'static Preset> {
        match self {
            Self::Preset(preset) => Some(preset),
            Self::Program { .. } => None,
        }
    }

    fn dialect(self) -> Dialect {
        self.preset()
            .map_or(Dialect::Unknown, |preset| preset.dialect)
    }

    /// The program, as it is called.
    pub(crate) fn program(&self) -> &str {
        match *self {
            Self::Preset(preset) => preset.agent.command(),
            Self::Program { cmd, .. } => cmd,
        }
    }

    /// The arguments with which the program prints its version, if they are known.
    pub(crate) fn version(self) -> Option<&'static [&'static str]> {
        self.preset().map(|preset| preset.version)
    }

    /// What it can speak to its model, best first. None: it can't be told where its model is.
    pub(crate) fn formats(self) -> &'static [WireFormat] {
        self.preset().map_or(&[], |preset| preset.formats)
    }

    /// Where it looks for skills, and its tool that loads one, if that is known.
    pub(crate) fn skills(self) -> Option<(&'static str, &'static str)> {
        self.preset().and_then(|preset| preset.skills)
    }

    /// Whether it can be given an assignment.
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

/// A server, as the protocol writes it.
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

//! Agents that run by their vendor's command line.
//!
//! Main types: [`Cli`], which prepares a [`Launch`], and [`OutputReader`], which parses the
//! program's output. Neither does I/O: [`program`](super::program) does.

mod claude_code;
mod codex;
mod copilot;

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_record::decision::last_words;
use proctor_record::event::{AgentClaimed, Body};
use serde_json::Value;

use super::{AgentReport, AgentServer, Assignment, Launch};
use proctor_contain::process::ProcessExit;
use proctor_models::WireFormat;
use proctor_wire::worker;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    ClaudeCode,
    Codex,
    Copilot,
}

/// Why an agent can't do an assignment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AssignmentError {
    /// It does not support HTTP+SSE.
    #[error("{agent} can't use the server `{server}`: it does not support HTTP+SSE")]
    Sse { agent: &'static str, server: String },
    /// It has no default model, and the suite names none.
    #[error("{0} needs a model: set `model`")]
    NoModel(&'static str),
    /// It would run the prompt as a command.
    #[error("{agent} would run the prompt as its own command, because it starts with `{word}`")]
    Command {
        agent: &'static str,
        /// The first word of the prompt.
        word: String,
    },
    /// A text contains a NUL character.
    #[error("{0} contains a NUL character, which can't be passed to a program")]
    Nul(&'static str),
    /// The prompt exceeds the system's limit.
    #[error("the prompt has {bytes} bytes, and a command line holds at most {limit}")]
    TooLong { bytes: usize, limit: usize },
    /// A command template is invalid.
    #[error("the command of the agent {0}")]
    Template(String),
}

impl Cli {
    /// The agent with this command line.
    pub(crate) fn agent(self) -> BuiltinAgent {
        match self {
            Self::ClaudeCode => BuiltinAgent::ClaudeCode,
            Self::Codex => BuiltinAgent::Codex,
            Self::Copilot => BuiltinAgent::Copilot,
        }
    }

    /// The name of the program.
    pub(crate) fn program(self) -> &'static str {
        self.agent().command()
    }

    /// Whether it stops at `maxTurns` by itself and reports that. Others stop without a report, or
    /// answer early.
    pub(crate) fn stops_at_max_turns(self) -> bool {
        match self {
            Self::ClaudeCode => true,
            Self::Codex | Self::Copilot => false,
        }
    }

    /// Whether it reads the URL of its model only from its configuration, not from variables.
    pub(crate) fn reads_only_configuration(self) -> bool {
        match self {
            Self::Codex => true,
            Self::ClaudeCode | Self::Copilot => false,
        }
    }

    /// The model APIs that it supports, best first.
    pub(crate) fn formats(self) -> &'static [WireFormat] {
        match self {
            Self::ClaudeCode => &[WireFormat::Messages],
            Self::Codex => &[WireFormat::Responses],
            Self::Copilot => &[WireFormat::Chat],
        }
    }

    /// The folder in which it looks for skills, and its tool that loads a skill.
    pub(crate) fn skills(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClaudeCode => Some((".claude/skills", "Skill")),
            Self::Codex => None,
            Self::Copilot => Some((".github/skills", "skill")),
        }
    }

    /// The program to start for an assignment.
    pub(crate) fn prepare(self, assignment: &Assignment) -> Result<Launch, AssignmentError> {
        let mut assignment = assignment.clone();
        if assignment.access.endpoint.is_some() {
            // A suite that sets the URL also sets the key: no other key is sent there.
            let is_key = |name: &&&str| name.contains("_KEY") || name.contains("_TOKEN");
            for name in self.agent().variables().iter().filter(is_key) {
                assignment.environment.remove(*name);
            }
        }
        match self {
            Self::ClaudeCode => Ok(claude_code::prepare(&assignment)),
            Self::Codex => codex::prepare(&assignment),
            Self::Copilot => copilot::prepare(&assignment),
        }
    }

    /// The reader for the program's output.
    pub(crate) fn reader(self, assignment: &Assignment) -> OutputReader {
        match self {
            Self::ClaudeCode => OutputReader::ClaudeCode(claude_code::ClaudeCodeReader::default()),
            Self::Codex => OutputReader::Codex(codex::CodexReader::default()),
            Self::Copilot => OutputReader::Copilot(copilot::CopilotReader::new(assignment)),
        }
    }
}

/// Parses the lines of a program's output into a report.
#[derive(Debug)]
pub(crate) enum OutputReader {
    ClaudeCode(claude_code::ClaudeCodeReader),
    Codex(codex::CodexReader),
    Copilot(copilot::CopilotReader),
    /// Any command: its output is the answer.
    Plain(super::commands::CommandReader),
}

impl OutputReader {
    /// Takes a line, and returns the calls that it reports.
    pub(crate) fn line(&mut self, line: &[u8]) -> Vec<AgentClaimed> {
        if let Self::Plain(reader) = self {
            reader.line(line);
            return Vec::new();
        }
        // Some agents print blank lines or noise before their events.
        let Ok(line) = worker::parse::<Value>(line) else {
            return Vec::new();
        };
        match self {
            Self::ClaudeCode(reader) => reader.line(&line),
            Self::Codex(reader) => reader.line(&line),
            Self::Copilot(reader) => reader.line(&line),
            Self::Plain(_) => Vec::new(),
        }
    }

    /// Why it is pointless to wait any longer, since some agents retry forever.
    pub(crate) fn hopeless(&self) -> Option<&str> {
        match self {
            Self::Codex(reader) => reader.hopeless(),
            Self::Copilot(reader) => reader.hopeless(),
            Self::ClaudeCode(_) | Self::Plain(_) => None,
        }
    }

    /// The final report. A program that exited with an error has no answer.
    pub(crate) fn end(self, ended: ProcessExit, stderr: &str) -> AgentReport {
        let mut note = String::new();
        let report = match self {
            Self::ClaudeCode(reader) => reader.end(),
            Self::Codex(reader) => reader.end(),
            Self::Copilot(reader) => reader.end(),
            Self::Plain(mut reader) => {
                note = std::mem::take(&mut reader.note);
                Some(reader.end())
            }
        };
        let is_said = report.is_some();
        let mut report = report.unwrap_or_default();
        if report.error.is_none() && !report.out_of_turns {
            report.error = match ended {
                ProcessExit::Exited(0) if is_said => None,
                ProcessExit::Exited(0) => Some("it exited without a result".to_owned()),
                ProcessExit::Exited(_) | ProcessExit::Signalled(_) | ProcessExit::Unknown => {
                    Some(format!("it {ended}{note}{}", last_words(stderr)))
                }
            };
        }
        report
    }
}

/// The maximum length of a server's name, which leaves room for the tool's name within the model's
/// limit.
const LONGEST_ALIAS: usize = 32;

/// A name for each server that every agent accepts. Most agents join server and tool by two
/// underscores and split at the first two, so a name has no two in a row and none at its ends.
pub(super) fn aliases(servers: &[AgentServer]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for server in servers {
        let plain = plain(&server.name);
        let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
        let plain = match words.join("_") {
            name if name.is_empty() => "server".to_owned(),
            mut name => {
                name.truncate(LONGEST_ALIAS);
                name.trim_end_matches('_').to_owned()
            }
        };
        let mut alias = plain.clone();
        let mut number = 2;
        while taken.contains(&alias) {
            alias = format!("{plain}_{number}");
            number += 1;
        }
        taken.push(alias);
    }
    taken
}

/// A name with only letters, digits, `_` and `-`, as agents write names of servers and tools.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// The first word of a prompt that looks like an agent's own command, such as `/help`, but not a
/// path.
pub(super) fn command(prompt: &str) -> Option<&str> {
    let word = prompt.split_whitespace().next()?;
    let name = word.strip_prefix('/')?;
    (!name.is_empty() && !name.contains('/')).then_some(word)
}

/// A prompt that Claude never takes for a command. It looks for its own commands only at the very
/// start.
pub(super) fn never_a_command(prompt: &str) -> String {
    if prompt.starts_with('/') {
        format!("\n{prompt}")
    } else {
        prompt.to_owned()
    }
}

/// A text field of a JSON object.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// A JSON value as the body of an event.
fn body(value: &Value) -> Option<Body> {
    (!value.is_null()).then(|| Body::Text(value.to_string()))
}

/// The trimmed text, if it is not empty.
fn said(text: &str) -> Option<String> {
    Some(text.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;

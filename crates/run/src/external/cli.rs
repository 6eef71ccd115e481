//! Agents with a command line of their vendor's.
//!
//! Main types: [`Cli`], which prepares a [`Launch`], and [`CopilotReader`], which understands what the program
//! writes. Both are functions of what they are given: [`program`](super::program) does the rest.

mod claude_code;
mod codex;
mod copilot;

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::decision::last_words;
use proctor_core::event::{AgentClaimed, Body};
use serde_json::Value;

use super::{AgentReport, AgentServer, Assignment, Launch};
use proctor_contain::process::ProcessExit;
use proctor_models::WireFormat;
use proctor_wire::worker;

/// An agent with a command line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Copilot.
    Copilot,
}

/// Why an agent can't be given an assignment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AssignmentError {
    /// It does not speak the older HTTP.
    #[error(
        "{agent} can't use the server `{server}`: it does not support HTTP+SSE"
    )]
    Sse {
        /// The agent.
        agent: &'static str,
        /// The server.
        server: String,
    },
    /// It has no model that it would take by itself, and none was named.
    #[error("{0} needs a model: set `model`")]
    NoModel(&'static str),
    /// It would not take the prompt for one.
    #[error(
        "{agent} would run the prompt as its own command, because it starts with `{word}`"
    )]
    Command {
        /// The agent.
        agent: &'static str,
        /// The prompt's first word.
        word: String,
    },
    /// A text has a character that no argument can have.
    #[error("{0} contains a NUL character, which can't be passed to a program")]
    Nul(&'static str),
    /// The system takes only so much at once.
    #[error("the prompt has {bytes} bytes, and a command line holds at most {limit}")]
    TooLong {
        /// How many it has.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A template that makes no sense to a shell.
    #[error("the command of the agent {0}")]
    Template(String),
}

impl Cli {
    /// The agent whose command line it is.
    pub(crate) fn agent(self) -> BuiltinAgent {
        match self {
            Self::ClaudeCode => BuiltinAgent::ClaudeCode,
            Self::Codex => BuiltinAgent::Codex,
            Self::Copilot => BuiltinAgent::Copilot,
        }
    }

    /// The program, as it is called.
    pub(crate) fn program(self) -> &'static str {
        self.agent().command()
    }

    /// Whether it ends at `maxTurns` by itself, and says that it did. Others stop quietly, or answer what
    /// they have.
    pub(crate) fn keeps_to_max_turns(self) -> bool {
        match self {
            Self::ClaudeCode => true,
            Self::Codex | Self::Copilot => false,
        }
    }

    /// Whether it learns where its model is from its configuration alone, and not from variables.
    pub(crate) fn reads_only_configuration(self) -> bool {
        match self {
            Self::Codex => true,
            Self::ClaudeCode | Self::Copilot => false,
        }
    }

    /// What it can speak to its model, best first.
    pub(crate) fn formats(self) -> &'static [WireFormat] {
        match self {
            Self::ClaudeCode => &[WireFormat::Messages],
            Self::Codex => &[WireFormat::Responses],
            Self::Copilot => &[WireFormat::Chat],
        }
    }

    /// Where it looks for skills, and its tool that loads one.
    pub(crate) fn skills(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClaudeCode => Some((".claude/skills", "Skill")),
            Self::Codex => None,
            Self::Copilot => Some((".github/skills", "skill")),
        }
    }

    /// What is started for an assignment.
    pub(crate) fn prepare(self, assignment: &Assignment) -> Result<Launch, AssignmentError> {
        let mut assignment = assignment.clone();
        if assignment.access.endpoint.is_some() {
            // Whoever says where the model is, says with which key: no other goes there.
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

    /// What understands the program's output.
    pub(crate) fn reader(self, assignment: &Assignment) -> OutputReader {
        match self {
            Self::ClaudeCode => OutputReader::ClaudeCode(claude_code::ClaudeCodeReader::default()),
            Self::Codex => OutputReader::Codex(codex::CodexReader::default()),
            Self::Copilot => OutputReader::Copilot(copilot::CopilotReader::new(assignment)),
        }
    }
}

/// Understands the lines that a program writes, and says in the end what they came to.
#[derive(Debug)]
pub(crate) enum OutputReader {
    /// Claude Code's.
    ClaudeCode(claude_code::ClaudeCodeReader),
    /// Codex's.
    Codex(codex::CodexReader),
    /// Copilot's.
    Copilot(copilot::CopilotReader),
    /// That of any command: what it writes is its answer.
    Plain(super::commands::CommandReader),
}

impl OutputReader {
    /// Takes a line, and gives the calls that it tells of.
    pub(crate) fn line(&mut self, line: &[u8]) -> Vec<AgentClaimed> {
        if let Self::Plain(reader) = self {
            reader.line(line);
            return Vec::new();
        }
        // Some write blank lines, and some write noise before they start.
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

    /// Why it makes no sense to wait any longer: some agents try for ever.
    pub(crate) fn hopeless(&self) -> Option<&str> {
        match self {
            Self::Codex(reader) => reader.hopeless(),
            Self::Copilot(reader) => reader.hopeless(),
            Self::ClaudeCode(_) | Self::Plain(_) => None,
        }
    }

    /// Says what it all came to. A program that ended badly has done nothing.
    pub(crate) fn end(self, ended: ProcessExit, stderr: &str) -> AgentReport {
        let mut note = String::new();
        let told = match self {
            Self::ClaudeCode(reader) => reader.end(),
            Self::Codex(reader) => reader.end(),
            Self::Copilot(reader) => reader.end(),
            Self::Plain(mut reader) => {
                note = std::mem::take(&mut reader.note);
                Some(reader.end())
            }
        };
        let is_said = told.is_some();
        let mut told = told.unwrap_or_default();
        if told.error.is_none() && !told.out_of_turns {
            told.error = match ended {
                ProcessExit::Exited(0) if is_said => None,
                ProcessExit::Exited(0) => {
                    Some("it exited without a result".to_owned())
                }
                ProcessExit::Exited(_) | ProcessExit::Signalled(_) | ProcessExit::Unknown => {
                    Some(format!("it {ended}{note}{}", last_words(stderr)))
                }
            };
        }
        told
    }
}

/// The longest name of a server: behind it, the tool's has to find room in what a model takes.
const LONGEST_ALIAS: usize = 32;

/// Names that every agent takes, one for each server. Most put two underscores between a server and its
/// tool, and look for the first two: a name has none in a row, and none at its ends.
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

/// A name with letters, digits, `_` and `-` alone, as agents write names of servers and tools.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// The word with which a prompt looks like a command of an agent's own: `/help`, and no path.
pub(super) fn command(prompt: &str) -> Option<&str> {
    let word = prompt.split_whitespace().next()?;
    let name = word.strip_prefix('/')?;
    (!name.is_empty() && !name.contains('/')).then_some(word)
}

/// A prompt that Claude takes for one, whatever it starts with: it looks for commands of its own at the
/// very start, and nowhere else.
pub(super) fn never_a_command(prompt: &str) -> String {
    if prompt.starts_with('/') {
        format!("\n{prompt}")
    } else {
        prompt.to_owned()
    }
}

/// A text in a JSON object.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// A value as the body of an event.
fn body(value: &Value) -> Option<Body> {
    (!value.is_null()).then(|| Body::Text(value.to_string()))
}

/// A text that says something.
fn said(text: &str) -> Option<String> {
    Some(text.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;

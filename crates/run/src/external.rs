//! Agents that are programs of their own: Claude Code, Codex, whatever speaks ACP, any command.
//!
//! An agent is given an [`Assignment`]: a prompt, servers that stand behind the tap, a way to its
//! model, an empty folder and an empty home. What it says of itself is kept, and believed in nothing
//! that the tap can tell. An [`Adapter`] turns the assignment into a [`Launch`], and what the program
//! says into a [`Told`]; only [`program`] starts anything.

mod acp;
mod assignment;
mod program;

use proctor_core::suite::agent::{Agent, AgentKind, Commands};

pub(crate) use self::acp::{WorkError, work};
pub(crate) use self::assignment::{Access, Assignment, Endpoint, Launch, Offered, Told, Way};
pub(crate) use self::program::{Post, StartError, Started, Written};

/// How an agent is started and understood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Adapter<'a> {
    /// By the command line that its vendor gives it.
    Cli(Cli),
    /// By the Agent Client Protocol.
    Acp(Acp<'a>),
    /// By templates of a command line.
    Commands(&'a Commands),
}

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

/// An agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acp<'a> {
    /// One that Proctor knows, by its name in `proctor_core::suite`: `claude-acp`.
    Preset(&'static str),
    /// Any other.
    Program {
        /// The program.
        cmd: &'a str,
        /// Its arguments.
        args: &'a [String],
    },
}

impl<'a> Adapter<'a> {
    /// The adapter of an agent; `None` if it is no program of its own.
    pub(crate) fn of(agent: &'a Agent) -> Option<Self> {
        Some(match &agent.kind {
            AgentKind::Builtin { builtin, .. } => match *builtin {
                "claude-code" => Self::Cli(Cli::ClaudeCode),
                "codex" => Self::Cli(Cli::Codex),
                "copilot" => Self::Cli(Cli::Copilot),
                "llm-agent" | "openai-agent" | "openai-acp" => return None,
                preset => Self::Acp(Acp::Preset(preset)),
            },
            AgentKind::Acp { cmd, args } => Self::Acp(Acp::Program { cmd, args }),
            AgentKind::Commands(commands) => Self::Commands(commands),
            AgentKind::Nobody => return None,
        })
    }
}

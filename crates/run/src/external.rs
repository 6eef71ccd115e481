//! Agents that are programs of their own: Claude Code, Codex, whatever speaks ACP, any command.
//!
//! An agent is given an `Assignment`: a prompt, servers that stand behind the tap, a way to its
//! model, an empty folder and an empty home. What it says of itself is kept, and believed in nothing
//! that the tap can tell. An `Adapter` turns the assignment into a `Launch`, and what the program
//! says into a `AgentReport`; only `program` starts anything.

mod acp;
mod assignment;
mod cli;
mod commands;
mod judge;
mod line;
mod open;
mod program;
mod stage;
mod survey;
mod version;

use std::collections::BTreeMap;

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::hint::listed;
use proctor_core::suite::agent::{Agent, AgentKind, Commands};

pub(crate) use self::acp::Preset;
pub(crate) use self::assignment::{
    AgentReport, AgentServer, Assignment, Launch, ModelAccess, ModelUrl, ServerRoute,
};
pub(crate) use self::cli::{AssignmentError, Cli};
pub use self::judge::JudgeProgram;
pub(crate) use self::line::{LineError, LineOptions, ModelLine};
pub use self::open::{ExternalAgent, ExternalError, sent_key};
pub(crate) use self::program::{AgentStartError, Post, RunningAgent};
pub(crate) use self::stage::AgentFolders;
pub use self::survey::{AgentKey, Program, Survey, check_programs, survey, survey_known};
use proctor_models::WireFormat;

/// How an agent is started and understood.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Adapter<'a> {
    /// By the command line that its vendor gives it.
    Cli(Cli),
    /// By the Agent Client Protocol.
    Acp(Acp<'a>),
    /// By templates of a command line.
    Commands(&'a Commands),
}

/// An agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Acp<'a> {
    /// One that Proctor knows.
    Preset(&'static Preset),
    /// Any other.
    Program {
        /// The program.
        cmd: &'a str,
        /// Its arguments.
        args: &'a [String],
    },
}

/// Why an agent did not get to its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// It can't be given the assignment.
    #[error(transparent)]
    Unfit(#[from] AssignmentError),
    /// It can't be started.
    #[error(transparent)]
    Start(#[from] AgentStartError),
}

/// The variables that hold the keys of whatever a command may be.
const ANY_KEYS: [&str; 15] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "COPILOT_GITHUB_TOKEN",
    "MODEL_BASE_URL",
    "MODEL_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
];

impl<'a> Adapter<'a> {
    /// The adapter of an agent; `None` if it is no program of its own.
    pub(crate) fn of(agent: &'a Agent) -> Option<Self> {
        Some(match &agent.kind {
            AgentKind::Builtin { builtin, .. } => return Self::of_builtin(*builtin),
            AgentKind::Acp { cmd, args } => Self::Acp(Acp::Program { cmd, args }),
            AgentKind::Commands(commands) => Self::Commands(commands),
            AgentKind::Nobody => return None,
        })
    }

    /// The adapter of an agent that Proctor knows.
    fn of_builtin(agent: BuiltinAgent) -> Option<Self> {
        let preset = |preset| Some(Self::Acp(Acp::Preset(preset)));
        match agent {
            BuiltinAgent::LlmAgent | BuiltinAgent::OpenaiAgent | BuiltinAgent::OpenaiAcp => None,
            BuiltinAgent::ClaudeCode => Some(Self::Cli(Cli::ClaudeCode)),
            BuiltinAgent::Codex => Some(Self::Cli(Cli::Codex)),
            BuiltinAgent::Copilot => Some(Self::Cli(Cli::Copilot)),
            BuiltinAgent::ClaudeAcp => preset(&acp::CLAUDE),
            BuiltinAgent::CodexAcp => preset(&acp::CODEX),
            BuiltinAgent::Gemini => preset(&acp::GEMINI),
            BuiltinAgent::Opencode => preset(&acp::OPENCODE),
            BuiltinAgent::Goose => preset(&acp::GOOSE),
        }
    }

    /// The program that has to be there, and how it is installed, if that is known.
    pub(crate) fn program(&self) -> (&str, Option<&'static str>) {
        match self {
            Self::Cli(cli) => (cli.program(), install(cli.agent())),
            Self::Acp(acp) => (acp.program(), acp.preset().and_then(|it| install(it.agent))),
            Self::Commands(_) => ("sh", None),
        }
    }

    /// What it can speak to its model, best first. None: it can't be told where its model is.
    pub(crate) fn formats(&self) -> &'static [WireFormat] {
        match self {
            Self::Cli(cli) => cli.formats(),
            Self::Acp(acp) => acp.formats(),
            Self::Commands(_) => &[],
        }
    }

    /// The variables of the user's that it reads its keys and the place of its model from.
    pub(crate) fn variables(&self) -> &'static [&'static str] {
        match self {
            Self::Cli(cli) => cli.agent().variables(),
            Self::Acp(Acp::Preset(preset)) => preset.agent.variables(),
            Self::Acp(Acp::Program { .. }) | Self::Commands(_) => &ANY_KEYS,
        }
    }

    /// Where it looks for skills, and its tool that loads one, if that is known.
    pub(crate) fn skills(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Cli(cli) => cli.skills(),
            Self::Acp(acp) => acp.skills(),
            Self::Commands(_) => None,
        }
    }

    /// Whether it ends at `maxTurns` by itself, and says that it did.
    pub(crate) fn keeps_to_max_turns(&self) -> bool {
        match self {
            Self::Cli(cli) => cli.keeps_to_max_turns(),
            Self::Acp(Acp::Preset(preset)) => preset.keeps_to_max_turns,
            Self::Acp(Acp::Program { .. }) | Self::Commands(_) => false,
        }
    }

    /// Whether it learns where its model is from its configuration alone, and not from variables.
    pub(crate) fn reads_only_configuration(&self) -> bool {
        match self {
            Self::Cli(cli) => cli.reads_only_configuration(),
            Self::Acp(Acp::Preset(preset)) => preset.reads_only_configuration,
            Self::Acp(Acp::Program { .. }) | Self::Commands(_) => false,
        }
    }

    /// Whether it is a program that somebody wrote and an agent file describes: Proctor knows nothing of
    /// its habits.
    pub(crate) fn is_from_file(&self) -> bool {
        matches!(self, Self::Commands(_) | Self::Acp(Acp::Program { .. }))
    }

    /// Whether it takes servers by their address and in no other way.
    pub(crate) fn wants_url(&self) -> bool {
        matches!(self, Self::Commands(commands) if commands::wants_url(commands))
    }

    /// Whether it must be told the name of every tool that it may use.
    pub(crate) fn wants_tool_names(&self) -> bool {
        matches!(self, Self::Commands(_))
    }

    /// Whether it works in the user's own home, as its file says.
    pub(crate) fn is_at_home(&self) -> bool {
        matches!(self, Self::Commands(commands) if !commands.virtual_home)
    }

    /// Whether it can be given an assignment.
    fn fits(&self, assignment: &Assignment) -> Result<(), AssignmentError> {
        match self {
            Self::Cli(cli) => cli.prepare(assignment).map(drop),
            Self::Commands(templates) => commands::prepare(templates, assignment).map(drop),
            Self::Acp(acp) => acp.fits(assignment),
        }
    }

    /// Lets the agent work until it ends. Whoever drops this ends it.
    pub(crate) async fn work(
        &self,
        assignment: &Assignment,
        post: &Post<'_>,
    ) -> Result<AgentReport, WorkError> {
        let (launch, reader) = match self {
            Self::Cli(cli) => (cli.prepare(assignment)?, cli.reader(assignment)),
            Self::Commands(templates) => {
                let note = environment_note(&assignment.environment);
                let reader = cli::OutputReader::Plain(commands::CommandReader::noting(note));
                (commands::prepare(templates, assignment)?, reader)
            }
            Self::Acp(acp) => return acp::work(*acp, assignment, post).await,
        };
        Ok(program::run(&launch, reader, post).await?)
    }
}

/// How the program of an agent is installed.
fn install(agent: BuiltinAgent) -> Option<&'static str> {
    agent.program().map(|program| program.install)
}

/// Which variables a program had that ended with an error, and how to give it more. Values are not told.
fn environment_note(environment: &BTreeMap<String, String>) -> String {
    let names = listed(environment.keys().map(String::as_str));
    format!(
        "; its environment variables: {names}; add more with `env:` in the agent file or `--pass-env NAME`"
    )
}

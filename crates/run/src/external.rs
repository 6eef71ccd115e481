//! External agents: Claude Code, Codex, any agent that speaks ACP, and any command.
//!
//! An agent gets an `Assignment`: a prompt, servers behind the tap, access to its model, an empty
//! folder and an empty home. Proctor records what the agent reports of itself, but the tap's
//! observations take precedence. An `Adapter` turns the assignment into a `Launch`, and the
//! program's output into an `AgentReport`; only `program` starts processes.

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
use proctor_core::suite::agent::{Agent, AgentKind, Commands};
use proctor_record::hint::listed;

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
pub(crate) use self::version::program_version;
use proctor_models::WireFormat;

/// How Proctor starts an agent and reads its output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Adapter<'a> {
    /// The vendor's own command line.
    Cli(Cli),
    /// The Agent Client Protocol.
    Acp(Acp<'a>),
    /// Command line templates from an agent file.
    Commands(&'a Commands),
}

/// An agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Acp<'a> {
    /// An agent that Proctor knows.
    Preset(&'static Preset),
    /// An agent from an agent file.
    Program { cmd: &'a str, args: &'a [String] },
}

/// Why an agent did not start its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    #[error(transparent)]
    Unfit(#[from] AssignmentError),
    #[error(transparent)]
    Start(#[from] AgentStartError),
}

/// The variables that may hold keys for an agent from an agent file.
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
    /// The adapter of an agent; `None` if the agent is not an external one.
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

    /// The agent's program, and the command that installs it, if known.
    pub(crate) fn program(&self) -> (&str, Option<&'static str>) {
        match self {
            Self::Cli(cli) => (cli.program(), install(cli.agent())),
            Self::Acp(acp) => (acp.program(), acp.preset().and_then(|it| install(it.agent))),
            Self::Commands(_) => ("sh", None),
        }
    }

    /// The model APIs that it supports, best first. Empty if it does not support a custom model
    /// URL.
    pub(crate) fn formats(&self) -> &'static [WireFormat] {
        match self {
            Self::Cli(cli) => cli.formats(),
            Self::Acp(acp) => acp.formats(),
            Self::Commands(_) => &[],
        }
    }

    /// The user's variables from which it reads its keys and the URL of its model.
    pub(crate) fn variables(&self) -> &'static [&'static str] {
        match self {
            Self::Cli(cli) => cli.agent().variables(),
            Self::Acp(Acp::Preset(preset)) => preset.agent.variables(),
            Self::Acp(Acp::Program { .. }) | Self::Commands(_) => &ANY_KEYS,
        }
    }

    /// The folder in which it looks for skills, and its tool that loads a skill, if known.
    pub(crate) fn skills(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Cli(cli) => cli.skills(),
            Self::Acp(acp) => acp.skills(),
            Self::Commands(_) => None,
        }
    }

    /// Whether it stops at `maxTurns` by itself and reports that.
    pub(crate) fn stops_at_max_turns(&self) -> bool {
        match self {
            Self::Cli(cli) => cli.stops_at_max_turns(),
            Self::Acp(Acp::Preset(preset)) => preset.stops_at_max_turns,
            Self::Acp(Acp::Program { .. }) | Self::Commands(_) => false,
        }
    }

    /// Whether it reads the URL of its model only from its configuration, not from variables.
    pub(crate) fn reads_only_configuration(&self) -> bool {
        match self {
            Self::Cli(cli) => cli.reads_only_configuration(),
            Self::Acp(Acp::Preset(preset)) => preset.reads_only_configuration,
            Self::Acp(Acp::Program { .. }) | Self::Commands(_) => false,
        }
    }

    /// Whether an agent file describes it, so that Proctor knows nothing of its behaviour.
    pub(crate) fn is_from_file(&self) -> bool {
        matches!(self, Self::Commands(_) | Self::Acp(Acp::Program { .. }))
    }

    /// Whether it reaches servers only by URL.
    pub(crate) fn wants_url(&self) -> bool {
        matches!(self, Self::Commands(commands) if commands::wants_url(commands))
    }

    /// Whether it needs the name of every allowed tool.
    pub(crate) fn wants_tool_names(&self) -> bool {
        matches!(self, Self::Commands(_))
    }

    /// Whether it works in the user's own home, because its file says so.
    pub(crate) fn is_at_home(&self) -> bool {
        matches!(self, Self::Commands(commands) if !commands.virtual_home)
    }

    /// Checks whether it can do an assignment.
    fn fits(&self, assignment: &Assignment) -> Result<(), AssignmentError> {
        match self {
            Self::Cli(cli) => cli.prepare(assignment).map(drop),
            Self::Commands(templates) => commands::prepare(templates, assignment).map(drop),
            Self::Acp(acp) => acp.fits(assignment),
        }
    }

    /// Runs the agent until it ends. Dropping the future ends it.
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

/// The command that installs the program of an agent.
fn install(agent: BuiltinAgent) -> Option<&'static str> {
    agent.program().map(|program| program.install)
}

/// Names the variables that a failed program had, and how to pass more. Values are not shown.
fn environment_note(environment: &BTreeMap<String, String>) -> String {
    let names = listed(environment.keys().map(String::as_str));
    format!(
        "; its environment variables: {names}; add more with `env:` in the agent file or `--pass-env NAME`"
    )
}

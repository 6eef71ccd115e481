//! The built-in agents, with their names, programs and environment variables.
//!
//! Its main type is [`BuiltinAgent`]. A new agent needs a variant and a row of data here, and a
//! module in `run::external` that starts it and reads its output.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::provider::Provider;

/// An agent that needs no agent file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuiltinAgent {
    /// Claude Code's command line.
    ClaudeCode,
    /// An old name of [`BuiltinAgent::LlmAgent`] on an OpenAI model.
    OpenaiAgent,
    /// A model in Proctor's own loop.
    LlmAgent,
    /// An old name of [`BuiltinAgent::LlmAgent`] on an OpenAI model.
    OpenaiAcp,
    Codex,
    Copilot,
    /// Claude Code over ACP.
    ClaudeAcp,
    CodexAcp,
    /// Gemini CLI over ACP.
    Gemini,
    Opencode,
    Goose,
}

/// How Proctor runs an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// In Proctor's own loop, without a program.
    InProcess,
    /// As a program with the vendor's own command line.
    Cli,
    /// As a program that speaks the Agent Client Protocol.
    Acp,
}

/// The program of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentProgram {
    /// The name that `PATH` is searched for.
    pub name: &'static str,
    /// The command that installs it.
    pub install: &'static str,
}

/// The data of an agent.
struct AgentInfo {
    name: &'static str,
    protocol: Protocol,
    program: Option<AgentProgram>,
    variables: &'static [&'static str],
    default_provider: Option<Provider>,
}

impl BuiltinAgent {
    /// Every agent, in the order in which they are listed to users.
    pub const ALL: [Self; 11] = [
        Self::ClaudeCode,
        Self::OpenaiAgent,
        Self::LlmAgent,
        Self::OpenaiAcp,
        Self::Codex,
        Self::Copilot,
        Self::ClaudeAcp,
        Self::CodexAcp,
        Self::Gemini,
        Self::Opencode,
        Self::Goose,
    ];

    /// The prefix of a built-in agent's name in the `type` of an eval file.
    pub const PREFIX: &str = "builtin.";

    const fn info(self) -> AgentInfo {
        match self {
            Self::ClaudeCode => cli(
                "claude-code",
                "claude",
                "npm install -g @anthropic-ai/claude-code@latest",
                &[
                    "ANTHROPIC_API_KEY",
                    "ANTHROPIC_AUTH_TOKEN",
                    "CLAUDE_CODE_OAUTH_TOKEN",
                    "ANTHROPIC_BASE_URL",
                ],
            ),
            Self::OpenaiAgent => in_process("openai-agent", Some(Provider::OpenAi)),
            Self::LlmAgent => in_process("llm-agent", None),
            Self::OpenaiAcp => in_process("openai-acp", Some(Provider::OpenAi)),
            Self::Codex => cli(
                "codex",
                "codex",
                "npm install -g @openai/codex",
                &["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
            ),
            Self::Copilot => cli(
                "copilot",
                "copilot",
                "npm install -g @github/copilot",
                &[
                    "COPILOT_GITHUB_TOKEN",
                    "GH_TOKEN",
                    "GITHUB_TOKEN",
                    "COPILOT_PROVIDER_API_KEY",
                    "COPILOT_PROVIDER_BASE_URL",
                    "COPILOT_PROVIDER_TYPE",
                    "COPILOT_PROVIDER_WIRE_API",
                    "COPILOT_MODEL",
                    "COPILOT_OFFLINE",
                ],
            ),
            Self::ClaudeAcp => acp(
                "claude-acp",
                "claude-agent-acp",
                "npm install -g @agentclientprotocol/claude-agent-acp@latest",
                &[
                    "ANTHROPIC_API_KEY",
                    "ANTHROPIC_AUTH_TOKEN",
                    "CLAUDE_CODE_OAUTH_TOKEN",
                    "ANTHROPIC_BASE_URL",
                    "ANTHROPIC_MODEL",
                ],
            ),
            Self::CodexAcp => acp(
                "codex-acp",
                "codex-acp",
                "npm install -g @agentclientprotocol/codex-acp@latest",
                &["OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"],
            ),
            Self::Gemini => acp(
                "gemini",
                "gemini",
                "npm install -g @google/gemini-cli@latest",
                &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
            ),
            Self::Opencode => acp(
                "opencode",
                "opencode",
                "npm install -g opencode-ai@latest",
                &[
                    "ANTHROPIC_API_KEY",
                    "OPENAI_API_KEY",
                    "GEMINI_API_KEY",
                    "GOOGLE_API_KEY",
                    "GOOGLE_GENERATIVE_AI_API_KEY",
                    "OPENCODE_API_KEY",
                ],
            ),
            Self::Goose => acp(
                "goose",
                "goose",
                "npm install -g @aaif/goose-acp@latest",
                &[
                    "ANTHROPIC_API_KEY",
                    "ANTHROPIC_HOST",
                    "OPENAI_API_KEY",
                    "OPENAI_BASE_URL",
                    "OPENAI_HOST",
                    "OPENAI_BASE_PATH",
                    "GOOGLE_API_KEY",
                    "GEMINI_API_KEY",
                    "GOOSE_PROVIDER",
                    "GOOSE_MODEL",
                ],
            ),
        }
    }

    /// The name in agent files, on the command line and in reports.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The `type` of an eval file's agent, such as `builtin.claude-code`.
    pub fn type_name(self) -> String {
        format!("{}{self}", Self::PREFIX)
    }

    /// How Proctor runs it.
    pub const fn protocol(self) -> Protocol {
        self.info().protocol
    }

    /// Its program; `None` for Proctor's own loop.
    pub const fn program(self) -> Option<AgentProgram> {
        self.info().program
    }

    /// The word that starts it: its program, or its own name where no program is started.
    pub fn command(self) -> &'static str {
        self.program().map_or(self.name(), |program| program.name)
    }

    /// The environment variables from which the program reads its API keys and base URLs.
    pub const fn variables(self) -> &'static [&'static str] {
        self.info().variables
    }

    /// Whether it can't run without a model's name: the agents in Proctor's own loop.
    pub const fn needs_model(self) -> bool {
        matches!(self.protocol(), Protocol::InProcess)
    }

    /// The provider of a model that is named without one.
    pub const fn default_provider(self) -> Option<Provider> {
        self.info().default_provider
    }

    /// The page and section that describe it, below `docs/`.
    pub const fn docs(self) -> &'static str {
        match self.protocol() {
            Protocol::InProcess => "suites.md#built-in-agents",
            Protocol::Cli | Protocol::Acp => "agents.md#the-agents",
        }
    }

    /// The agent of that name, without `builtin.`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// The agent of that `type` in an eval file, with `builtin.`.
    pub fn parse_type(text: &str) -> Option<Self> {
        Self::parse(text.strip_prefix(Self::PREFIX)?)
    }

    /// Every name, without `builtin.`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::name)
    }
}

const fn in_process(name: &'static str, default_provider: Option<Provider>) -> AgentInfo {
    AgentInfo {
        name,
        protocol: Protocol::InProcess,
        program: None,
        variables: &[],
        default_provider,
    }
}

const fn cli(
    name: &'static str,
    program: &'static str,
    install: &'static str,
    variables: &'static [&'static str],
) -> AgentInfo {
    AgentInfo {
        name,
        protocol: Protocol::Cli,
        program: Some(AgentProgram {
            name: program,
            install,
        }),
        variables,
        default_provider: None,
    }
}

const fn acp(
    name: &'static str,
    program: &'static str,
    install: &'static str,
    variables: &'static [&'static str],
) -> AgentInfo {
    AgentInfo {
        protocol: Protocol::Acp,
        ..cli(name, program, install, variables)
    }
}

impl fmt::Display for BuiltinAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for BuiltinAgent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests;

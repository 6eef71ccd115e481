//! The arguments of `proctor evals`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proctor_core::suite::protocol::ProtocolPin;

use super::{OutputArgs, RunArgs, TimeoutArgs, header, span};

/// Evals that servers ship: list, run, write, validate and serve them.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  proctor evals list -- python server.py
  proctor evals run --level execution -- python server.py
  proctor evals init -- python server.py
  proctor evals validate evals.yaml")]
pub(crate) enum EvalsCommand {
    List(EvalsListArgs),
    Run(Box<EvalsRunArgs>),
    Validate(EvalsValidateArgs),
    Init(EvalsInitArgs),
    Serve(EvalsServeArgs),
}

/// Show the evals that servers ship, without running them.
///
/// Also shows evals that are invalid or of an unknown type, with the reason.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals list -- python server.py
  proctor evals list --config mcp-config.yaml --level execution
  proctor evals list --url http://localhost:8080/mcp -o json | jq '.servers[].evals[].id'

Exit codes: 0 listed (even if evals are invalid), 2 usage error, 3 a server could not be reached or
did not answer.")]
pub(crate) struct EvalsListArgs {
    #[command(flatten)]
    pub(crate) servers: EvalServersArgs,

    /// Only evals of this level
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<LevelArg>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Run the evals that servers ship, with your consent.
///
/// First shows every tool that would be called, with its arguments and its annotations. Proctor calls tools
/// only with your consent: an answer on the terminal, --yes, or a matching consent file. Results stay on this
/// machine; Proctor sends none to the server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals run -- python server.py
  proctor evals run --level execution --yes --config mcp-config.yaml
  proctor evals run --model openai:gpt-5 --judge anthropic:claude-sonnet-5 -n 5 -- python server.py
  proctor evals run --consent evals.consent.yaml -o json -- python server.py
  proctor evals run --evals evals.yaml --level execution -- python server.py

Exit codes: 0 every eval passed, 1 an eval failed or is invalid, 2 usage error, no consent, no model
or judge for an eval that needs one, or no server ships evals, 3 inconclusive: evals errored or did
not run, 4 nothing selected, 130 interrupted.")]
pub(crate) struct EvalsRunArgs {
    #[command(flatten)]
    pub(crate) servers: EvalServersArgs,

    /// Only evals of this level
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<LevelArg>,

    /// Only the eval with this id (repeatable)
    #[arg(long = "id", value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Run the evals of this file instead of the server's; the server needs no evals of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) evals: Option<PathBuf>,

    /// Model for invocation and scenario evals, such as `openai:gpt-5` or `scripted:FILE`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Model that judges answers
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Option<String>,

    /// Run each eval N times
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Maximum turns of scenario evals; default: their `maxTurns`, or 10
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Timeout of each eval
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) task_timeout: Option<Duration>,

    /// Run the evals without asking for consent
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Consent file: Proctor asks again only if the command, tools or evals changed
    #[arg(long, value_name = "FILE")]
    pub(crate) consent: Option<PathBuf>,

    /// Skip evals that may call a tool without `readOnlyHint`
    #[arg(long)]
    pub(crate) only_read_only: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Check an evals file for mistakes.
///
/// Shows all problems at once, each with its line. With a server, also checks that the server has the tools
/// that the evals name, and which of them may be destructive. Calls no tool.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals validate evals.yaml
  proctor evals validate --strict evals.yaml -- python server.py

Exit codes: 0 no errors, 2 errors found, 3 the server could not be reached or did not answer.")]
pub(crate) struct EvalsValidateArgs {
    /// Evals file (YAML or JSON)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) server: EvalServersArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Write a first evals file for a server's tools. Never overwrites a file.
///
/// With your consent, Proctor calls each tool that has `readOnlyHint`; its answer becomes the expected result
/// of the eval. For every tool, the file has a prompt for you to complete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals init -- python server.py
  proctor evals init --out tests/evals.yaml --yes --url http://localhost:8080/mcp

Exit codes: 0 written, 2 usage error or no consent, 3 the server could not be reached or did not
answer.")]
pub(crate) struct EvalsInitArgs {
    /// File to write: YAML, or JSON if its name ends in `.json`
    #[arg(long, value_name = "FILE", default_value = "evals.yaml")]
    pub(crate) out: PathBuf,

    /// Call the tools without asking for consent
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) server: EvalServersArgs,
}

/// Make any server ship evals, without changing it.
///
/// Runs as a proxy in front of the server. It answers `evals/list` from FILE, adds the capability to the
/// server's handshake response, and passes everything else through unchanged. When FILE changes, it serves
/// the new evals and notifies clients. If FILE has errors, it reports them and keeps serving the old evals.
/// It records nothing.
///
/// With a command, it speaks MCP on stdin and stdout like the server itself, with the same environment,
/// working directory, stderr and exit code. With --url, it prints a local URL to use instead, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals serve --evals evals.yaml -- python server.py
  proctor evals serve --evals evals.yaml --url https://example.com/mcp --header 'X-Key: …'
  proctor evals run --level execution -- proctor evals serve --evals evals.yaml -- python server.py

In a client's configuration, put it before the server's command:
  {\"mcpServers\": {\"mine\": {
    \"command\": \"proctor\",
    \"args\": [\"evals\", \"serve\", \"--evals\", \"evals.yaml\", \"--\", \"python\", \"server.py\"]}}}

Exit codes: that of the server (128 plus the signal number if a signal ended it), 2 usage error or
FILE has errors. With --url: 0 stopped by Ctrl-C or SIGTERM, 3 can't listen on the port.")]
pub(crate) struct EvalsServeArgs {
    /// Evals file (YAML or JSON); reloaded when it changes
    #[arg(long, value_name = "FILE")]
    pub(crate) evals: PathBuf,

    /// URL of a running server: streamable HTTP or HTTP+SSE
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// Send this header to --url, as `NAME: VALUE` (repeatable)
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// Port of the printed URL; 0 chooses a free one
    #[arg(long, value_name = "N", requires = "url", default_value = "0")]
    pub(crate) port: u16,

    /// Print a URL without a token: any process on this machine can connect
    #[arg(long, requires = "url")]
    pub(crate) no_token: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The flags that choose servers and set up their connections.
#[derive(Debug, Args)]
pub(crate) struct EvalServersArgs {
    /// URL of the server: streamable HTTP, or HTTP+SSE if the server only supports that
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "command"])]
    pub(crate) url: Option<String>,

    /// Send this header to --url, as `NAME: VALUE` (repeatable)
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// MCP config; all its servers, unless --server names some
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,

    /// Name of a server in --config (repeatable)
    #[arg(long = "server", value_name = "NAME", requires = "config")]
    pub(crate) names: Vec<String>,

    /// Pass this environment variable to servers, in addition to PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Protocol version or era to use, such as `2025-06-18`, `handshake` or `stateless`; default:
    /// the newest that the server supports
    #[arg(long, value_name = "VERSION")]
    pub(crate) protocol: Option<ProtocolPin>,

    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,

    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl EvalServersArgs {
    /// Whether the command line names a server.
    pub(crate) fn are_given(&self) -> bool {
        self.url.is_some() || self.config.is_some() || !self.command.is_empty()
    }
}

/// The level of an eval: how much of a task it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelArg {
    /// Does a model call the right tool?
    Invocation,
    /// Does a tool return the expected result?
    Execution,
    /// Can a model do a task with the server's tools?
    Scenario,
}

impl From<LevelArg> for mcp_evals::Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Invocation => Self::Invocation,
            LevelArg::Execution => Self::Execution,
            LevelArg::Scenario => Self::Scenario,
        }
    }
}

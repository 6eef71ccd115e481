//! The arguments of `proctor evals`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{OutputArgs, RunArgs, TimeoutArgs, header, span};

/// The evals that servers ship: list and run them, write them, look for mistakes in them, serve them.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalsCommand {
    List(EvalsListArgs),
    Run(Box<EvalsRunArgs>),
    Validate(EvalsValidateArgs),
    Init(EvalsInitArgs),
    Serve(EvalsServeArgs),
}

/// Show the evals that servers ship. Runs none of them.
///
/// Evals that are invalid, or of a type that Proctor does not know, are shown with what is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals list -- python server.py
  proctor evals list --config mcp-config.yaml --level execution
  proctor evals list --url http://localhost:8080/mcp -o json | jq '.servers[].evals[].id'

Exit codes: 0 listed, invalid evals included, 2 usage, 3 a server could not be reached or asked.")]
pub(crate) struct EvalsListArgs {
    #[command(flatten)]
    pub(crate) servers: EvalServersArgs,

    /// Only evals of this level
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<LevelArg>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Run the evals that servers ship, once you have agreed to it.
///
/// What would be called is shown first: every tool with its arguments, and what the server says of it.
/// Nothing is called without a yes: on the terminal, by --yes, or by a consent file that matches.
/// Results stay here; nothing of them goes to the server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals run -- python server.py
  proctor evals run --level execution --yes --config mcp-config.yaml
  proctor evals run --model openai:gpt-5 --judge anthropic:claude-sonnet-5 -n 5 -- python server.py
  proctor evals run --consent evals.consent.yaml -o json -- python server.py
  proctor evals run --evals evals.yaml --level execution -- python server.py

Exit codes: 0 every eval passed, 1 one failed or is invalid, 2 usage, no consent, no model or judge for
an eval that needs one, no server that ships evals, 3 it can't be told, 4 nothing selected, 130 interrupted.")]
pub(crate) struct EvalsRunArgs {
    #[command(flatten)]
    pub(crate) servers: EvalServersArgs,

    /// Only evals of this level
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<LevelArg>,

    /// Only the eval with this id; may be repeated
    #[arg(long = "id", value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Run the evals of this file instead of those that the server ships; it need not ship any
    #[arg(long, value_name = "FILE")]
    pub(crate) evals: Option<PathBuf>,

    /// The model that does invocation and scenario evals, such as `openai:gpt-5` or `scripted:FILE`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// The model that judges
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Option<String>,

    /// Run each eval this often
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Cap the turns of scenarios; by default their own `maxTurns`, or 10
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Time for each eval
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) task_timeout: Option<Duration>,

    /// Run them without asking
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Where consent is kept: what was agreed to is not asked again, until it changes
    #[arg(long, value_name = "FILE")]
    pub(crate) consent: Option<PathBuf>,

    /// Leave out evals that may call a tool which does not say that it only reads
    #[arg(long)]
    pub(crate) only_read_only: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Look for mistakes in a file of evals that a server is to ship.
///
/// All problems are shown at once, each with its place. With a server, its tools are looked at too:
/// whether it has those that the evals name, and which may be destructive. Nothing is called.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals validate evals.yaml
  proctor evals validate --strict evals.yaml -- python server.py

Exit codes: 0 no errors, 2 there are some, 3 the server could not be reached or asked.")]
pub(crate) struct EvalsValidateArgs {
    /// The file, YAML or JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Take warnings for errors
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) server: EvalServersArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Write a first file of evals from a server's tools. Never overwrites a file.
///
/// Tools that say that they only read are called, after you have agreed to it, and what they answer
/// is what their evals expect. For every tool there is a prompt for you to complete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals init -- python server.py
  proctor evals init --out tests/evals.yaml --yes --url http://localhost:8080/mcp

Exit codes: 0 written, 2 usage, or it was not agreed to, 3 the server could not be reached or asked.")]
pub(crate) struct EvalsInitArgs {
    /// The file to write: YAML, or JSON if its name ends in `.json`
    #[arg(long, value_name = "FILE", default_value = "evals.yaml")]
    pub(crate) out: PathBuf,

    /// Call the tools without asking
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) server: EvalServersArgs,
}

/// Make any server ship evals, without changing it.
///
/// Stands in front of the server: `evals/list` is answered from FILE, the capability is declared in the
/// server's answer to the handshake, and everything else passes through untouched. When FILE changes,
/// the new evals are served and clients are told; a FILE with mistakes is reported, and the old evals
/// stay. Nothing is recorded.
///
/// With a command, this is the server on stdin and stdout: it has the same environment, folder, stderr and
/// exit code. With --url, a loopback address is printed to be used instead, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor evals serve --evals evals.yaml -- python server.py
  proctor evals serve --evals evals.yaml --url https://example.com/mcp --header 'Authorization: Bearer …'
  proctor evals run --level execution -- proctor evals serve --evals evals.yaml -- python server.py

In the configuration of a client, put it before the command that is there:
  {\"mcpServers\": {\"mine\": {
    \"command\": \"proctor\",
    \"args\": [\"evals\", \"serve\", \"--evals\", \"evals.yaml\", \"--\", \"python\", \"server.py\"]}}}

Exit codes: the server's own (128 and the signal's number, if one ended it); 2 FILE has errors, or usage.
With --url: 0 ended by Ctrl-C or SIGTERM, 3 no port.")]
pub(crate) struct EvalsServeArgs {
    /// The evals, YAML or JSON; looked at again whenever the file changes
    #[arg(long, value_name = "FILE")]
    pub(crate) evals: PathBuf,

    /// The address of a server that listens: streamable HTTP, or the older transport
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// A header to send to --url, as `NAME: VALUE`; may be repeated
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// The port of the address that is printed; a free one, if it is 0
    #[arg(long, value_name = "N", requires = "url", default_value = "0")]
    pub(crate) port: u16,

    /// Let everybody on this machine in: the address that is printed has no token in it
    #[arg(long, requires = "url")]
    pub(crate) no_token: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Which servers, and how they are reached.
#[derive(Debug, Args)]
pub(crate) struct EvalServersArgs {
    /// The server's address: streamable HTTP, or the older transport if it answers to that
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "command"])]
    pub(crate) url: Option<String>,

    /// A header to send to --url, as `NAME: VALUE`; may be repeated
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// An MCP config: all its servers, unless --server names some
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,

    /// A server of --config; may be repeated
    #[arg(long = "server", value_name = "NAME", requires = "config")]
    pub(crate) names: Vec<String>,

    /// An environment variable that servers get besides PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    #[command(flatten)]
    pub(crate) patience: TimeoutArgs,

    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl EvalServersArgs {
    /// Whether any server is meant.
    pub(crate) fn are_given(&self) -> bool {
        self.url.is_some() || self.config.is_some() || !self.command.is_empty()
    }
}

/// How much of a task an eval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelArg {
    /// Does a model call the right tool?
    Invocation,
    /// Does a tool answer what it should?
    Execution,
    /// Can a task be done with the server's tools?
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

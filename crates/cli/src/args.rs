//! The arguments of every command.

mod agents;
mod call;
mod check;
mod evals;
mod model;
mod record;
mod result;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proctor_core::duration;
use proctor_core::pattern::Pattern;
use proctor_core::plan::{LabelSelector, PlanOptions, Selection};
use proctor_core::suite::LimitFlags;
use proctor_wire::client::Timeouts;

pub(crate) use self::agents::AgentsArgs;
pub(crate) use self::call::{JsonArguments, TextSource, ToolArgument, json_object};
pub(crate) use self::check::{CheckArgs, RunArgs};
pub(crate) use self::evals::{
    EvalServersArgs, EvalsCommand, EvalsInitArgs, EvalsListArgs, EvalsRunArgs, EvalsServeArgs,
    EvalsValidateArgs,
};
pub(crate) use self::model::{ModelCommand, ModelServeArgs};
pub(crate) use self::record::RecordArgs;
pub(crate) use self::result::{ResultCommand, RunsArgs, ShowArgs, ViewArgs, ViewFormat};

/// A test runner for MCP servers.
#[derive(Debug, Parser)]
#[command(
    name = "proctor",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Exit codes: 0 all is well, 1 it was tried and did not succeed, 2 usage or configuration,
3 it can't be told, 4 nothing selected, 130 interrupted.

Start with `proctor init`, then `proctor check eval.yaml`."
)]
pub(crate) struct CliArguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Box<CheckArgs>),
    Validate(ValidateArgs),
    List(ListArgs),
    Tools(ToolsArgs),
    Call(CallArgs),
    Record(RecordArgs),
    Agents(AgentsArgs),
    #[command(subcommand)]
    Result(ResultCommand),
    #[command(subcommand)]
    Evals(Box<EvalsCommand>),
    #[command(subcommand)]
    Model(ModelCommand),
    Schema(SchemaArgs),
    Init(InitArgs),
}

/// A duration in which something can happen: none at all would end everything before it starts.
fn span(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(span) if span.is_zero() => Err("write a duration above zero, such as 90s".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Look for mistakes in suite files, and in everything they name.
///
/// All problems of all files are shown at once, each with its place. Nothing is started and
/// nothing is fetched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor validate eval.yaml
  proctor validate --strict suites/*.yaml
  proctor validate -o json eval.yaml | jq '.problems[].message'")]
pub(crate) struct ValidateArgs {
    /// Eval, task or agent files, or MCP configs
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Take unknown keys for errors
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Show what a suite would run: cases, trials, limits, servers, checks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor list eval.yaml
  proctor list eval.yaml -l suite=basic,suite=smoke -r '^create-'
  proctor list eval.yaml -n 5 --task-timeout 2m -o json

Nothing selected: exit code 4.")]
pub(crate) struct ListArgs {
    /// The eval file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which cases, how often, within which limits.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Only cases with these labels: `k=v,k=w,j=x` means k is v or w, and j is x
    #[arg(short, long, value_name = "LABELS", value_parser = LabelSelector::parse)]
    pub(crate) label_selector: Option<LabelSelector>,

    /// Only cases whose name matches this regular expression
    #[arg(short, long, value_name = "REGEX", value_parser = Pattern::compile)]
    pub(crate) run: Option<Pattern>,

    /// Run each case this often, whatever its file says
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Time for setup, agent and verification of each case, whatever its file says
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) task_timeout: Option<Duration>,

    /// The same, for cases that set none
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) default_task_timeout: Option<Duration>,

    /// Time for the cleanup of each case, whatever its file says
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) cleanup_timeout: Option<Duration>,

    /// The same, for cases that set none
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) default_cleanup_timeout: Option<Duration>,
}

impl PlanArgs {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        self.label_selector.is_some()
            || self.run.is_some()
            || self.runs.is_some()
            || self.task_timeout.is_some()
            || self.default_task_timeout.is_some()
            || self.cleanup_timeout.is_some()
            || self.default_cleanup_timeout.is_some()
    }

    pub(crate) fn options(&self) -> PlanOptions {
        PlanOptions {
            selection: Selection {
                labels: self.label_selector.clone().unwrap_or_default(),
                name: self.run.clone(),
            },
            runs: self.runs,
            limits: LimitFlags {
                timeout: self.task_timeout,
                default_timeout: self.default_task_timeout,
                cleanup_timeout: self.cleanup_timeout,
                default_cleanup_timeout: self.default_cleanup_timeout,
            },
        }
    }
}

/// Show what a server is and offers: tools, resources, prompts, capabilities.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor tools -- npx -y @modelcontextprotocol/server-everything
  proctor tools --url http://localhost:8080/mcp
  proctor tools --config mcp-config.yaml --server files -o json | jq '.tools[].name'

Exit codes: 0 listed, 2 usage, 3 the server could not be reached or asked.")]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Call one tool of a server, and show its result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor call get-sum a=2 b=40 -- npx -y @modelcontextprotocol/server-everything
  proctor call echo message='hello there' --url http://localhost:8080/mcp
  proctor call write_file path=notes.txt content=@draft.txt --config mcp.yaml --server files
  proctor call get-sum --args '{\"a\": 2, \"b\": 40}' --record .proctor/runs/sum --config mcp.yaml
  jq .input call.json | proctor call get-sum - --config mcp.yaml

A VALUE is JSON where it parses and the tool's schema agrees, and text otherwise: `a=2` is a number
for a tool that wants numbers, and `id=2` the text \"2\" for one that wants text.

Exit codes: 0 the tool answered, 1 it said that it failed, 2 usage, 3 it could not be called
or recorded.")]
pub(crate) struct CallArgs {
    /// The tool
    pub(crate) tool: String,

    /// Its arguments, as NAME=VALUE, or NAME=@FILE for what a file holds (@- for stdin); or all of
    /// them as a JSON object from a file, @FILE, or from stdin, -
    #[arg(value_name = "NAME=VALUE", value_parser = call::tool_argument)]
    pub(crate) arguments: Vec<ToolArgument>,

    /// Its arguments, as a JSON object; @FILE reads it from a file, - from stdin
    #[arg(long, value_name = "JSON", value_parser = call::json_arguments)]
    pub(crate) args: Option<JsonArguments>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which server, and how it is reached.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server's address: streamable HTTP, or the older transport if it answers to that
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "command"])]
    pub(crate) url: Option<String>,

    /// A header to send to --url, as `NAME: VALUE`; may be repeated
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// An MCP config that names the server
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,

    /// Which server of --config, if it has several
    #[arg(long, value_name = "NAME", requires = "config")]
    pub(crate) server: Option<String>,

    /// An environment variable that the server gets besides PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    #[command(flatten)]
    pub(crate) patience: TimeoutArgs,

    /// Keep every message in this folder, which must not hold a run yet
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,

    /// Fail if the server breaks the protocol, even in ways that can be tolerated
    #[arg(long)]
    pub(crate) strict: bool,

    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// How long servers may take.
#[derive(Debug, Args)]
pub(crate) struct TimeoutArgs {
    /// How long to wait for a server to come up
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span)]
    pub(crate) connect_timeout: Duration,

    /// How long to wait for an answer
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span)]
    pub(crate) timeout: Duration,

    /// How long to wait for an answer whose server keeps reporting progress
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = span)]
    pub(crate) total_timeout: Duration,
}

impl TimeoutArgs {
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_timeout,
            request: self.timeout,
            total: self.total_timeout,
            ..Timeouts::default()
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write `NAME: VALUE`".to_owned()),
    }
}

/// What a suite is loaded with.
#[derive(Debug, Args)]
pub(crate) struct LoadingArgs {
    /// The checkout of a source that the suite names; may be repeated
    #[arg(long = "source", value_name = "NAME=DIR", value_parser = source_root)]
    sources: Vec<(String, PathBuf)>,

    /// Use this MCP config instead of the one that the suite names
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config_file: Option<PathBuf>,
}

impl LoadingArgs {
    pub(crate) fn source_roots(&self) -> BTreeMap<String, PathBuf> {
        self.sources.iter().cloned().collect()
    }
}

fn source_root(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(folder)))
        }
        _ => Err("write `NAME=DIR`".to_owned()),
    }
}

/// How results are written.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How the result is written
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// For scripts: one JSON document
    Json,
}

/// Print the JSON Schema of a kind of file, for editors.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  mkdir -p .proctor && proctor schema eval > .proctor/eval.schema.json

Then let the first line of eval.yaml be
  # yaml-language-server: $schema=.proctor/eval.schema.json")]
pub(crate) struct SchemaArgs {
    /// The kind of file
    pub(crate) kind: SchemaKind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaKind {
    /// An eval file
    Eval,
    /// A task file
    Task,
    /// An agent file
    Agent,
    /// An MCP config
    McpConfig,
    /// The rules of a scripted model
    Scripted,
    /// Evals that a server ships
    Evals,
}

/// Write a small suite to start from. Never overwrites a file.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder to write to
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
}

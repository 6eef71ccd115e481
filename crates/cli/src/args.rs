//! The arguments of every command. Their doc comments are the text of `--help`.

mod agents;
mod call;
mod check;
mod compare;
mod completions;
mod doctor;
mod evals;
mod extensions;
mod gates;
mod init;
mod judge;
mod login;
mod merge;
mod model;
mod record;
mod result;
mod schema;
mod sources;
mod summary;
mod tools;
mod viewer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proctor_core::pattern::Pattern;
use proctor_core::plan::{LabelSelector, PlanOptions, Selection};
use proctor_core::suite::LimitFlags;
use proctor_core::suite::protocol::ProtocolPin;
use proctor_record::duration;
use proctor_wire::client::Timeouts;

pub(crate) use self::agents::AgentsArgs;
pub(crate) use self::call::{CallArgs, JsonArguments, TextSource, ToolArgument, json_object};
pub(crate) use self::check::{CheckArgs, KeepArg, RunArgs, ShardArg};
pub(crate) use self::compare::{DiffArgs, DiffFormat, VerifyArgs};
pub(crate) use self::completions::{CompletionsArgs, ManArgs, ShellName};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::evals::{
    EvalServersArgs, EvalsCommand, EvalsInitArgs, EvalsListArgs, EvalsRunArgs, EvalsServeArgs,
    EvalsValidateArgs,
};
pub(crate) use self::extensions::{ExtensionsCommand, ExtensionsFetchArgs, ExtensionsListArgs};
pub(crate) use self::gates::GateArgs;
pub(crate) use self::init::InitArgs;
pub(crate) use self::judge::{CalibrateArgs, JudgeCommand};
pub(crate) use self::login::{LoginArgs, LogoutArgs};
pub(crate) use self::merge::MergeArgs;
pub(crate) use self::model::{ModelCommand, ModelServeArgs};
pub(crate) use self::record::RecordArgs;
pub(crate) use self::result::{
    ConvertArgs, ConvertFormat, CoverageArgs, CsvTable, ExportArgs, FilterArgs, RegradeArgs,
    ReportArgs, ReportFormat, ResultCommand, RunsArgs, ShowArgs, ViewArgs, ViewFormat,
};
pub(crate) use self::schema::{SchemaArgs, SchemaKind};
pub(crate) use self::sources::{SourcesArgs, SourcesCommand, SourcesListArgs};
pub(crate) use self::summary::{SummaryArgs, SummaryFormat};
pub(crate) use self::tools::{LintArgs, LintFormat, ToolsArgs, ToolsFormat};
pub(crate) use self::viewer::ViewerArgs;

/// A test runner for MCP servers.
#[derive(Debug, Parser)]
#[command(
    name = "proctor",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = "Examples:
  proctor init demo && proctor check demo/eval.yaml    write a small suite, and run it
  proctor tools -- npx -y @modelcontextprotocol/server-everything
  proctor doctor                                       what is installed, and what is missing

Exit codes: 0 success, 1 failed, 2 usage or configuration error, 3 inconclusive, 4 nothing selected,
130 interrupted.")]
pub(crate) struct CliArguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Colours in the output; `auto` obeys `NO_COLOR` and `CLICOLOR_FORCE`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
}

/// When the output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal that supports them
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Box<CheckArgs>),
    Validate(ValidateArgs),
    List(ListArgs),
    Tools(ToolsArgs),
    Lint(LintArgs),
    Call(CallArgs),
    Record(RecordArgs),
    Login(LoginArgs),
    Logout(LogoutArgs),
    Agents(AgentsArgs),
    #[command(subcommand)]
    Sources(SourcesCommand),
    #[command(subcommand)]
    Extensions(ExtensionsCommand),
    #[command(subcommand)]
    Result(ResultCommand),
    View(ViewerArgs),
    #[command(subcommand)]
    Evals(Box<EvalsCommand>),
    #[command(subcommand)]
    Judge(JudgeCommand),
    #[command(subcommand)]
    Model(ModelCommand),
    Schema(SchemaArgs),
    Completions(CompletionsArgs),
    Init(InitArgs),
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Man(ManArgs),
    /// Print the version
    #[command(hide = true, after_help = "Examples:\n  proctor version")]
    Version,
}

/// Parses a duration above zero: a timeout of zero would end everything before it starts.
fn span(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(span) if span.is_zero() => Err("write a duration above zero, such as 90s".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Check suite files, and all files that they name, for mistakes.
///
/// Shows all problems of all files at once, each with file and line. Starts no program and downloads nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor validate eval.yaml
  proctor validate --strict suites/*.yaml
  proctor validate -o json eval.yaml | jq '.problems[].message'")]
pub(crate) struct ValidateArgs {
    /// Eval, task or agent files, MCP configs, or `proctor.yaml`
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Treat unknown keys as errors
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Show what a suite would run: cases, trials, limits, servers and checks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor list eval.yaml
  proctor list eval.yaml -l suite=basic,suite=smoke -r '^create-'
  proctor list eval.yaml -n 5 --task-timeout 2m -o json
  proctor list eval.yaml -n 10 --cost

Exit codes: 0 listed, 2 usage or configuration error, 4 nothing selected.")]
pub(crate) struct ListArgs {
    /// Eval file of the suite
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Also estimate model calls, tokens, cost and time, from earlier runs of the same cases in
    /// `.proctor/runs`
    #[arg(long)]
    pub(crate) cost: bool,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The flags that select cases, and set their number of runs and their limits.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Only cases with these labels: `k=v,k=w,j=x` means k is v or w, and j is x
    #[arg(short, long, value_name = "LABELS", value_parser = LabelSelector::parse)]
    pub(crate) label_selector: Option<LabelSelector>,

    /// Only cases whose name matches this regular expression
    #[arg(short, long, value_name = "REGEX", value_parser = Pattern::compile)]
    pub(crate) run: Option<Pattern>,

    /// Run each case N times; overrides the suite
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Timeout for setup, agent and verification of each case; overrides the suite
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) task_timeout: Option<Duration>,

    /// Timeout for setup, agent and verification of cases that don't set one
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) default_task_timeout: Option<Duration>,

    /// Timeout for the cleanup of each case; overrides the suite
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) cleanup_timeout: Option<Duration>,

    /// Timeout for the cleanup of cases that don't set one
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) default_cleanup_timeout: Option<Duration>,
}

impl PlanArgs {
    /// Whether the command line has any of these flags.
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
                ids: None,
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

/// The flags that choose a server and set up its connection.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// URL of the server: streamable HTTP, or HTTP+SSE if the server only supports that
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "command"])]
    pub(crate) url: Option<String>,

    /// Send this header to --url, as `NAME: VALUE` (repeatable)
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,

    /// MCP config with the server
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,

    /// Name of the server in --config, if it has several
    #[arg(long, value_name = "NAME", requires = "config")]
    pub(crate) server: Option<String>,

    /// Pass this environment variable to the server, in addition to PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Protocol version or era to use, such as `2025-06-18`, `handshake` or `stateless`; default:
    /// the newest that the server supports
    #[arg(long, value_name = "VERSION")]
    pub(crate) protocol: Option<ProtocolPin>,

    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,

    /// Record every message in this folder; it must not contain a run
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,

    /// Fail on any protocol problem of the server, even a tolerable one
    #[arg(long)]
    pub(crate) strict: bool,

    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The timeouts of a connection to a server.
#[derive(Debug, Args)]
pub(crate) struct TimeoutArgs {
    /// Timeout for starting and connecting to a server
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span)]
    pub(crate) connect_timeout: Duration,

    /// Response timeout; progress notifications restart it
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span)]
    pub(crate) timeout: Duration,

    /// Total response timeout, also while the server reports progress
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

/// The flags that change how a suite is loaded.
#[derive(Debug, Args)]
pub(crate) struct LoadingArgs {
    /// Local checkout of a source named in the suite (repeatable)
    #[arg(long = "source", value_name = "NAME=DIR", value_parser = source_root)]
    sources: Vec<(String, PathBuf)>,

    /// Use this MCP config instead of the suite's
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

/// The flag that chooses the output format.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people
    Text,
    /// One JSON document, for scripts
    Json,
}

#[cfg(test)]
mod tests;

//! The arguments of `proctor result`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{DiffArgs, OutputArgs, VerifyArgs};

/// List recorded runs, and show what happened in them.
///
/// RUN is a run's folder, `latest` for the newest run in `.proctor/runs`, or any part of a name there
/// that only one run has: `result list` shows the names.
#[derive(Debug, Subcommand)]
pub(crate) enum ResultCommand {
    List(RunsArgs),
    Show(ShowArgs),
    View(ViewArgs),
    Diff(DiffArgs),
    Verify(VerifyArgs),
}

/// List the runs in `.proctor/runs`, newest first, with pass rate and gate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result list
  proctor result list -o json | jq -r '.runs[] | select(.gate == \"missed\") | .name'

A run without an end is `unfinished`: it is still running, or was killed. `proctor check --resume` resumes it.
A `recording` was made by `proctor record` or `--record`, and has no gate.

Exit codes: 0 listed (unreadable runs are marked), 2 usage error or unreadable folder.")]
pub(crate) struct RunsArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Show the report of a run again, from its record.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result show latest
  proctor result show my-suite -o json > result.json
  proctor result show .proctor/runs/20261115-101500-my-suite --junit results.xml

Exit codes: 0 shown (even if the run failed), 2 usage error or unreadable record.")]
pub(crate) struct ShowArgs {
    /// The run: its folder, `latest`, or a unique part of its name
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Also write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Also write the result as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Show trials as conversations: prompt, model turns, calls with results, answer, checks.
///
/// The header has the outcome and its reason. Each check is shown with the calls that decide it. Long
/// arguments, results and texts lose their middle; `--full` shows everything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result view latest
  proctor result view latest fix-crash-loop             all trials of the case
  proctor result view latest fix-crash-loop 4           its fourth trial
  proctor result view my-suite codex/fix-crash-loop 4   its fourth trial with one agent
  proctor result view latest --raw | less               every recorded event
  proctor result view latest -o json | jq 'select(.event.frame)'

Exit codes: 0 shown, 2 usage error or unreadable record, 4 no such trial.")]
pub(crate) struct ViewArgs {
    /// The run: its folder, `latest`, or a unique part of its name
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Only this trial: `CASE`, `CASE NUMBER` or `AGENT/CASE NUMBER`, as reports name it
    #[arg(value_name = "TRIAL", conflicts_with = "trial")]
    pub(crate) names: Vec<String>,

    /// Only trials whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    pub(crate) trial: Option<String>,

    /// Show every recorded event in order, one per line
    #[arg(long)]
    pub(crate) raw: bool,

    /// Only findings (protocol problems), as events
    #[arg(long)]
    pub(crate) findings: bool,

    /// Don't shorten long messages and texts
    #[arg(long)]
    pub(crate) full: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ViewFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewFormat {
    /// Text for people
    Text,
    /// The recorded events as JSON, one per line
    Json,
}

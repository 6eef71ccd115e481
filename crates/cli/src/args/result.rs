//! The arguments of `proctor result`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::OutputArgs;

/// List recorded runs, and show what happened in them.
///
/// RUN is a run's folder, `latest` for the newest run in `.proctor/runs`, or any part of a name there
/// that only one run has: `result list` shows the names. RUN is also a packed run (`result export`) or a
/// result file of mcpchecker.
#[derive(Debug, Subcommand)]
pub(crate) enum ResultCommand {
    List(RunsArgs),
    Show(ShowArgs),
    View(ViewArgs),
    Export(ExportArgs),
    Convert(ConvertArgs),
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
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
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
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
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

/// Pack a run into one file, which every `result` command reads as a RUN.
///
/// The same run always gives the same bytes. Secrets are redacted in records, so a pack has none either.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result export latest --pack run.tar.gz
  proctor result view run.tar.gz fix-crash-loop 4
  tar -tzf run.tar.gz

Exit codes: 0 written, 2 usage error, unreadable record, or the file exists (`--force` replaces it).")]
pub(crate) struct ExportArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// The file to write, such as `run.tar.gz`
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: PathBuf,

    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// Convert a run for other programs: CI servers, spreadsheets, notebooks, tracing, mcpchecker.
///
/// `csv` is three tables: trials, calls and checks. `--out` names a folder for all of them, `--table` selects
/// one. `otlp` is OpenTelemetry traces as JSON, one trial per line. `mcpchecker` is its result file, which
/// holds one agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result convert latest --to junit --out results.xml
  proctor result convert latest --to csv --out tables
  proctor result convert latest --to csv --table calls | head
  proctor result convert latest --to mcpchecker --out mcpchecker-my-suite-out.json
  proctor result convert latest --to otlp | while read -r trial; do
    curl -sf -H 'Content-Type: application/json' -d \"$trial\" http://localhost:4318/v1/traces
  done

Exit codes: 0 converted (even if the run failed), 2 usage error or unreadable record.")]
pub(crate) struct ConvertArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// The format
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: ConvertFormat,

    /// Write to this file instead of stdout; with `--to csv` and no `--table`, to files in this folder
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    /// The table of `--to csv`
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<CsvTable>,

    /// The agent of `--to mcpchecker`, if the run has several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertFormat {
    /// JUnit XML, for CI servers
    Junit,
    /// Tables of trials, calls and checks
    Csv,
    /// The result as JSON, as `result show -o json`
    Json,
    /// The result file of mcpchecker
    Mcpchecker,
    /// OpenTelemetry traces
    Otlp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CsvTable {
    /// A row per trial
    Trials,
    /// A row per call
    Calls,
    /// A row per check
    Checks,
}

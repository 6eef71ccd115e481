//! The arguments of `proctor result`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{anyhow, bail};
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use proctor_core::pattern::Pattern;

use super::{DiffArgs, LoadingArgs, MergeArgs, OutputArgs, SummaryArgs, VerifyArgs};

/// List recorded runs, and show what happened in them.
///
/// RUN is a run's folder, `latest` for the newest run in `.proctor/runs`, or any part of a name there
/// that only one run has: `result list` shows the names. RUN is also a packed run (`result export`) or a
/// result file of mcpchecker.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  proctor result list
  proctor result summary latest
  proctor result view latest create-pod
  proctor result diff main.run latest -o markdown")]
pub(crate) enum ResultCommand {
    List(RunsArgs),
    Summary(SummaryArgs),
    Show(ShowArgs),
    Coverage(CoverageArgs),
    View(ViewArgs),
    Diff(DiffArgs),
    Verify(VerifyArgs),
    Regrade(RegradeArgs),
    Export(ExportArgs),
    Convert(ConvertArgs),
    Merge(MergeArgs),
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
  proctor result show latest -o markdown | gh pr comment --body-file -
  proctor result show .proctor/runs/20261115-101500-my-suite --junit results.xml
  proctor result show latest --failed
  proctor result show latest --case '^create-' --agent codex
  proctor result show latest --label suite=basic,suite=smoke

A filtered report has no gate and no exit code: those belong to the whole run.

Exit codes: 0 shown (even if the run failed), 2 usage error or unreadable record, 4 no trial selected.")]
pub(crate) struct ShowArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    /// Also write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Also write the result as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: ReportArgs,
}

/// The flag that chooses the format of a report.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people
    Text,
    /// One JSON document, for scripts
    Json,
    /// Markdown for comments and issues, at most 60,000 bytes
    Markdown,
}

/// The flags that select trials of a run.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Only trials that failed, timed out or errored
    #[arg(long)]
    pub(crate) failed: bool,

    /// Only cases whose name matches this regular expression
    #[arg(long, value_name = "REGEX", value_parser = Pattern::compile)]
    pub(crate) case: Option<Pattern>,

    /// Only trials of this agent, named with or without its model; can be repeated
    #[arg(long = "agent", value_name = "AGENT")]
    pub(crate) agents: Vec<String>,

    /// Only cases with these labels: `k=v,k=w,j=x` means k is v or w, and j is x
    #[arg(long, value_name = "LABELS")]
    pub(crate) label: Option<String>,
}

/// Show what agents used of the servers, and which tools, arguments, enum values, resources and prompts no case
/// touched.
///
/// Only calls of agents count, not those of steps. An argument that is `null` counts as not given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result coverage latest
  proctor result coverage latest -o json | jq -r '.servers[].tools[] | select(.calls == 0) | .name'

The weight of a tool's schema is an estimate: a quarter of the bytes of its name, description and schema.

Exit codes: 0 shown, 2 usage error or unreadable record.")]
pub(crate) struct CoverageArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

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
  proctor result view latest fix-crash-loop --follow    a trial that is running now
  proctor result view latest --max-events 15 --max-output-lines 4
  proctor result view latest -o json | jq 'select(.event.frame)'

On a terminal, long output goes through PROCTOR_PAGER or PAGER, or else `less`.

Exit codes: 0 shown, 2 usage error or unreadable record, 3 the followed run ended before its trial,
4 no such trial.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ViewArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Only this trial: `CASE`, `CASE NUMBER` or `AGENT/CASE NUMBER`, as reports name it
    #[arg(value_name = "TRIAL", conflicts_with = "trial")]
    pub(crate) names: Vec<String>,

    /// Only trials whose name contains TEXT
    #[arg(long, alias = "task", value_name = "TEXT")]
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

    /// Show a running trial as it goes on, until it ends
    #[arg(long, conflicts_with_all = ["raw", "findings", "output"])]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) lengths: LengthArgs,

    /// Write to the terminal directly, not through a pager
    #[arg(long)]
    pub(crate) no_pager: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ViewFormat,
}

/// The flags that set how much of a conversation is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LengthArgs {
    /// Show the model's turns; `--timeline=false` shows only calls and checks
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    #[arg(conflicts_with_all = ["raw", "findings"], hide_default_value = true)]
    pub(crate) timeline: bool,

    /// Show at most N turns and calls of each trial; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(conflicts_with_all = ["raw", "findings", "follow"])]
    pub(crate) max_events: usize,

    /// Show at most N lines of each text; 0 shows all lines
    #[arg(long, value_name = "N", conflicts_with_all = ["raw", "findings", "full"])]
    pub(crate) max_output_lines: Option<usize>,

    /// Wrap lines at N columns instead of the terminal's width
    #[arg(long, value_name = "N", conflicts_with_all = ["raw", "findings"])]
    pub(crate) max_line_length: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewFormat {
    /// Text for people
    Text,
    /// The recorded events as JSON, one per line
    Json,
}

/// Grade a recorded run again, with the checks as they are now.
///
/// Starts no agent and no server, and asks no model unless you pass `--judge`. Assertions are evaluated on
/// the recorded calls. Results of verify steps and judges are kept as recorded if the step is unchanged;
/// otherwise the trial is inconclusive. Trials that something other than a check decided (a timeout, a
/// server that died) keep their outcome.
///
/// The result is written to `grades/NAME.jsonl` in the folder of the run. The record does not change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result regrade latest                       the suite of the run, as it is now
  proctor result regrade latest --with stricter.yaml
  proctor result regrade latest --judge=openai:gpt-5  ask this judge about every judge step
  proctor result regrade latest -o json | jq '.results[] | select(.proctor.changed) | .taskName'

Exit codes: those of `check`, by the new grades: 0 every case meets its pass rule, 1 a case misses its
pass rule, 2 usage or configuration error, 3 inconclusive, 130 interrupted.")]
pub(crate) struct RegradeArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Eval file with the checks; default: that of the run, as it is now
    #[arg(long, value_name = "EVAL")]
    pub(crate) with: Option<PathBuf>,

    /// Ask the judge of the suite, or this model, about every judge step
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "absent, without a model, with one")]
    pub(crate) judge: Option<Option<String>>,

    /// Name of the file in `grades`; default: from the eval file and the hash of its checks
    #[arg(long, value_name = "NAME", conflicts_with = "dry_run")]
    pub(crate) name: Option<String>,

    /// Show the result without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Pack a run into one file, which every `result` command reads as a RUN.
///
/// The same run always gives the same bytes. Secrets are redacted in records, so a pack has none either.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result export latest --pack run.tar.gz
  proctor result view run.tar.gz fix-crash-loop 4
  proctor result export latest --pack run.tar.gz --force && tar -tzf run.tar.gz

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

/// Convert a run for other programs: browsers, CI servers, spreadsheets, notebooks, tracing, mcpchecker.
///
/// `csv` is three tables: trials, calls and checks; with selection rows also tools and confusion. `--out` names
/// a folder for all of them, `--table` selects one. `otlp` is OpenTelemetry traces as JSON, one trial per line. `mcpchecker` is its result file, which
/// holds one agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result convert latest --to junit --out results.xml
  proctor result convert latest --to junit --task create-pod
  proctor result convert latest --to html --out report.html
  proctor result convert latest --to csv --out tables
  proctor result convert latest --to csv --table calls | head
  proctor result convert latest --to mcpchecker --out mcpchecker-my-suite-out.json
  proctor result convert latest --to otlp --out traces.jsonl

To send the trials to a collector:
  proctor result convert latest --to otlp | while read -r trial; do
    curl -sf -H 'Content-Type: application/json' -d \"$trial\" http://localhost:4318/v1/traces
  done

Exit codes: 0 converted (even if the run failed), 2 usage error or unreadable record.")]
pub(crate) struct ConvertArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// The run, if the format is the first word, as in `convert junit FILE`
    #[arg(value_name = "FILE", hide = true, conflicts_with = "to")]
    pub(crate) file: Option<PathBuf>,

    /// The format
    #[arg(long, value_name = "FORMAT", required_unless_present = "file")]
    pub(crate) to: Option<ConvertFormat>,

    /// Write to this file instead of stdout; with `--to csv` and no `--table`, to files in this folder
    #[arg(long, alias = "output-file", value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    /// Only cases whose name contains TEXT, with `--to junit`, `markdown` or `json`
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,

    /// The table of `--to csv`
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<CsvTable>,

    /// The agent of `--to mcpchecker`, if the run has several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Maximum size of `--to html`, such as 25MB (the default): details of passed trials are left out first
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<ByteSize>,
}

impl ConvertArgs {
    /// The run and the format, whichever of the two ways they are written.
    pub(crate) fn what(&self) -> anyhow::Result<(&Path, ConvertFormat)> {
        match (&self.file, self.to) {
            (None, Some(format)) => Ok((&self.run, format)),
            (Some(file), _) => {
                let name = self.run.to_string_lossy();
                let format = ConvertFormat::from_str(&name, false);
                let format = format.map_err(|_| {
                    anyhow!(
                        "unknown format `{name}`; write `proctor result convert RUN --to FORMAT`"
                    )
                })?;
                Ok((file, format))
            }
            (None, None) => bail!("name the format with `--to`"),
        }
    }
}

/// A number of bytes, such as `25MB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let end = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let factor = match unit.trim() {
            "" | "B" => Some(1),
            "kB" | "KB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            _ => None,
        };
        let bytes = number.parse::<u64>().ok().zip(factor);
        let bytes = bytes.and_then(|(number, factor)| number.checked_mul(factor));
        let bytes = bytes.filter(|bytes| *bytes > 0);
        bytes
            .map(Self)
            .ok_or_else(|| "expected a size such as `500kB` or `25MB`".to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertFormat {
    /// JUnit XML, for CI servers
    Junit,
    /// Markdown, for pull requests
    Markdown,
    /// Tables of trials, calls and checks
    Csv,
    /// The result as JSON, as `result show -o json`
    Json,
    /// The result file of mcpchecker
    Mcpchecker,
    /// OpenTelemetry traces
    Otlp,
    /// One HTML file to open in a browser
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CsvTable {
    /// A row per trial
    Trials,
    /// A row per call
    Calls,
    /// A row per check
    Checks,
    /// A row per tool of selection rows, with precision and recall
    Tools,
    /// The confusion matrix of selection rows: expected and chosen tools
    Confusion,
}

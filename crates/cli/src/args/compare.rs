//! The arguments of `proctor result diff` and `proctor result verify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proctor_core::suite::gates_file::parse_share;

use super::{GateArgs, OutputArgs};

/// Compare two runs: is the new one worse?
///
/// Cases are paired by id and content: new, removed and changed cases are listed, not compared. The answer
/// is "Regression", "No regression shown" or "Inconclusive", from exact tests of the whole suite and of each
/// case with repeats. If BASE and NEW are folders that hold the runs of several suites, runs of the same suite are
/// compared, and regressions are corrected over the suites.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result diff main.run latest
  proctor result diff 20261115-101500-my-suite latest -o markdown > comment.md
  proctor result diff main.run latest -o json | jq -r '.worse[].case'
  proctor result diff runs/main runs/branch

Exit codes: 0 no regression shown, 1 regression, 2 usage error or unreadable record, 3 inconclusive:
trials without a verdict could change the answer, or there are too few trials to show a regression.")]
pub(crate) struct DiffArgs {
    /// The run to compare with: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "BASE", required_unless_present = "base_file")]
    pub(crate) base: Option<PathBuf>,

    /// The run to judge
    #[arg(value_name = "NEW", required_unless_present = "current")]
    pub(crate) new: Option<PathBuf>,

    /// BASE, as mcpchecker has it
    #[arg(long = "base", hide = true, value_name = "FILE")]
    #[arg(conflicts_with_all = ["base", "new"], requires = "current")]
    pub(crate) base_file: Option<PathBuf>,

    /// NEW, as mcpchecker has it
    #[arg(long, hide = true, value_name = "FILE", requires = "base_file")]
    pub(crate) current: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: DiffFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Text for people
    Text,
    /// Markdown for a comment on a pull request, at most 60,000 bytes
    Markdown,
    /// One JSON document
    Json,
}

/// Check a recorded run against gates, and exit accordingly.
///
/// Without gates, the run's own gates count: those of its command line and its eval file. Gates on rates
/// replace the default rule that every trial passes; a case with a pass rule of its own (`pass: 4/5`) must
/// still meet it. Trials without a verdict count as passed and as failed: if that changes the answer, it is
/// inconclusive.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result verify latest
  proctor result verify latest --min-pass-rate 90% --max-errors 0
  proctor result verify latest --min-lower-bound 0.8
  proctor result verify latest --no-regression main.run
  proctor result verify latest --task 0.8 --assertion 0.9   thresholds as mcpchecker has them

Exit codes: 0 met, 1 missed, 2 usage error or unreadable record, 3 inconclusive.")]
pub(crate) struct VerifyArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) gates: GateArgs,

    /// The share of trials whose verify steps all passed must be at least RATE
    #[arg(long, value_name = "RATE", value_parser = parse_share)]
    pub(crate) task: Option<f64>,

    /// The share of assertions that passed must be at least RATE
    #[arg(long, value_name = "RATE", value_parser = parse_share)]
    pub(crate) assertion: Option<f64>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

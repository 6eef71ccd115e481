//! The arguments of `proctor result summary`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Show what needs attention: cases that missed their pass rule first, then causes and totals.
///
/// Each case has a strip with a mark per trial: passed ▖ failed ▌ timed out ¦ errored ▯ cancelled or not run ·
/// (without UTF-8: . F T E C -). FLAKY means that trials failed although the case meets its pass rule.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result summary latest
  proctor result summary latest --failures           every cause, with its trials
  proctor result summary latest --cases --agents     every case, and every agent
  proctor result summary latest --task create        only cases with `create` in their name
  proctor result summary latest -o json | jq '.causes[] | {count, check, reason}'
  proctor result summary latest -o markdown | gh pr comment --body-file -
  proctor result summary latest --github-output >> \"$GITHUB_OUTPUT\"

The summary reads the index of the run and no trial, so it is quick for any number of trials.

Exit codes: 0 shown (even if the run failed), 2 usage error or unreadable record, 4 no trial selected.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct SummaryArgs {
    /// The run: its folder, `latest`, a unique part of its name, a pack, or a result file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Only cases whose name contains TEXT. The gate belongs to the whole run
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,

    /// List every case that failed or is inconclusive, and every cause
    #[arg(long, conflicts_with_all = ["failures", "cases", "agents"])]
    pub(crate) all: bool,

    /// List the causes of failed, timed-out and errored trials, with all their trials
    #[arg(long)]
    pub(crate) failures: bool,

    /// List every case with its trials, median duration, tokens and cost
    #[arg(long)]
    pub(crate) cases: bool,

    /// List every agent with its pass rate, errors, tokens, cost and median duration
    #[arg(long)]
    pub(crate) agents: bool,

    /// Print the numbers of the run as `key=value` lines, for the file `$GITHUB_OUTPUT`
    #[arg(long, conflicts_with_all = ["all", "failures", "cases", "agents", "output"])]
    pub(crate) github_output: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(conflicts_with_all = ["all", "failures", "cases", "agents"])]
    pub(crate) output: SummaryFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryFormat {
    /// Text for people
    Text,
    /// One JSON document, for scripts
    Json,
    /// Markdown for comments and issues, at most 60,000 bytes
    Markdown,
    /// Annotations for GitHub Actions, at the lines of the failed checks
    Github,
}

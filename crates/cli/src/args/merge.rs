//! The arguments of `proctor result merge`.

use std::path::PathBuf;

use clap::Args;

use super::ReportArgs;

/// Merge the shards of a run into one run, and evaluate its gate.
///
/// Shards come from `proctor check --shard`. The merged run is an ordinary run: all `result` commands and
/// `proctor view` read it. Proctor refuses shards of different plans, and says what differs. A trial that was
/// executed twice counts once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor result merge shards/*
  proctor result merge shards/* --into merged --junit results.xml
  proctor result merge shards/* -o json > result.json
  proctor result merge s3://evals/nightly/4711

Exit codes: 0 complete and the gate is met, 1 the gate is missed, 2 usage error, different plans or an
unreadable record, 3 inconclusive: shards or trials are missing, or trials have no verdict.")]
pub(crate) struct MergeArgs {
    /// The folders of the shards, or the URL of a run in a store: `STORE/RUN-ID`
    #[arg(value_name = "FOLDER|URL", required = true)]
    pub(crate) shards: Vec<PathBuf>,

    /// Put the merged run into this folder; default: a new one in `.proctor/runs`
    #[arg(long, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,

    /// Also write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Also write the result as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Also write the result as one HTML file, to open in a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: ReportArgs,
}

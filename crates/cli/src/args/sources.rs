//! The arguments of `proctor sources`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// Show, fetch and update the git repositories that a suite takes tasks from.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  proctor sources list eval.yaml
  proctor sources fetch eval.yaml
  proctor sources update eval.yaml --name shared")]
pub(crate) enum SourcesCommand {
    /// Show the sources of suites, their pinned commits, and whether they are in the cache
    ///
    /// Uses no network.
    #[command(after_help = "Examples:
  proctor sources list eval.yaml
  proctor sources list eval.yaml -o json | jq -r '.sources[].commit'

Exit codes: 0 listed, 2 usage or configuration error.")]
    List(SourcesListArgs),
    /// Fetch the sources that are not in the cache, at their pinned commits
    ///
    /// Sources without a pin are pinned in `proctor.lock`, beside the eval file. Fetching runs no code of a source;
    /// `proctor check` runs the scripts of its tasks.
    #[command(after_help = "Examples:
  proctor sources fetch eval.yaml
  proctor sources fetch eval.yaml && proctor check eval.yaml --locked

Exit codes: 0 fetched, 2 usage error or not fetched, 130 interrupted.")]
    Fetch(SourcesArgs),
    /// Pin the commits that branches and tags stand for now
    ///
    /// Shows the old and the new commit of each source, and writes the new one to `proctor.lock`. Review the change
    /// as you review code: the scripts of a source run on your machine.
    #[command(after_help = "Examples:
  proctor sources update eval.yaml
  proctor sources update eval.yaml --name shared
  proctor sources update eval.yaml && git diff proctor.lock

Exit codes: 0 updated, 2 usage error or not fetched, 130 interrupted.")]
    Update(SourcesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SourcesListArgs {
    /// Eval files of suites
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SourcesArgs {
    /// Eval file of the suite
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Only the source with this name (repeatable)
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

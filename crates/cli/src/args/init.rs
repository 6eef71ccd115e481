//! The arguments of `proctor init`.

use std::path::PathBuf;

use clap::Args;

use super::ServerArgs;

/// Write a small example suite. Never overwrites a file.
///
/// With `--from`, write a suite from a session that `proctor record` recorded: its server, its calls as checks, and a
/// script that makes the calls again. Values that look volatile (ids, times, paths) are loosened in the checks.
///
/// With `--selection`, write `selection.yaml` with one row per tool of a server. Its prompts are placeholders that
/// you have to replace: `check` refuses them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor init demo
  proctor init git-suite --from latest
  proctor init --selection -- uvx mcp-server-git
  proctor init evals --selection --config mcp.json --server git")]
pub(crate) struct InitArgs {
    /// Folder to write to
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Write a suite from this recording: its folder, `latest`, a unique part of its name, or a pack
    #[arg(long, value_name = "RUN", conflicts_with = "selection")]
    pub(crate) from: Option<PathBuf>,

    /// Write a selection file for the server instead of a suite
    #[arg(long)]
    pub(crate) selection: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

//! The arguments of `proctor view`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

/// Show runs in the browser: results, trials, comparison with other runs, history.
///
/// Serves the pages of the HTML report on this machine, and updates them while a run goes on. Without an argument,
/// shows the history of `.proctor/runs`. Only a browser that opens the printed URL can read the pages: the URL holds a
/// random token.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor view                        the history of .proctor/runs
  proctor view latest --open          the newest run, also while it is running
  proctor view ci-artifacts/          every run in this folder
  proctor view run.tar.gz             a packed run
  proctor view --port 8080 -o json    for scripts: the URL as JSON

Through an SSH tunnel, use the same port on both sides: `ssh -L 8080:127.0.0.1:8080 host`.

Exit codes: 0 stopped with Ctrl-C, 2 usage error or unreadable record.")]
pub(crate) struct ViewerArgs {
    /// A run, a folder of runs, a pack, or a result file; default: .proctor/runs
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,

    /// Port on 127.0.0.1; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Open the page in the browser (`BROWSER`, or the default one)
    #[arg(long)]
    pub(crate) open: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

//! The arguments of `proctor doctor`.

use std::path::PathBuf;

use clap::Args;

use super::{LoadingArgs, OutputArgs, TimeoutArgs};

/// Check this machine: what is installed and works, what is missing, and how to mend it.
///
/// Checks Proctor itself and whether it can end the processes of a program; the folder for records; the programs
/// that servers often need; the agents that Proctor knows; and which API keys are set. It never shows a key.
///
/// With FILE, also checks what the suite needs: it starts each server and asks what it offers, and looks for the
/// agents, keys and judge of the suite. It asks no model and runs no steps.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor doctor
  proctor doctor eval.yaml && proctor check eval.yaml
  proctor doctor --reach
  proctor doctor -o json | jq -r '.checks[] | select(.state != \"ok\") | .remedy'

States:
  ok       works
  missing  not here, but not required
  failed   required by Proctor or by the suite

Exit codes: 0 all that is required works, 1 a check failed, 2 usage error.")]
pub(crate) struct DoctorArgs {
    /// Eval file whose servers, agents and judge are checked
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Also connect to the APIs of models whose key is set, without sending the key
    #[arg(long)]
    pub(crate) reach: bool,

    /// Pass this environment variable to servers, and to `acp` and `commands` agents
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

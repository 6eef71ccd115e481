//! The arguments of `proctor agents`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

/// Show which agents can run on this machine, and what the others need.
///
/// Without FILE, lists every agent that Proctor knows: the built-in agent (`llm-agent`) with each model
/// provider, and the external agents. Proctor looks for each program in PATH and starts it to read its version
/// (ACP agents get an `initialize` request). It checks whether the key variables are set, never prints their
/// values, and calls no model.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor agents
  proctor agents my-agent.yaml
  proctor agents --agent claude-code && proctor check eval.yaml --agent claude-code
  proctor agents -o json | jq -r '.agents[] | select(.usable) | .name'

States:
  ready      can run
  unchecked  program found, but not started
  no key     runs only on a script: --agent NAME=scripted:FILE
  missing    program not found
  broken     program crashed, hung or printed no version
  unfit      can't run; the list below the table says why
Wide terminals also show the program's path, and TAP: whether Proctor can redirect the agent's model
requests, which scripts and --model-tap need.

Exit codes: 0 shown; with --agent, 0 it can run, 1 it can't; 2 usage error or invalid file.")]
pub(crate) struct AgentsArgs {
    /// Agent files to check instead of the agents that Proctor knows
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Check only this agent, written as for `proctor check`: `builtin.NAME` or an agent file, with an
    /// optional `=MODEL` (repeatable)
    #[arg(long = "agent", value_name = "AGENT[=MODEL]", conflicts_with = "files")]
    pub(crate) agents: Vec<String>,

    /// Pass this environment variable to `acp` and `commands` agents, in addition to PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Don't start programs to read their versions
    #[arg(long)]
    pub(crate) no_versions: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

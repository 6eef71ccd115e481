//! The arguments of `proctor agents`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

/// Show which agents can be run here and now, and what the others lack.
///
/// Without FILE, every agent that Proctor knows: its own loop (`llm-agent`) on each provider of models,
/// and the programs that it can drive. Programs are looked for in PATH and started without work: asked for
/// their versions, or greeted if they speak ACP. Variables are looked at, and never shown; no model is asked.
///
/// `ready` can be run; `unchecked` has a program that was not started; `broken` was started, and
/// crashed, hung or printed no version; `no key` can be run on a script, with `--agent NAME=scripted:FILE`; of `missing`, the
/// program is not there. Wide terminals show where programs are, and as TAP whether the agent can be told
/// where its model is: then scripts and `--model-tap` work with it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor agents
  proctor agents my-agent.yaml
  proctor agents --agent claude-code && proctor check eval.yaml --agent claude-code
  proctor agents -o json | jq -r '.agents[] | select(.usable) | .name'

Exit codes: 0 shown; with `--agent`, 0 it can be run and 1 it can't; 2 a file is wrong.")]
pub(crate) struct AgentsArgs {
    /// Agent files to look at, instead of the agents that Proctor knows
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Look at this agent only, written as for `check`: `builtin.NAME` or an agent file, with a model behind
    /// `=`. May be repeated
    #[arg(long = "agent", value_name = "AGENT[=MODEL]", conflicts_with = "files")]
    pub(crate) agents: Vec<String>,

    /// An environment variable that `acp` and `commands` agents get besides PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Start nothing: don't ask programs for their versions
    #[arg(long)]
    pub(crate) no_versions: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

//! The arguments of `proctor check`, and of whatever else runs trials.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{LoadingArgs, OutputArgs, PlanArgs, span};

/// Run a suite: agents do its tasks on real servers, and everything is recorded and checked.
///
/// Every server is started before the first model is asked; one that does not come up ends the run.
/// Each trial gets servers of its own. What happens is kept in a folder under `.proctor/runs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor check eval.yaml
  proctor check eval.yaml -n 5 --jobs 4                   five trials of each case, four at once
  proctor check eval.yaml -r '^create-' --fail-fast
  proctor check eval.yaml --model scripted:dry-run.yaml   a dry run: no key, no cost
  proctor check eval.yaml --agent claude-code --agent codex   one table at the end
  proctor check eval.yaml --budget-usd 2.50 -o json > result.json
  proctor check --replay latest   the models' replies, again
  proctor check --resume latest

RUN is a run's folder, `latest`, or a unique part of its name (`proctor result list`).

Exit codes: 0 every trial passed (or as many as `pass` asks for), 1 they did not, 2 usage or
configuration, and nothing was started, 3 it can't be told: trials ended in errors, or were not
run, 4 nothing selected, 130 interrupted.")]
pub(crate) struct CheckArgs {
    /// The eval file
    #[arg(value_name = "FILE", required_unless_present_any = ["resume", "retry_errors", "replay"])]
    pub(crate) file: Option<PathBuf>,

    /// Go on with a run: only trials without an end are run, and those that were cancelled
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "retry_errors", "record"])]
    pub(crate) resume: Option<PathBuf>,

    /// Go on with a run, and try again what ended in an error; what passed or failed stays
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "record"])]
    pub(crate) retry_errors: Option<PathBuf>,

    /// Let models say what they said in an earlier run: no key, no cost. Servers are real. Without FILE,
    /// the same suite with the same agents
    #[arg(long, value_name = "RUN", conflicts_with_all = ["resume", "retry_errors"])]
    pub(crate) replay: Option<PathBuf>,

    /// A question that is not the one that was recorded is an error
    #[arg(long, requires = "replay")]
    pub(crate) replay_strict: bool,

    /// Run every case with this agent instead of the suite's own: `builtin.NAME` or an agent file, with
    /// a model behind `=` where it takes one. Repeat it to compare agents; `proctor agents` lists them
    #[arg(long = "agent", value_name = "AGENT[=MODEL]")]
    pub(crate) agents: Vec<String>,

    /// Let external agents reach their models through Proctor: exact usage, budgets and turns
    #[arg(long)]
    pub(crate) model_tap: bool,

    /// The model of the agents given with `--agent`; without any, run every case with the built-in
    /// agent on this model, such as `openai:gpt-5` or `scripted:FILE`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Let this model judge, instead of the suite's own judge
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Option<String>,

    /// An environment variable that servers, and agents with `acp` or `commands`, get besides PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Run evals that servers ship (`taskSets[].evals`) without asking
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Where consent to run shipped evals is kept
    #[arg(long, value_name = "FILE")]
    pub(crate) consent: Option<PathBuf>,

    /// Cap the turns of shipped scenarios; by default their own `maxTurns`, or 10
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// How long a server's answer is waited for, counted again when the server reports progress
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "60s")]
    pub(crate) call_timeout: Duration,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// How trials are run, and what is written of them.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RunArgs {
    /// Run this many trials at once, of those tasks that say `parallel: true`; the others run
    /// first, one by one
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value = "1")]
    pub(crate) parallel: u32,

    /// Run this many trials at once, whatever the tasks say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "parallel")]
    pub(crate) jobs: Option<u32>,

    /// Stop at the first trial that fails or times out
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Stop when models have cost this much, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) budget_usd: Option<f64>,

    /// Stop when models have used this many tokens, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_tokens: Option<u64>,

    /// A file with prices of models, besides those that Proctor knows
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,

    /// Fail trials whose server breaks the protocol, even in ways that can be tolerated, and refuse
    /// suites with unknown keys
    #[arg(long)]
    pub(crate) strict: bool,

    /// Keep the run in this folder, which must not hold one yet
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,

    /// Leave the commit, branch and CI job out of the record
    #[arg(long)]
    pub(crate) no_context: bool,

    /// Write the result as JSON to this file too
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Write the result as JUnit XML to this file too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Show each phase and call as it happens
    #[arg(short, long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("write an amount above zero, such as 2.50".to_owned()),
    }
}

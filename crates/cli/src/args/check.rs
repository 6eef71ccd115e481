//! The arguments of `proctor check`, and those that it shares with `proctor evals run`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proctor_core::shard::{Shard, ShardError, is_run_id};
use proctor_core::suite::protocol::ProtocolPin;
use proctor_record::event::PlannedProfile;

use super::{GateArgs, LoadingArgs, PlanArgs, ReportArgs, span};

/// Run suites: agents do its tasks with real servers; Proctor records and checks everything.
///
/// Proctor starts every server once before the first model request; if a server fails to start, the run
/// ends. Each trial (one run of a case by one agent) gets its own servers. The record is a folder in
/// `.proctor/runs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  proctor check eval.yaml
  proctor check eval.yaml -n 5 -j 4                       five trials of each case, four at once
  proctor check eval.yaml -r '^create-' --fail-fast
  proctor check eval.yaml --last-failed                   the cases that failed in the latest run
  proctor check eval.yaml --watch                         again whenever a file changes
  proctor check eval.yaml --model scripted:dry-run.yaml   a dry run: no key, no cost
  proctor check eval.yaml --agent claude-code --agent codex   compare two agents
  proctor check eval.yaml --budget-usd 2.50 -o json > result.json
  proctor check a.yaml suites/ --budget-usd 5             several suites, one budget for all
  proctor check suites/ --profile pr                      flags from `proctor.yaml`
  proctor check --replay latest   replay the models' replies
  proctor check --resume latest
  proctor check eval.yaml --shard 3/16 --record shards/3   the third of 16 parts, each on its own machine
  proctor check eval.yaml --shard auto --store s3://evals/nightly   parts of a job array, in a bucket

RUN is a run's folder, `latest`, or a unique part of its name (`proctor result list`).

Exit codes: 0 every case met its pass rule (by default: every trial passed), 1 a case missed its
pass rule, 2 usage or configuration error (no trial was started), 3 inconclusive: trials errored or
did not run, 4 nothing selected or nothing to rerun, 130 interrupted. Several suites: the worst one,
130 before 1 before 3. With --shard: 0 each trial of the shard has a verdict, 3 some have none; the
gate is that of `proctor result merge`.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct CheckArgs {
    /// Eval files of suites, or folders: a folder stands for all eval files in it
    #[arg(value_name = "FILE", required_unless_present_any = ["resume", "retry_errors", "replay"])]
    pub(crate) files: Vec<PathBuf>,

    /// Resume a run: run the trials that did not finish or were cancelled
    #[arg(long, value_name = "RUN", conflicts_with_all = ["files", "max_estimate_usd", "retry_errors", "record", "last_failed", "rerun_errors"])]
    pub(crate) resume: Option<PathBuf>,

    /// Resume a run and retry its errored trials; passed and failed trials stay
    #[arg(long, value_name = "RUN", conflicts_with_all = ["files", "max_estimate_usd", "record", "last_failed", "rerun_errors"])]
    pub(crate) retry_errors: Option<PathBuf>,

    /// Run the suite again whenever one of its files changes, until Ctrl-C
    #[arg(long, requires = "files", conflicts_with_all = ["record", "replay"])]
    pub(crate) watch: bool,

    /// Take defaults for flags from this profile in `proctor.yaml`, in the folder of the suite or above it
    #[arg(long, value_name = "NAME", requires = "files", conflicts_with_all = ["resume", "retry_errors"])]
    pub(crate) profile: Option<String>,

    /// The profile, once its values are among these arguments.
    #[arg(skip)]
    pub(crate) applied_profile: Option<PlannedProfile>,

    /// Replay the model replies of an earlier run: no key, no cost. Servers are real. Without FILE, runs
    /// the same suite with the same agents
    #[arg(long, value_name = "RUN", conflicts_with_all = ["resume", "retry_errors"])]
    pub(crate) replay: Option<PathBuf>,

    /// Run only this part of the trials, such as `3/16`; `auto` takes it from the engine that runs the job
    ///
    /// All shards together run every trial once; `proctor result merge` puts them together and evaluates the
    /// gate. The exit code is about this shard's execution: 0 each of its trials has a verdict, passed or
    /// not, 3 some are inconclusive (run the same command again: it runs only those). With `--record`, a
    /// retry continues the shard in that folder. `auto` knows Kubernetes Indexed Jobs (set `PROCTOR_SHARDS`),
    /// Slurm arrays, AWS Batch arrays, GitLab, Buildkite and CircleCI; `PROCTOR_SHARD=3/16` overrides them.
    /// Budgets are those of the whole run.
    #[arg(long, value_name = "INDEX/COUNT|auto", conflicts_with_all = ["resume", "retry_errors", "watch", "last_failed", "rerun_errors", "stop_when_decided"])]
    pub(crate) shard: Option<ShardArg>,

    /// Also upload the shard to this store: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or `file:///FOLDER`
    ///
    /// Trials are uploaded as they end, below `URL/RUN-ID`. A retried shard runs only what the store lacks, on
    /// any machine; of two workers on the same shard, the first result of a trial counts. The run ends when
    /// everything is uploaded, else with exit code 3. Credentials come from the environment: AWS_*,
    /// GOOGLE_*, AZURE_*; servers and agents don't get them.
    #[arg(long, value_name = "URL", requires = "shard")]
    pub(crate) store: Option<String>,

    /// How long an upload or download is retried
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "5m")]
    pub(crate) store_timeout: Duration,

    /// Name of the run that the shards belong to; default: `PROCTOR_RUN_ID`, `SLURM_ARRAY_JOB_ID`,
    /// `CI_PIPELINE_ID` or `GITHUB_RUN_ID`. Shards of different runs can't be merged
    #[arg(long, value_name = "ID", value_parser = run_id, requires = "shard")]
    pub(crate) run_id: Option<String>,

    /// Fail if a model request differs from the recorded one
    #[arg(long, requires = "replay")]
    pub(crate) replay_strict: bool,

    /// Run every case with this agent instead of the suite's: `builtin.NAME` or an agent file, with an
    /// optional `=MODEL`. Repeat it to compare agents. `proctor agents` lists them
    #[arg(long = "agent", value_name = "AGENT[=MODEL]")]
    pub(crate) agents: Vec<String>,

    /// Route the model requests of external agents through Proctor, for exact usage, budgets and turn
    /// limits
    #[arg(long)]
    pub(crate) model_tap: bool,

    /// Model of the agents given with `--agent`; without `--agent`, run every case with the built-in
    /// agent and this model, such as `openai:gpt-5` or `scripted:FILE`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Judge with this model instead of the suite's judge
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Option<String>,

    /// Pass this environment variable to servers, and to agents with `acp` or `commands`, in addition to
    /// PATH, HOME and the like
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// Protocol version or era of all servers, such as `2025-06-18`, `handshake` or `stateless`; default:
    /// the newest that a server supports. External agents choose their own
    #[arg(long, value_name = "VERSION")]
    pub(crate) protocol: Option<ProtocolPin>,

    /// Don't ask for consent: run the evals that servers ship (`taskSets[].evals`), and fetch and pin new
    /// sources and extensions
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Fetch nothing and leave `proctor.lock` as it is: fail if a source or an extension is not pinned, or not
    /// in the cache
    #[arg(long)]
    pub(crate) locked: bool,

    /// Consent file for shipped evals
    #[arg(long, value_name = "FILE")]
    pub(crate) consent: Option<PathBuf>,

    /// Maximum turns of shipped scenario evals; default: their `maxTurns`, or 10
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Response timeout of servers; progress notifications restart it
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "60s")]
    pub(crate) call_timeout: Duration,

    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// The flags for running trials and writing results.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RunArgs {
    /// Run up to N trials at once, for tasks with `parallel: true`; the other tasks run first, one at a
    /// time
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value = "1")]
    pub(crate) parallel: u32,

    /// Run up to N trials at once, also of tasks without `parallel: true`
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "parallel")]
    pub(crate) jobs: Option<u32>,

    /// Run only the cases that failed or timed out in the latest run of this suite in `.proctor/runs`
    #[arg(long)]
    pub(crate) last_failed: bool,

    /// Run only the cases with errored, cancelled or missing trials in that run; with --last-failed, both
    #[arg(long)]
    pub(crate) rerun_errors: bool,

    /// Stop after the first trial that fails or times out
    #[arg(long)]
    pub(crate) fail_fast: bool,

    /// Leave the folders of these trials (`{trial.dir}`) in place; the report names them
    #[arg(long, value_name = "TRIALS", value_enum, default_value_t = KeepArg::Failed)]
    pub(crate) keep: KeepArg,

    /// Don't start trials that can't change the answer of the gate: those of a case whose pass rule is
    /// decided; with a gate on rates, all trials once an anytime-valid 95% interval decides
    #[arg(long)]
    pub(crate) stop_when_decided: bool,

    /// Stop when the models' cost reaches this amount, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) budget_usd: Option<f64>,

    /// Stop when the models' token usage (input and output) reaches N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_tokens: Option<u64>,

    /// Don't start if the estimated cost, from earlier runs of the same cases, can exceed this amount in US
    /// dollars, or is unknown
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_estimate_usd: Option<f64>,

    /// File with model prices, in addition to the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,

    /// Fail trials with any protocol problem of a server, even a tolerable one, and reject suites with
    /// unknown keys
    #[arg(long)]
    pub(crate) strict: bool,

    /// Record the run in this folder; it must not contain a run. Several suites: each in a folder in it
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,

    /// Don't record the commit, branch and CI job
    #[arg(long)]
    pub(crate) no_context: bool,

    /// Don't write annotations and a job summary on GitHub Actions
    #[arg(long)]
    pub(crate) no_github: bool,

    /// Also write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Also write the result as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Also write the result as one HTML file, to open in a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Show each phase and call as it happens
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Show no progress, only warnings, errors and the report
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) output: ReportArgs,

    #[command(flatten)]
    pub(crate) gates: GateArgs,
}

/// The trials whose folders are left in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepArg {
    /// Trials that failed, errored or timed out
    Failed,
    All,
    None,
}

/// A shard, or the word that leaves it to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardArg {
    Auto,
    Shard(Shard),
}

impl FromStr for ShardArg {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        match text {
            "auto" => Ok(Self::Auto),
            text => text.parse().map(Self::Shard),
        }
    }
}

fn run_id(text: &str) -> Result<String, String> {
    if is_run_id(text) {
        return Ok(text.to_owned());
    }
    Err(
        "use letters, digits, `.`, `_` and `-`, at most 128, beginning with a letter or digit"
            .to_owned(),
    )
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("write an amount above zero, such as 2.50".to_owned()),
    }
}

//! The options of a run, for command lines and programs alike.
//!
//! Main types: [`CheckOptions`] for a suite, [`EvalsOptions`] for shipped evals, and
//! [`RunOptions`], which both contain.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proctor_core::plan::PlanOptions;
use proctor_core::shard::Shard;
use proctor_core::suite::Server;
use proctor_core::suite::protocol::ProtocolPin;
use proctor_record::event::{PassHatGate, PlannedProfile};
use proctor_wire::client::Timeouts;

use super::offers::EvalSelection;
use crate::trial_folder::KeepOption;

/// The run to make: a new one, a resumed one, or a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSource {
    /// A new run of the suite in this eval file.
    File(PathBuf),
    /// The rest of an earlier run.
    Resume {
        folder: PathBuf,
        /// Whether errored trials are run again too.
        retry_errors: bool,
    },
    /// A new run in which models reply as they did in an earlier one.
    Replay {
        folder: PathBuf,
        /// The eval file, if it is not that of the earlier run.
        file: Option<PathBuf>,
        /// Whether a request that differs from the recorded one is an error.
        strict: bool,
    },
}

/// The options for a run of a suite.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    pub source: RunSource,
    /// Selection, repeats and limits; `None` if the command line names none of them.
    pub plan: Option<PlanOptions>,
    /// Checkouts of the suite's sources, by name.
    pub source_roots: BTreeMap<String, PathBuf>,
    /// Whether to fetch nothing, and to leave `proctor.lock` as it is.
    pub locked: bool,
    /// An MCP config in place of the suite's own.
    pub mcp_config: Option<PathBuf>,
    /// Agents in place of the suite's own: `builtin.NAME[=MODEL]`, or paths of agent files.
    pub agents: Vec<String>,
    /// Whether external agents reach their models through Proctor.
    pub model_tap: bool,
    /// The model of `agents`; without any, of a built-in agent in place of the suite's.
    pub model: Option<String>,
    /// The judge's model, in place of the suite's own.
    pub judge: Option<String>,
    /// Variables that servers get in addition to the default ones.
    pub pass_env: Vec<String>,
    /// The turn limit for shipped scenarios; by default their own, or 10.
    pub max_turns: Option<u32>,
    /// The protocol version or era of all servers, in place of the suite's own.
    pub protocol: Option<ProtocolPin>,
    /// The response timeout of servers.
    pub call_timeout: Duration,
    pub consent: ConsentTerms,
    pub run: RunOptions,
}

impl CheckOptions {
    /// Options for the suite in an eval file, with defaults.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::of(RunSource::File(path.into()))
    }

    /// Options for a source, with defaults.
    pub fn of(source: RunSource) -> Self {
        Self {
            source,
            plan: None,
            source_roots: BTreeMap::new(),
            locked: false,
            mcp_config: None,
            agents: Vec::new(),
            model_tap: false,
            model: None,
            judge: None,
            pass_env: Vec::new(),
            max_turns: None,
            protocol: None,
            call_timeout: Duration::from_mins(1),
            consent: ConsentTerms::default(),
            run: RunOptions::default(),
        }
    }
}

/// The options for a run of shipped evals.
#[derive(Debug, Clone)]
pub struct EvalsOptions {
    pub servers: Vec<Server>,
    /// A file with evals, in place of those that the only server ships.
    pub own_evals: Option<PathBuf>,
    pub choice: EvalSelection,
    pub model: Option<String>,
    pub judge: Option<String>,
    pub pass_env: Vec<String>,
    /// The number of trials per eval.
    pub runs: Option<u32>,
    /// The turn limit for scenarios; by default their own, or 10.
    pub max_turns: Option<u32>,
    /// The time limit of each eval.
    pub task_timeout: Option<Duration>,
    pub timeouts: Timeouts,
    pub consent: ConsentTerms,
    pub run: RunOptions,
}

/// How consent is given: to run shipped evals, and to use new sources and extensions.
#[derive(Debug, Clone, Default)]
pub struct ConsentTerms {
    /// Whether the user agreed beforehand with `--yes`.
    pub yes: bool,
    pub file: Option<PathBuf>,
}

/// The options for running trials of any kind.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Whether a protocol problem that can be tolerated fails a trial.
    pub strict: bool,
    pub budget_usd: Option<f64>,
    pub budget_tokens: Option<u64>,
    /// A file with prices of models, in addition to the built-in ones.
    pub prices: Option<PathBuf>,
    /// The run's folder; if absent, a new one under `.proctor/runs`.
    pub folder: Option<PathBuf>,
    pub width: WidthOption,
    /// Whether the first trial that fails or times out ends the run.
    pub fail_fast: bool,
    /// Which folders of trials are left in place.
    pub keep: KeepOption,
    /// Whether to omit the commit and the CI job from the record.
    pub no_context: bool,
    /// The gates of the command line, each in place of the suite's own.
    pub gates: GateOptions,
    pub rerun: RerunOption,
    /// The highest estimated cost in US dollars with which a run starts. An unknown one exceeds it.
    pub max_estimate_usd: Option<f64>,
    /// Whether trials that can't change the answer of the gate are not started.
    pub stop_when_decided: bool,
    /// The profile that set some of these options, for the record.
    pub profile: Option<PlannedProfile>,
    /// The part of the run that this process executes, if several machines execute it.
    pub shard: Option<ShardOption>,
}

/// The part of a run that a process executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardOption {
    pub shard: Shard,
    /// The name of the run that the shards belong to.
    pub run_id: Option<String>,
}

/// The conditions for success of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateOptions {
    pub min_pass_rate: Option<f64>,
    pub min_lower_bound: Option<f64>,
    pub pass_hat: Option<PassHatGate>,
    pub max_errors: Option<u32>,
    /// The folder of the run that this run must not be worse than.
    pub no_regression: Option<PathBuf>,
}

/// Which cases of the latest run of the same suite to run, instead of all. With both, either is enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RerunOption {
    /// Cases with a trial that failed or timed out.
    pub failed: bool,
    /// Cases with a trial that has no verdict: it errored, was cancelled or did not run.
    pub errors: bool,
}

impl RerunOption {
    pub fn is_set(self) -> bool {
        self.failed || self.errors
    }
}

/// How many trials run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WidthOption {
    /// Tasks with `parallel: true`, this many at once, after all others one by one.
    Parallel(u32),
    /// Any trials, this many at once.
    Jobs(u32),
}

impl WidthOption {
    /// The requested number of parallel trials.
    pub fn asked(self) -> u32 {
        match self {
            Self::Parallel(width) | Self::Jobs(width) => width,
        }
    }
}

impl Default for WidthOption {
    fn default() -> Self {
        Self::Parallel(1)
    }
}

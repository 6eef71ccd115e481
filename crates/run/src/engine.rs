//! The engine: a suite in, a record and a summary out.
//!
//! Its main type is [`Engine`]. It loads and plans a suite, opens what the suite needs, runs its
//! trials and sums them up. The caller receives events and can interrupt a run at any time. You can
//! use it from a test of your own, as the command line does:
//!
//! ```no_run
//! use proctor_core::gate::Gate;
//! use proctor_run::engine::{CheckOptions, Engine, EngineError};
//!
//! # fn main() -> Result<(), EngineError> {
//! let engine = Engine::of_this_process()?;
//! let result = engine.check_blocking(&CheckOptions::file("examples/quickstart/eval.yaml"))?;
//! assert_eq!(result.gate, Gate::Met, "{:?}", result.gate.reasons());
//! assert_eq!(result.summary.counts().passed, 3);
//! # Ok(())
//! # }
//! ```

pub mod calibrate;
mod changed;
mod config;
pub mod consent;
mod contract;
pub mod diagnosis;
mod ending;
mod error;
pub mod estimate;
pub mod evals;
pub mod extensions;
mod folder;
pub mod gates;
pub mod host;
mod labels;
pub mod offers;
mod opening;
pub mod options;
mod other_models;
mod planning;
mod prepare;
pub mod recording;
pub mod regrade;
mod rerun;
mod run_steps;
mod running;
pub mod runs;
mod servers;
mod sharding;
mod shipped;
mod source_context;
pub mod sources;
pub mod suites;
mod width;

use std::path::{Path, PathBuf};

use proctor_contain::process::ProcessEnds;
use proctor_core::merge::{MergeError, MergedRun};
use proctor_core::suite::{Environment, Server};
use proctor_record::event::Actor;
use proctor_record::redact::{Redactor, secrets_of};
use proctor_wire::answers::ServerRequestReplies;
use proctor_wire::auth::Credentials;
use proctor_wire::client::{ConnectOptions, Timeouts};
use proctor_wire::recorder::Recorder;
use tokio::sync::mpsc::unbounded_channel;

use crate::trial_folder::TrialFolder;

pub use self::ending::{RunResult, RunStopCause};
pub use self::error::EngineError;
pub use self::host::{Host, NonInteractiveHost};
pub use self::labels::TrialLabels;
pub use self::options::{CheckOptions, EvalsOptions, RunSource};
pub use self::prepare::PreparedRun;
pub use self::running::{RunCompletion, RunInProgress};
pub use self::suites::{PreparedSuites, SuitesInProgress, SuitesResult};

/// Runs suites and shipped evals.
#[derive(Debug, Clone)]
pub struct Engine {
    environment: Environment,
    program: PathBuf,
    command: Vec<String>,
    credentials: Credentials,
}

impl Engine {
    /// Creates an engine with this environment. `program` is the `proctor` binary, which guards all
    /// processes that the engine starts.
    pub fn new(environment: Environment, program: PathBuf) -> Self {
        Self {
            credentials: Credentials::new(&environment),
            environment,
            program,
            command: Vec::new(),
        }
    }

    /// Creates an engine with the environment of this process. It uses the `proctor` binary that
    /// the variable `PROCTOR` names, else one in the folder of this program or its parent, else the
    /// first in `PATH`.
    pub fn of_this_process() -> Result<Self, EngineError> {
        let environment: Environment = std::env::vars().collect();
        let program = find_program(&environment)?;
        Ok(Self::new(environment, program))
    }

    /// Sets the command line that the run's record contains.
    #[must_use]
    pub fn with_command(self, command: Vec<String>) -> Self {
        Self { command, ..self }
    }

    /// The environment of which servers, agents and steps get a part.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// A redactor for the secrets of the environment and of these servers.
    pub fn redactor(&self, servers: &[Server]) -> Redactor {
        let known = secrets_of(&self.environment).into_iter();
        let redactor =
            Redactor::new(known.chain(servers.iter().flat_map(crate::secrets::of_server)));
        redactor.sharing(self.credentials.secrets())
    }

    /// The tokens for servers, and the stored logins of the user.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The options for a connection to a server in the folder of a command.
    pub fn connect_options(
        &self,
        actor: Actor,
        recorder: Recorder,
        pass_env: &[String],
        timeouts: Timeouts,
        folder: &TrialFolder,
    ) -> ConnectOptions {
        ConnectOptions {
            actor,
            recorder,
            inherited: self.environment.clone().into(),
            pass: pass_env.to_vec(),
            guard: self.program.clone(),
            timeouts,
            answers: ServerRequestReplies::default(),
            trial: Some(folder.values().clone()),
            credentials: self.credentials.clone(),
            era: None,
            ends: ProcessEnds::default(),
        }
    }

    /// Loads and plans a suite, and opens what it needs. Starts a server only if the suite names
    /// shipped evals.
    pub async fn prepare(
        &self,
        options: &CheckOptions,
        host: &dyn Host,
    ) -> Result<PreparedRun, EngineError> {
        let mut prepared = prepare::prepare(self, options, host).await?;
        prepared.estimate = estimate::of_run(&prepared);
        estimate::refuse(prepared.estimate.as_ref(), options.run.max_estimate_usd)?;
        Ok(prepared)
    }

    /// [`Engine::prepare`] for several suites, which share budgets. If one can't be prepared, none is, and
    /// all errors are returned. If the options name a folder, each suite gets a folder in it.
    pub async fn prepare_suites(
        &self,
        options: &[CheckOptions],
        host: &dyn Host,
    ) -> Result<PreparedSuites, Vec<EngineError>> {
        Box::pin(suites::prepare(self, options, host)).await
    }

    /// Opens a folder for each suite.
    pub fn open_suites(&self, prepared: PreparedSuites) -> Result<SuitesInProgress, EngineError> {
        suites::open(self, prepared)
    }

    /// Finds the shipped evals, asks the host for consent, and opens what the evals need.
    pub async fn prepare_evals(
        &self,
        options: &EvalsOptions,
        host: &dyn Host,
    ) -> Result<PreparedRun, EngineError> {
        let mut prepared = evals::prepare(self, options, host).await?;
        prepared.estimate = estimate::of_run(&prepared);
        estimate::refuse(prepared.estimate.as_ref(), options.run.max_estimate_usd)?;
        Ok(prepared)
    }

    /// Merges the shards in these folders into a run, and evaluates its gate. The run gets a new folder below
    /// `.proctor/runs`, or `into`.
    pub fn merge(&self, folders: &[PathBuf], into: Option<&Path>) -> Result<MergedRun, MergeError> {
        sharding::merge(self, folders, into)
    }

    /// Opens the run's folder: a new one, or that of the resumed run.
    pub fn open(&self, prepared: PreparedRun) -> Result<RunInProgress, EngineError> {
        folder::open(self, prepared)
    }

    /// Runs a suite to its end and sums it up.
    pub async fn check(
        &self,
        options: &CheckOptions,
        host: &dyn Host,
    ) -> Result<RunResult, EngineError> {
        let prepared = self.prepare(options, host).await?;
        let mut run = self.open(prepared)?;
        let (progress, _) = unbounded_channel();
        let (_interrupt, mut interrupts) = unbounded_channel();
        let completion = run.carry_out(progress, false, &mut interrupts, host).await;
        Ok(run.end(completion)?)
    }

    /// [`Engine::check`] for programs without an async runtime, such as a test of a suite. It gives
    /// no consent.
    pub fn check_blocking(&self, options: &CheckOptions) -> Result<RunResult, EngineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| EngineError::unusable("can't start the async runtime", error))?;
        runtime.block_on(self.check(options, &NonInteractiveHost))
    }
}

/// Finds the `proctor` binary.
fn find_program(environment: &Environment) -> Result<PathBuf, EngineError> {
    if let Some(named) = environment.get("PROCTOR").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let own = std::env::current_exe().map_err(|error| {
        EngineError::unusable("can't determine the path of this program", error)
    })?;
    let near = own.ancestors().skip(1).take(2).map(Path::to_owned);
    let path = environment.get("PATH").map_or("", String::as_str);
    let folders = near.chain(std::env::split_paths(path));
    let file = format!("proctor{}", std::env::consts::EXE_SUFFIX);
    let mut found = folders.map(|folder| folder.join(&file));
    found.find(|path| path.is_file()).ok_or_else(|| {
        EngineError::usage("the `proctor` binary is not in PATH; set `PROCTOR` to its path")
    })
}

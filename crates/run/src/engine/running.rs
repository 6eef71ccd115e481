//! A run in progress: it checks the servers, then runs the trials.
//!
//! Main types: [`RunInProgress`], and [`RunCompletion`] for its end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use proctor_core::suite::{Isolation, Server, Workspace};
use proctor_record::event::{Actor, EventKind};
use proctor_record::redact::Redactor;
use proctor_wire::recorder::Recorder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::folder::OpenRun;
use super::host::{Host, HostNotice};
use super::labels::TrialLabels;
use super::options::RunOptions;
use super::run_steps::RunSteps;
use super::{contract, servers, width};
use crate::context::RunContext;
use crate::preflight::{self, PreflightError, PreflightReport, ServerProbe};
use crate::progress::Progress;
use crate::runner::{self, RunError, RunnerOptions, RunnerResult, TrialList};
use crate::trial_folder::TrialFolder;

/// A run with an open folder.
pub struct RunInProgress {
    pub(super) context: Option<RunContext>,
    pub(super) written: OpenRun,
    pub(super) options: RunOptions,
    pub(super) redactor: Redactor,
    pub(super) is_resumed: bool,
    pub(super) stop_when_decided: bool,
    /// The number of trials of the suites that run before this one.
    pub(super) first: usize,
    /// How the run's cleanup ended; `None` if it has not run.
    pub(super) cleanup: Option<Result<(), String>>,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunCompletion {
    /// The run ended by itself, or was stopped during its trials.
    Finished(RunnerResult),
    /// The user stopped it before its first trial.
    Interrupted,
    /// A server was unusable.
    NotStarted(String),
    /// The suite does not fit the servers, so its author has to change it.
    Invalid(String),
    /// A server changed in a way that the surface contract does not allow.
    ContractBroken(String),
    /// The run could not continue.
    Broken(RunError),
}

impl RunInProgress {
    pub fn folder(&self) -> &Path {
        self.written.writer.folder()
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Sends the name of each trial's file to `files` when the trial has ended.
    pub fn send_ended_files(&mut self, files: UnboundedSender<String>) {
        if let Some(context) = &mut self.context {
            context.ended_files = Some(files);
        }
    }

    /// The number of trials left to run.
    pub fn trials(&self) -> usize {
        self.written.trials.len()
    }

    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The name of its suite, redacted.
    pub fn name(&self) -> String {
        let name = self.context.as_ref().map(|context| &context.suite.name);
        name.map_or_else(String::new, |name| self.redactor.text(name).into_owned())
    }

    /// A display name for each trial, redacted.
    pub fn labels(&self) -> TrialLabels {
        let labels = |context: &RunContext| {
            let trials = self.written.trials.clone();
            TrialLabels::new(&context.suite, trials, self.redactor.clone())
        };
        self.context.as_ref().map(labels).unwrap_or_default()
    }

    /// Starts the clock of a new run now: other suites may have run since its folder was opened.
    pub(super) fn restart_clock(&mut self) {
        if !self.is_resumed {
            self.written.started = std::time::Instant::now();
        }
    }

    /// Runs the setup, checks the servers, runs the trials, then the cleanup. Each message of
    /// `interrupts` is a request to stop: the first stops the run in order, the second at once. With
    /// `detailed`, events inside trials are reported too.
    pub async fn carry_out(
        &mut self,
        progress: UnboundedSender<Progress>,
        detailed: bool,
        interrupts: &mut UnboundedReceiver<()>,
        host: &dyn Host,
    ) -> RunCompletion {
        let Some(context) = self.context.take() else {
            return RunCompletion::Interrupted;
        };
        if self.written.trials.is_empty() {
            return RunCompletion::Finished(RunnerResult::default());
        }
        let Some(mut steps) = RunSteps::of(&context) else {
            let worked = self.work(context, progress, detailed, interrupts, host);
            return worked.await.0;
        };
        let (completion, stop_count) = match self.set_up(&mut steps, interrupts).await {
            Ok(()) => {
                let worked = self.work(context, progress, detailed, interrupts, host);
                worked.await
            }
            Err(RunCompletion::Interrupted) => (RunCompletion::Interrupted, 1),
            Err(completion) => (completion, 0),
        };
        self.clean_up(steps, stop_count, interrupts, host).await;
        completion
    }

    /// Checks the servers, then runs the trials. Also returns the number of requests to stop.
    async fn work(
        &mut self,
        mut context: RunContext,
        progress: UnboundedSender<Progress>,
        detailed: bool,
        interrupts: &mut UnboundedReceiver<()>,
        host: &dyn Host,
    ) -> (RunCompletion, usize) {
        let servers = context.suite.servers.len();
        let (width, notes) = width::settle(self.options.width, &self.written.trials, servers);
        for note in notes {
            host.notice(HostNotice::Text(&note));
        }
        if context.suite.preflight {
            // A server may need its workspace to start, and the first trial has one that fits.
            let first = self.written.trials.get(0);
            let workspace =
                first.and_then(|trial| context.suite.cases[trial.case].workspace.clone());
            let looking = look_at_servers(&mut context, &self.written.trials, workspace.as_deref());
            let looked = tokio::select! {
                looked = looking => looked,
                Some(()) = interrupts.recv() => return (RunCompletion::Interrupted, 1),
            };
            if let Err(completion) = self.take_in(looked, &context, host) {
                return (completion, 0);
            }
        }
        let options = RunnerOptions {
            width,
            fail_fast: self.options.fail_fast,
            stop_when_decided: self.stop_when_decided,
            detailed,
            first: self.first,
        };
        let context = Arc::new(context);
        let (completion, mut stops) = self
            .run_trials(options, &context, progress, interrupts)
            .await;
        if let Some(context) = Arc::into_inner(context) {
            if let Err(broken) = self.record_seen(&context) {
                return (broken, stops);
            }
            for warning in context.warnings.into_inner().unwrap_or_default() {
                host.notice(HostNotice::Text(&self.redactor.text(&warning)));
            }
            let shared = context.shared.into_values();
            let close = async {
                for client in shared {
                    client.close().await;
                }
            };
            // An interrupted run does not wait for servers that don't exit by themselves.
            tokio::select! {
                () = close => {}
                Some(()) = interrupts.recv() => stops += 1,
            }
        }
        (completion, stops)
    }

    /// Writes the server information, unless the run can't continue with these servers.
    fn take_in(
        &mut self,
        looked: Result<Vec<PreflightReport>, PreflightError>,
        context: &RunContext,
        host: &dyn Host,
    ) -> Result<(), RunCompletion> {
        let looked = looked.map_err(|error| {
            let hint = self.setup_hint(&error, context).unwrap_or_default();
            RunCompletion::NotStarted(format!("{error}{hint}"))
        })?;
        for PreflightReport { seen, .. } in &looked {
            if let Some(reason) = servers::change(&self.written.seen, seen, &self.redactor) {
                return Err(RunCompletion::NotStarted(reason));
            }
        }
        let specs = self.written.trials.iter();
        let cases: BTreeSet<usize> = specs.map(|spec| spec.case).collect();
        let cases = || cases.iter().filter_map(|at| context.suite.cases.get(*at));
        let misfits = preflight::misfits(cases(), &looked);
        if !misfits.is_empty() {
            return Err(RunCompletion::Invalid(misfits.join("\nerror: ")));
        }
        for text in preflight::unknown_names(cases(), &looked) {
            host.notice(HostNotice::Text(&self.redactor.text(&text)));
        }
        for PreflightReport { seen, .. } in &looked {
            self.append(EventKind::ServerSeen(seen.clone()))?;
        }
        let Some(contract) = &context.suite.surface else {
            return Ok(());
        };
        let judged = contract::judge(contract, &looked, &self.redactor)
            .map_err(RunCompletion::NotStarted)?;
        for compared in judged.compared {
            self.append(EventKind::SurfaceCompared(compared))?;
        }
        for line in &judged.lines {
            host.notice(HostNotice::Text(line));
        }
        judged
            .refused
            .map_or(Ok(()), |reason| Err(RunCompletion::ContractBroken(reason)))
    }

    /// Writes what servers reported in trials, in the order of the suite.
    fn record_seen(&mut self, context: &RunContext) -> Result<(), RunCompletion> {
        let seen = context.seen.lock();
        let mut seen = std::mem::take(&mut *seen.unwrap_or_else(PoisonError::into_inner));
        for server in &context.suite.servers {
            if let Some(seen) = seen.remove(&server.name) {
                self.append(EventKind::ServerSeen(seen))?;
            }
        }
        Ok(())
    }

    /// A hint for a server that may need what the setup of a task makes.
    fn setup_hint(&self, error: &PreflightError, context: &RunContext) -> Option<&'static str> {
        let cases = &context.suite.cases;
        let mut specs = self.written.trials.iter();
        let is_start = matches!(error, PreflightError::StartFailed(_));
        let has_setup = specs.any(|spec| !cases[spec.case].setup.is_empty());
        (is_start && has_setup).then_some(
            "\nhint: the preflight starts the servers before the setup steps of tasks; if the server \
             needs what they make, make it in `config.setup`, or set `config.preflight: false`",
        )
    }

    pub(super) fn append(&mut self, event: EventKind) -> Result<(), RunCompletion> {
        let written = self.written.writer.append(self.written.at(), event);
        written.map_err(|error| RunCompletion::Broken(error.into()))?;
        Ok(())
    }

    async fn run_trials(
        &self,
        options: RunnerOptions,
        context: &Arc<RunContext>,
        progress: UnboundedSender<Progress>,
        interrupts: &mut UnboundedReceiver<()>,
    ) -> (RunCompletion, usize) {
        let (interrupt, heard) = unbounded_channel();
        // On a worker, as its trials: they start and end without waking up this thread. Dropped, it ends.
        let mut runner = JoinSet::new();
        runner.spawn(runner::run(
            context.clone(),
            self.written.writer.trials(),
            self.written.started,
            self.written.trials.clone(),
            options,
            progress,
            heard,
        ));
        let mut stops = 0;
        let finished = loop {
            tokio::select! {
                Some(finished) = runner.join_next() => {
                    break finished.unwrap_or_else(|panic| Err(RunError::Bug(panic.to_string())));
                }
                Some(()) = interrupts.recv() => {
                    stops += 1;
                    // The runner may have ended already.
                    let _ = interrupt.send(());
                }
            }
        };
        let completion = match finished {
            Ok(finished) => RunCompletion::Finished(finished),
            Err(error) => RunCompletion::Broken(error),
        };
        (completion, stops)
    }
}

/// Starts every server that a trial uses once, and keeps the connections that all trials share. A
/// surface contract is about all servers.
async fn look_at_servers(
    context: &mut RunContext,
    trials: &TrialList,
    workspace: Option<&Workspace>,
) -> Result<Vec<PreflightReport>, PreflightError> {
    let suite = &context.suite;
    let is_used = |server: &&Server| {
        let mut specs = trials.iter();
        suite.surface.is_some() || specs.any(|spec| suite.cases[spec.case].uses(&server.name))
    };
    let servers: Vec<Server> = suite.servers.iter().filter(is_used).cloned().collect();
    let mut all = Vec::new();
    let is_shared = suite.isolation == Isolation::Run;
    let folder = TrialFolder::new("preflight");
    folder.prepare(workspace).await?;
    for server in servers {
        let recorder = Recorder::nothing().redacting(&context.redactor);
        let trial = (!is_shared).then_some(folder.values());
        // Servers list tools by the capabilities of their client.
        let declared = context.suite.declared_replies(&server);
        let options = proctor_wire::client::ConnectOptions {
            answers: crate::replies::answers(&declared, None, trial)
                .map_err(|error| PreflightError::StartFailed(error.to_string()))?,
            ..context.connect_options(Actor::Preflight, recorder, trial)
        };
        let found = preflight::look(&server, &options).await?;
        let ServerProbe {
            report,
            era,
            client,
        } = found;
        context.eras.insert(server.name.clone(), era);
        let tools = report.offered.tools.clone();
        context.tools.insert(server.name.clone(), tools);
        if is_shared {
            context.shared.insert(server.name.clone(), client);
        } else {
            client.close().await;
        }
        all.push(report);
    }
    Ok(all)
}

//! A run in progress: it checks the servers, then runs the trials.
//!
//! Main types: [`RunInProgress`], and [`RunCompletion`] for its end.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use proctor_core::event::{Actor, EventKind};
use proctor_core::redact::Redactor;
use proctor_core::suite::{Isolation, Workspace};
use proctor_wire::recorder::Recorder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::folder::OpenRun;
use super::host::{Host, HostNotice};
use super::options::RunOptions;
use super::selection;
use super::servers::{self, PreflightReport};
use super::{contract, width};
use crate::context::RunContext;
use crate::preflight::{self, PreflightError, ServerProbe};
use crate::progress::Progress;
use crate::runner::{self, RunError, RunnerOptions, RunnerResult, TrialSpec};
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
    pub fn names(&self) -> Vec<String> {
        let Some(context) = &self.context else {
            return Vec::new();
        };
        let suite = &context.suite;
        let mut counts: HashMap<(usize, usize), usize> = HashMap::new();
        for spec in &self.written.trials {
            *counts.entry((spec.case, spec.agent)).or_default() += 1;
        }
        let is_repeated =
            |spec: &TrialSpec| spec.repeat > 1 || counts[&(spec.case, spec.agent)] > 1;
        let name = |spec: &TrialSpec| {
            let mut name = suite.cases[spec.case].name.clone();
            if is_repeated(spec) {
                name.push_str(&format!(" #{}", spec.repeat));
            }
            if suite.agents.len() > 1 {
                name.push_str(&format!(" by {}", suite.agents[spec.agent].name));
            }
            self.redactor.text(&name).into_owned()
        };
        self.written.trials.iter().map(name).collect()
    }

    /// Starts the clock of a new run now: other suites may have run since its folder was opened.
    pub(super) fn restart_clock(&mut self) {
        if !self.is_resumed {
            self.written.started = std::time::Instant::now();
        }
    }

    /// Checks the servers, then runs the trials. Each message of `interrupts` is a request to stop:
    /// the first stops the run in order, the second at once. With `detailed`, events inside trials
    /// are reported too.
    pub async fn carry_out(
        &mut self,
        progress: UnboundedSender<Progress>,
        detailed: bool,
        interrupts: &mut UnboundedReceiver<()>,
        host: &dyn Host,
    ) -> RunCompletion {
        let Some(mut context) = self.context.take() else {
            return RunCompletion::Interrupted;
        };
        if self.written.trials.is_empty() {
            return RunCompletion::Finished(RunnerResult::default());
        }
        let servers = context.suite.servers.len();
        let (width, notes) = width::settle(self.options.width, &self.written.trials, servers);
        for note in notes {
            host.notice(HostNotice::Text(&note));
        }
        // A server may need its workspace to start, and the first trial has one that fits.
        let first = self.written.trials.first();
        let workspace = first.and_then(|trial| context.suite.cases[trial.case].workspace.clone());
        let looked = tokio::select! {
            looked = look_at_servers(&mut context, workspace.as_deref()) => looked,
            Some(()) = interrupts.recv() => return RunCompletion::Interrupted,
        };
        if let Err(completion) = self.take_in(looked, &context, host) {
            return completion;
        }
        let options = RunnerOptions {
            width,
            fail_fast: self.options.fail_fast,
            stop_when_decided: self.stop_when_decided,
            detailed,
            first: self.first,
        };
        let context = Arc::new(context);
        let completion = self
            .run_trials(options, &context, progress, interrupts)
            .await;
        if let Some(context) = Arc::into_inner(context) {
            let shared = context.shared.into_values();
            let close = async {
                for client in shared {
                    client.close().await;
                }
            };
            // An interrupted run does not wait for servers that don't exit by themselves.
            tokio::select! {
                () = close => {}
                Some(()) = interrupts.recv() => {}
            }
        }
        completion
    }

    /// Writes the server information, unless the run can't continue with these servers.
    fn take_in(
        &mut self,
        looked: Result<Vec<PreflightReport>, PreflightError>,
        context: &RunContext,
        host: &dyn Host,
    ) -> Result<(), RunCompletion> {
        let looked = looked.map_err(|error| RunCompletion::NotStarted(error.to_string()))?;
        for PreflightReport { seen, .. } in &looked {
            if let Some(reason) = servers::change(&self.written.seen, seen, &self.redactor) {
                return Err(RunCompletion::NotStarted(reason));
            }
        }
        let misfits = selection::misfits(&context.suite, &self.written.trials, &looked);
        if !misfits.is_empty() {
            return Err(RunCompletion::Invalid(misfits.join("\nerror: ")));
        }
        for text in servers::unknown_names(&context.suite, &self.written.trials, &looked) {
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

    fn append(&mut self, event: EventKind) -> Result<(), RunCompletion> {
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
    ) -> RunCompletion {
        let (interrupt, heard) = unbounded_channel();
        let running = runner::run(
            context.clone(),
            &self.written.writer,
            self.written.started,
            &self.written.trials,
            options,
            progress,
            heard,
        );
        let mut running = std::pin::pin!(running);
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished,
                Some(()) = interrupts.recv() => {
                    // The runner may have ended already.
                    let _ = interrupt.send(());
                }
            }
        };
        match finished {
            Ok(finished) => RunCompletion::Finished(finished),
            Err(error) => RunCompletion::Broken(error),
        }
    }
}

/// Starts every server once, and keeps the connections that all trials share.
async fn look_at_servers(
    context: &mut RunContext,
    workspace: Option<&Workspace>,
) -> Result<Vec<PreflightReport>, PreflightError> {
    let mut all = Vec::new();
    let is_shared = context.suite.isolation == Isolation::Run;
    let folder = TrialFolder::new("preflight");
    folder.prepare(workspace).await?;
    for server in context.suite.servers.clone() {
        let recorder = Recorder::nothing().redacting(&context.redactor);
        let trial = (!is_shared).then_some(folder.values());
        let options = context.connect_options(Actor::Preflight, recorder, trial);
        let found = preflight::look(&server, &options).await?;
        let ServerProbe {
            seen,
            offered,
            surface,
            era,
            client,
        } = found;
        context.eras.insert(server.name.clone(), era);
        let tools = offered.tools.clone();
        context.tools.insert(server.name.clone(), tools);
        if is_shared {
            context.shared.insert(server.name.clone(), client);
        } else {
            client.close().await;
        }
        all.push(PreflightReport {
            seen,
            offered,
            surface,
        });
    }
    Ok(all)
}

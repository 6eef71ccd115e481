//! The steps of a run: `config.setup` before the servers start, `config.cleanup` after the last trial.
//!
//! Its main type is [`RunSteps`]. A process that the setup starts runs until the end of the cleanup.

use std::path::Path;
use std::time::Duration;

use proctor_core::suite::Step;
use proctor_core::suite::template::Template;
use proctor_record::event::{Actor, EventKind};
use proctor_wire::recorder::Recorder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::host::{Host, HostNotice};
use super::running::{RunCompletion, RunInProgress};
use crate::context::RunContext;
use crate::steps::{Steps, StepsOptions};

/// The steps of a run in progress.
pub(super) struct RunSteps {
    steps: Steps,
    setup: Vec<Step>,
    cleanup: Vec<Step>,
    cleanup_timeout: Option<Duration>,
    /// The ends of steps, which are still to be written.
    ended: UnboundedReceiver<EventKind>,
}

impl RunSteps {
    /// The steps of a suite; `None` if it has none.
    pub(super) fn of(context: &RunContext) -> Option<Self> {
        let suite = &context.suite;
        if suite.setup.is_empty() && suite.cleanup.is_empty() {
            return None;
        }
        let (to, ended) = unbounded_channel();
        let recorder = Recorder::passing_to(to).redacting(&context.redactor);
        let steps = Steps::new(StepsOptions {
            connect: context.connect_options(Actor::Step, recorder, None),
            environment: context.step_environment.clone(),
            scratches: context.scratches.clone(),
            redactor: context.redactor.clone(),
            servers: Vec::new(),
            extensions: suite.extensions.clone(),
            folder: suite.path.parent().map(Path::to_owned).unwrap_or_default(),
            prompt: Template::literal(""),
        });
        Some(Self {
            steps,
            setup: suite.setup.clone(),
            cleanup: suite.cleanup.clone(),
            cleanup_timeout: suite.cleanup_timeout,
            ended,
        })
    }
}

impl RunInProgress {
    /// Runs the setup of the run.
    pub(super) async fn set_up(
        &mut self,
        steps: &mut RunSteps,
        interrupts: &mut UnboundedReceiver<()>,
    ) -> Result<(), RunCompletion> {
        let RunSteps {
            steps,
            setup,
            ended,
            ..
        } = steps;
        let result = {
            let mut running = std::pin::pin!(steps.set_up(setup));
            loop {
                tokio::select! {
                    result = &mut running => break result.map_err(Some),
                    Some(event) = ended.recv() => self.append(event)?,
                    Some(()) = interrupts.recv() => break Err(None),
                }
            }
        };
        while let Ok(event) = ended.try_recv() {
            self.append(event)?;
        }
        result.map_err(|failure| match failure {
            Some((_, reason)) => RunCompletion::NotStarted(format!("before the run, {reason}")),
            None => RunCompletion::Interrupted,
        })
    }

    /// Runs the cleanup of the run, whatever happened before. The second request to stop ends it; `stop_count` of
    /// them came before.
    pub(super) async fn clean_up(
        &mut self,
        mut steps: RunSteps,
        mut stop_count: usize,
        interrupts: &mut UnboundedReceiver<()>,
        host: &dyn Host,
    ) {
        let result = {
            let limit = steps.cleanup_timeout;
            let mut running = std::pin::pin!(steps.steps.clean_up(&steps.cleanup, limit));
            loop {
                if stop_count > 1 && !steps.cleanup.is_empty() {
                    break Err("the cleanup was interrupted".to_owned());
                }
                tokio::select! {
                    result = &mut running => break result.map_err(|(_, reason)| reason),
                    Some(()) = interrupts.recv() => stop_count += 1,
                    Some(event) = steps.ended.recv() => drop(self.append(event)),
                }
            }
        };
        while let Ok(event) = steps.ended.try_recv() {
            // A record that can't be written ends the run by itself.
            drop(self.append(event));
        }
        let result = result.map_err(|reason| format!("after the run, {reason}"));
        if let Err(failed) = &result {
            let text = format!("warning: {failed}");
            host.notice(HostNotice::Text(&self.redactor.text(&text)));
        }
        self.cleanup = Some(result);
        tokio::select! {
            () = steps.steps.close() => {}
            Some(()) = interrupts.recv(), if stop_count > 0 => {}
        }
    }
}

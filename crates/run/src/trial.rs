//! One trial: setup, serve, drive, grade, and cleanup whatever happened.
//!
//! Its main type is [`Trial`]. A trial that goes wrong has an outcome, not an error; only a failure
//! to write the record is an error.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod early_end;
mod ending;
mod external;
mod grading;
mod preflight;
mod replies;
mod selection;
mod serving;
mod shipped;
mod turns;
mod under_way;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proctor_core::suite::{Case, Limits};
use proctor_record::decision::{blame_for_failure, server_failure};
use proctor_record::event::{Actor, Blame, EventKind, Outcome, Phase, Purpose, TrialEnded};
use proctor_record::fold::{FoldedTrial, LiveFold};
use proctor_record::index;
use proctor_record::record::RecordError;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use self::ending::{cancelled, errored, failed, timed_out};
use self::external::AgentWorkspace;
use self::serving::close;
use self::turns::UserScript;
use crate::agent::{AgentOutcome, Toolbox};
use crate::context::{RunContext, Worker};
use crate::progress::TrialProgress;
use crate::steps::{PhaseFailure, Steps, StepsOptions};
use crate::stop::{self, RunStop};
use crate::trial_folder::TrialFolder;
use proctor_contain::process::ProcessEnds;
use proctor_models::{AskError, Model, ModelClient, ModelError, Replay, RetryWait};
use proctor_wire::client::ConnectOptions;
use proctor_wire::recorder::Recorder;
use proctor_wire::worker::{self, Large};

/// How long the end of a trial waits for its servers.
const LONGEST_END: Duration = Duration::from_secs(30);

/// One run of a case by one agent.
pub(crate) struct Trial {
    pub(crate) context: Arc<RunContext>,
    /// The index of the case in the suite.
    pub(crate) case: usize,
    /// The index of the agent in the suite.
    pub(crate) agent: usize,
    pub(crate) limits: Limits,
    pub(crate) recorder: Recorder,
    pub(crate) folder: TrialFolder,
    pub(crate) watch: TrialProgress,
    pub(crate) waiting: RetryWait,
    /// The recorded replies to use instead of asking models.
    pub(crate) replay: Option<Replay>,
    /// The tools of servers, in a run without a preflight.
    pub(crate) listed: OnceLock<BTreeMap<String, Vec<String>>>,
    /// What was folded of a short record so far.
    pub(crate) live: Mutex<Option<LiveFold>>,
    /// The servers that the trial started.
    pub(crate) ends: ProcessEnds,
}

impl Trial {
    /// Runs the trial and writes its end.
    pub(crate) async fn run(
        self,
        mut stop: watch::Receiver<RunStop>,
    ) -> Result<TrialEnded, RecordError> {
        let mut steps = Steps::new(self.steps_options());
        let mut toolbox = None;
        let mut workspace = AgentWorkspace::default();
        let mut ended = {
            let started = Instant::now();
            tokio::select! {
                biased;
                reason = stop::soon(&mut stop) => cancelled(reason),
                limit = clock(self.limits.timeout, started, &self.waiting) => {
                    // The state at the timeout is read before anything is closed.
                    self.timeout_end(&limit).await
                }
                ended = self.work(&mut steps, &mut toolbox, &mut workspace) => ended,
            }
        };
        tokio::select! {
            biased;
            () = stop::now(&mut stop) => {}
            () = close(toolbox.take()) => {}
        }
        tokio::select! {
            biased;
            () = stop::now(&mut stop) => {}
            () = workspace.clear() => {}
        }
        let cleanup = tokio::select! {
            biased;
            () = stop::now(&mut stop) => Err(cancelled("interrupted before the cleanup ended")),
            cleanup = self.cleanup(&mut steps) => cleanup.map_err(|(blame, r)| errored(blame, r)),
        };
        if let (Err(instead), Outcome::Passed) = (cleanup, ended.outcome) {
            ended = instead;
        }
        tokio::select! {
            biased;
            () = stop::now(&mut stop) => {}
            () = steps.close() => {}
        }
        // A server may still be ending whose start was cut off, for example by the time limit of the trial.
        tokio::select! {
            biased;
            () = stop::now(&mut stop) => {}
            // Guards end within seconds.
            _ = timeout(LONGEST_END, self.ends.wait()) => {}
        }
        self.end(ended).await
    }

    fn case(&self) -> &Case {
        &self.context.suite.cases[self.case]
    }

    fn phase(&self, phase: Phase) {
        self.recorder.record(EventKind::PhaseStarted { phase });
        self.watch.phase(phase);
    }

    fn steps_options(&self) -> StepsOptions {
        let (context, case) = (&self.context, self.case());
        StepsOptions {
            connect: ConnectOptions {
                ends: self.ends.clone(),
                ..context.connect_options(
                    Actor::Step,
                    self.recorder.clone(),
                    Some(self.folder.values()),
                )
            },
            environment: context.step_environment.clone(),
            scratches: context.scratches.clone(),
            redactor: self.recorder.redactor().clone(),
            servers: self.servers(),
            extensions: context.suite.extensions.clone(),
            folder: case.path.parent().map(Path::to_owned).unwrap_or_default(),
            prompt: case.prompt.clone(),
        }
    }

    async fn work(
        &self,
        steps: &mut Steps,
        toolbox: &mut Option<Toolbox>,
        workspace: &mut AgentWorkspace,
    ) -> TrialEnded {
        let case = self.case();
        if let Some(reason) = case.unmet.first() {
            return errored(Blame::Suite, reason);
        }
        if !case.has_checks() {
            let reason = "the case has no checks";
            return errored(Blame::Suite, reason);
        }
        if let Err(error) = self.folder.prepare(case.workspace.as_deref()).await {
            return errored(error.blame(), error.to_string());
        }
        if let Some(shipped) = &case.shipped {
            return self.work_shipped(shipped, toolbox).await;
        }
        if let Some(selection) = &case.selection {
            if let Err((blame, reason)) = self.look_at_servers().await {
                return errored(blame, reason);
            }
            return self
                .work_selection(selection, steps, toolbox, workspace)
                .await;
        }
        self.phase(Phase::Setup);
        if let Err((blame, reason)) = steps.set_up(&case.setup).await {
            return errored(blame, reason);
        }
        if let Err((blame, reason)) = self.look_at_servers().await {
            return errored(blame, reason);
        }
        let script = match self.user_script(steps) {
            Ok(script) => script,
            Err(ended) => return ended,
        };
        let answered = match &self.context.agents[self.agent] {
            Worker::External(external) => {
                let answered = self.examine(external, workspace, &script.prompt).await;
                answered.map(DoneTask::answered)
            }
            Worker::Model(_) | Worker::NoAgent => self.do_task(toolbox, &script).await,
        };
        let done = match answered {
            Ok(done) => done,
            Err(ended) => return ended,
        };
        self.phase(Phase::Grade);
        steps.agent_answered(done.answer.clone());
        let graded = self.grade(steps, &done.answer, done.folded).await;
        match (graded.outcome, done.unused_reply) {
            (Outcome::Passed, Some(reason)) => errored(Blame::Suite, reason),
            _ => workspace.explain(graded),
        }
    }

    /// Runs the built-in agent on connected servers.
    async fn do_task(
        &self,
        toolbox: &mut Option<Toolbox>,
        script: &UserScript,
    ) -> Result<DoneTask, TrialEnded> {
        self.phase(Phase::Serve);
        let opened = self.serve().await;
        *toolbox = Some(opened.map_err(|(blame, reason)| errored(blame, reason))?);
        self.drive(toolbox, script).await
    }

    /// Whether a program or a model may have learned of the trial's folder.
    fn knows_folder(&self) -> bool {
        let (context, case) = (&self.context, self.case());
        let mut servers = context.suite.servers.iter();
        let mut steps = case.setup.iter().chain(&case.verify).chain(&case.cleanup);
        context.agents[self.agent].model().is_none()
            || servers.any(|server| !context.shared.contains_key(&server.name))
            || steps.next().is_some()
            || case.workspace.is_some()
            || case.prompt.references().next().is_some()
            || !case.turns.is_empty()
            || case.shipped.is_some()
            || case.selection.is_some()
    }

    /// Runs the agent, and returns its answer as recorded.
    async fn drive(
        &self,
        toolbox: &mut Option<Toolbox>,
        script: &UserScript,
    ) -> Result<DoneTask, TrialEnded> {
        self.phase(Phase::Drive);
        let Some(tools) = toolbox.as_ref() else {
            return Err(errored(Blame::Infra, "the servers offer no tools"));
        };
        let Some(model) = self.context.agents[self.agent].model() else {
            return Err(errored(Blame::Suite, "the case has no agent"));
        };
        let asker = self.asker(model, Purpose::Agent);
        let driven = self.converse(tools, &asker, script).await?;
        let worked = match driven {
            AgentOutcome::Answered(answer) => WorkOutcome::Answered(answer),
            AgentOutcome::Stopped(reason) => WorkOutcome::Stopped(reason),
            AgentOutcome::Lost(lost) => WorkOutcome::Lost(lost.to_string()),
            AgentOutcome::Turns(reason) | AgentOutcome::Limit(reason) => {
                return Err(timed_out(reason));
            }
            AgentOutcome::Unanswered(error) => return Err(unanswered(&error)),
        };
        let shared_breach = self.shared_breach(tools);
        let unused_reply = self.unused_reply(tools);
        // The connections are closed first, so that their record is complete before grading.
        close(toolbox.take()).await;
        let folded = self.folded().await?;
        if let Some(failure) = server_failure(&folded.conduct) {
            return Err(early_end::ended(failure));
        }
        let answer = match worked {
            WorkOutcome::Answered(answer) => answer,
            WorkOutcome::Lost(reason) => return Err(failed(Blame::Server, reason)),
            WorkOutcome::Stopped(reason) => return Err(failed(blame_for_failure(&folded), reason)),
        };
        match shared_breach.or_else(|| self.breach(&folded)) {
            Some(failure) => Err(early_end::ended(failure)),
            None => Ok(DoneTask {
                answer: self.redacted_text(&answer),
                unused_reply,
                folded: Some(folded),
            }),
        }
    }

    /// The text after redaction, as the record contains it.
    fn redacted_text(&self, text: &str) -> String {
        worker::on_body(text.len(), || {
            self.recorder.redactor().text(text).into_owned()
        })
    }

    /// Runs `work` on the record, without blocking other tasks if the record is large.
    fn on_record<T>(&self, work: impl FnOnce() -> T) -> T {
        worker::on_body(self.recorder.bytes(), work)
    }

    /// A client for a model, with the purpose of its requests.
    fn asker(&self, model: &Arc<Model>, purpose: Purpose) -> ModelClient {
        self.context.asker(
            model,
            purpose,
            &self.recorder,
            &self.waiting,
            self.replay.as_ref(),
        )
    }

    async fn cleanup(&self, steps: &mut Steps) -> Result<(), PhaseFailure> {
        let case = self.case();
        // Without a folder no setup ran, and a path that is empty would name others.
        if case.cleanup.is_empty() || !case.unmet.is_empty() || !self.folder.is_there() {
            return Ok(());
        }
        self.phase(Phase::Cleanup);
        steps
            .clean_up(&case.cleanup, self.limits.cleanup_timeout)
            .await
    }

    /// An event that is too large spoils the trial, not the run; another failed write is an error.
    fn note_failed_writes(&self, ended: &mut TrialEnded) -> Result<(), RecordError> {
        match self.recorder.take_error() {
            None => {}
            Some(
                error @ (RecordError::TrialTooLarge { .. } | RecordError::EventTooLarge { .. }),
            ) => *ended = errored(Blame::Infra, error.to_string()),
            Some(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes the end of the trial, and waits until it is on disk.
    async fn end(mut self, mut ended: TrialEnded) -> Result<TrialEnded, RecordError> {
        self.note_failed_writes(&mut ended)?;
        if !self.knows_folder() {
            self.folder.give_back();
        }
        let folder = self.folder.finish(self.context.keep, ended.outcome).await;
        if let Some(folder) = folder {
            self.recorder.record(EventKind::TrialFolder(folder));
        }
        let Some(trial) = self.recorder.take_trial() else {
            return Ok(ended);
        };
        // What was recorded since, such as the ends of connections.
        self.note_failed_writes(&mut ended)?;
        // The reason is also displayed, so it is redacted and shortened here too.
        ended.reason = ended.reason.map(|reason| self.redacted_text(&reason));
        let ended = ended.with_bounded_reason();
        let at = self.recorder.at();
        let (tell, told) = oneshot::channel();
        let live = std::mem::take(&mut self.live);
        let live = live.into_inner().unwrap_or_default();
        trial.end_then(at, ended.clone(), |written| {
            // This thread may wait, but not for long.
            let indexed = written.and_then(|mut trial| {
                let is_short = trial.is_short();
                if is_short {
                    index::add_after(&mut trial, live)?;
                }
                Ok((trial, is_short))
            });
            drop(tell.send(indexed));
        });
        let (mut trial, is_indexed) = told.await.unwrap_or(Err(RecordError::WriterGone))?;
        if !is_indexed {
            let indexed = tokio::task::spawn_blocking(move || index::add(&mut trial)).await;
            // Propagates a panic of the task.
            indexed.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        }
        Ok(ended)
    }
}

/// A task that the agent finished.
struct DoneTask {
    /// The answer as recorded.
    answer: String,
    /// An answer of the task that no server requested.
    unused_reply: Option<String>,
    /// The record of the task, if it was folded after the last connection was closed.
    folded: Option<Large<FoldedTrial>>,
}

impl DoneTask {
    fn answered(answer: String) -> Self {
        Self {
            answer,
            unused_reply: None,
            folded: None,
        }
    }
}

/// How the work ended, before protocol problems of servers are considered.
enum WorkOutcome {
    Answered(String),
    Stopped(String),
    Lost(String),
}

/// Waits until the time limit and returns the reason. Time spent waiting for a provider does not
/// count.
async fn clock(limit: Option<Duration>, started: Instant, waiting: &RetryWait) -> String {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    loop {
        let deadline = started + limit + waiting.total();
        if Instant::now() >= deadline {
            let limit = proctor_record::duration::brief(limit);
            return format!("the trial timed out after {limit}");
        }
        tokio::time::sleep_until(deadline).await;
    }
}

/// The end of a trial whose model can't be asked any more.
fn unanswered(error: &AskError) -> TrialEnded {
    match error {
        AskError::Budget(reason) => cancelled(reason.clone()),
        AskError::Model {
            error: ModelError::Script { .. },
            ..
        } => errored(Blame::Suite, error.to_string()),
        AskError::Model { .. } => errored(Blame::Infra, error.to_string()),
    }
}

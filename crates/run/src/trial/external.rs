//! Trials of external agents: the servers are behind taps, and the agent's report is compared with
//! what the taps saw.
//!
//! Main type: [`AgentWorkspace`], which holds everything to clean up afterwards.

mod choice;
mod facts;
mod first_turn;
mod taps;
mod verdict;
mod withhold;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proctor_core::replay::Drift;
use proctor_core::suite::Isolation;
use proctor_core::suite::server::{AllowedTools, Transport};
use proctor_core::suite::trial_values::TRIAL_DIR;
use proctor_record::decision::{blame_for_failure, server_failure};
use proctor_record::event::{Actor, Blame, Body, EventKind, Outcome, Phase, Purpose, TrialEnded};
use tokio::time::timeout;

pub(super) use self::choice::ExternalChoice;
use self::facts::ServerContacts;
use self::taps::Taps;
use self::verdict::{AgentEvidence, Reach, verdict};
use self::withhold::WithheldCalls;
use super::Trial;
use super::ending::{cancelled, errored, timed_out};
pub use crate::agent::LoopLimits;
use crate::external::{
    Adapter, AgentFolders, AgentReport, AgentServer, Assignment, ExternalAgent, LineError,
    LineOptions, ModelAccess, ModelLine, Post, WorkError,
};
use proctor_contain::process::ProcessEnd;
use proctor_models::Replay;
pub use proctor_models::tap::TapEnd;
use proctor_wire::proxy::ProxyOptions;

/// The timeout of the agent's exit, including its grace period.
const EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// The folders and connections of an external agent, which are cleaned up however the trial ends.
#[derive(Default)]
pub(super) struct AgentWorkspace {
    taps: Option<Taps>,
    stage: Option<AgentFolders>,
    /// Tells when all processes of the agent have ended.
    program: OnceLock<ProcessEnd>,
    /// The refused permission requests.
    refused: Vec<String>,
}

impl AgentWorkspace {
    /// Closes every session with a server.
    async fn close(&mut self) {
        if let Some(taps) = self.taps.take() {
            taps.close().await;
        }
    }

    /// Sets the refused permission requests as the reason of a trial that failed its checks, since
    /// they explain missing calls. The record still has the results of the checks.
    pub(super) fn explain(&self, mut ended: TrialEnded) -> TrialEnded {
        if ended.outcome == Outcome::Failed && !self.refused.is_empty() {
            ended.reason = Some(self.refused.join("; "));
        }
        ended
    }

    /// Stops the agent's processes, and removes its folder and its home.
    pub(super) async fn clear(&mut self) {
        self.close().await;
        let Some(stage) = self.stage.take() else {
            return;
        };
        if let Some(program) = self.program.take() {
            // An agent still writes to its home while it ends.
            let _ = timeout(EXIT_TIMEOUT, program.wait()).await;
        }
        stage.clear().await;
    }
}

impl Trial {
    /// Runs an external agent, and returns its answer as recorded.
    pub(super) async fn examine(
        &self,
        external: &ExternalAgent,
        workspace: &mut AgentWorkspace,
        prompt: &str,
    ) -> Result<String, TrialEnded> {
        self.phase(Phase::Serve);
        self.offer(external, workspace, None).await?;
        self.drive_external(external, workspace, prompt).await
    }

    /// Puts taps before the servers.
    async fn offer(
        &self,
        external: &ExternalAgent,
        workspace: &mut AgentWorkspace,
        withheld: Option<&Arc<WithheldCalls>>,
    ) -> Result<(), TrialEnded> {
        let context = &self.context;
        let servers = self.servers();
        let is_stdio = |transport: &Transport| matches!(transport, Transport::Stdio { .. });
        if context.suite.isolation == Isolation::Run
            && servers.iter().any(|server| is_stdio(&server.transport))
        {
            let reason = "trials of an external agent can't share stdio servers";
            return Err(errored(Blame::Suite, reason));
        }
        let options = ProxyOptions {
            recorder: self.recorder.clone(),
            actor: Actor::Agent,
            inherited: context.environment.as_ref().clone(),
            pass: context.pass.clone(),
            guard: context.guard.clone(),
            trial: Some(self.folder.values().clone()),
            credentials: context.credentials.clone(),
            editor: None,
        };
        let Some(adapter) = external.adapter() else {
            return Err(errored(Blame::Infra, "the trial has no agent"));
        };
        let taps = Taps::open(&servers, &options, adapter, withheld).await;
        workspace.taps = Some(taps.map_err(|reason| errored(Blame::Infra, reason))?);
        Ok(())
    }

    async fn drive_external(
        &self,
        external: &ExternalAgent,
        workspace: &mut AgentWorkspace,
        prompt: &str,
    ) -> Result<String, TrialEnded> {
        self.phase(Phase::Drive);
        self.context
            .meter
            .check()
            .map_err(|error| cancelled(error.to_string()))?;
        self.recorder.record(EventKind::Prompted {
            text: Body::Text(prompt.to_owned()),
            turn: None,
        });
        let line = self.line(external).await?;
        let worked = tokio::select! {
            biased;
            // An agent may wait much longer for an unreachable model.
            ended = line_ended(line.as_ref()) => return Err(ended),
            worked = self.work_external(external, workspace, line.as_ref(), prompt) => worked?,
        };
        // The sessions are closed first, so that their record is complete before grading.
        workspace.close().await;
        let mut report = worked.map_err(|error| not_started(&error))?;
        if let Some(line) = &line {
            line.explain(&mut report);
        }
        self.charge(external, &report, line.is_some());
        let trouble = line.as_ref().and_then(ModelLine::trouble);
        let lost = line.as_ref().and_then(ModelLine::unanswered);
        self.look_at(external, &report, trouble.as_deref(), lost)
            .await?;
        workspace.refused = std::mem::take(&mut report.refused);
        let answer = report.answer.unwrap_or_default();
        self.recorder.record(EventKind::AgentAnswered {
            text: Body::Text(answer.clone()),
        });
        Ok(self.redacted_text(&answer))
    }

    /// Counts the usage that the agent reports, unless the model tap measured it.
    fn charge(&self, external: &ExternalAgent, report: &AgentReport, is_seen: bool) {
        if let (Some(usage), false) = (&report.usage, is_seen) {
            let name = &external.agent().name;
            let usage = usage.believable().unwrap_or_default();
            self.context.meter.charge(Purpose::Agent, name, &usage);
        }
    }

    /// Why the work can't be graded, if so.
    async fn look_at(
        &self,
        external: &ExternalAgent,
        report: &AgentReport,
        trouble: Option<&str>,
        lost: Option<(Blame, String)>,
    ) -> Result<(), TrialEnded> {
        let (recorder, replay) = (self.recorder.clone(), self.replay.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let facts = match recorder.written()? {
                Some((events, blobs)) => ServerContacts::of(events, &blobs)?,
                None => ServerContacts::default(),
            };
            let drift = match &replay {
                Some(replay) => replay.drift(&recorder)?,
                None => Drift::default(),
            };
            Ok((facts, drift))
        });
        let read: Result<_, proctor_record::record::RecordError> = match reading.await {
            Ok(read) => read,
            // Propagates a panic of the task.
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let (facts, drift) = read.map_err(|error| errored(Blame::Infra, error.to_string()))?;
        if !drift.is_none() && self.replay.as_ref().is_some_and(Replay::is_strict) {
            let reason = format!("the replay differs from the record: {}", drift.brief());
            return Err(errored(Blame::Infra, reason));
        }
        let folded = self.folded().await?;
        let servers = self.servers();
        let work = AgentEvidence {
            report,
            facts: &facts,
            failure: server_failure(&folded.conduct),
            breach: self.breach(&folded),
            at_fault: blame_for_failure(&folded),
            servers: &servers,
            tools: self.tools(),
            reach: Reach::of(external),
            trouble,
            lost,
            limits: &self.limits,
        };
        if let Some(ended) = self.on_record(|| verdict(&work)) {
            return Err(ended);
        }
        let asked = &folded.work.agent;
        match self.limits.max_tokens {
            Some(limit) if asked.usage.total() > limit => {
                let used = asked.usage.total();
                Err(timed_out(format!(
                    "the agent used {used} tokens of {limit}"
                )))
            }
            _ => Ok(()),
        }
    }

    async fn work_external(
        &self,
        external: &ExternalAgent,
        workspace: &mut AgentWorkspace,
        line: Option<&ModelLine>,
        prompt: &str,
    ) -> Result<Result<AgentReport, WorkError>, TrialEnded> {
        let context = &self.context;
        let infra = |error: &dyn std::fmt::Display| errored(Blame::Infra, error.to_string());
        let placed = external.in_trial(self.folder.values());
        let placed = placed.map_err(|error| infra(&error))?;
        let (Some(adapter), Some(taps)) = (placed.adapter(), &workspace.taps) else {
            return Err(infra(&"the trial has no agent"));
        };
        let program = &workspace.program;
        let stage = workspace
            .stage
            .insert(AgentFolders::new().map_err(|error| infra(&error))?);
        let sources = &context.suite.skills;
        let skills = match external.skill_folder() {
            Ok(at) if !sources.is_empty() => {
                stage.mount(sources, at).map_err(|error| infra(&error))?;
                Some(at.to_owned())
            }
            _ => None,
        };
        let mut environment = placed.environment(
            &context.environment,
            &context.pass,
            stage.homes(),
            line.is_some(),
        );
        let dir = &self.folder.values().dir;
        environment
            .entry(TRIAL_DIR.to_owned())
            .or_insert_with(|| dir.clone());
        let assignment = Assignment {
            prompt: prompt.to_owned(),
            servers: self.servers_of(adapter, taps.offered()),
            access: self.access(external, line)?,
            folder: stage.folder.clone(),
            skills,
            home: stage.home.clone(),
            environment,
            max_turns: self.limits.max_turns,
        };
        let version = external.version(&assignment.environment, &stage.folder, &context.guard);
        let post = Post {
            recorder: &self.recorder,
            purpose: Purpose::Agent,
            guard: &context.guard,
            folder: &stage.folder,
            admit: &|pid, end| {
                taps.admit(pid);
                let _ = program.set(end);
            },
            version: version.await,
            skill_tool: external.skill_tool(),
            watch: &|called| self.watch.called(called),
        };
        Ok(adapter.work(&assignment, &post).await)
    }

    /// The servers, in the form that this agent needs.
    fn servers_of(&self, adapter: Adapter<'_>, offered: &[AgentServer]) -> Vec<AgentServer> {
        let mut servers = offered.to_vec();
        for server in &mut servers {
            let tools = self.tools().get(&server.name);
            server.tools = tools.cloned().unwrap_or_default();
            if adapter.wants_tool_names() && server.allowed == AllowedTools::All {
                server.allowed = AllowedTools::Only(server.tools.clone());
            }
        }
        servers
    }

    /// How the agent reaches its model: through the tap, or as the user does.
    fn access(
        &self,
        external: &ExternalAgent,
        line: Option<&ModelLine>,
    ) -> Result<ModelAccess, TrialEnded> {
        let Some(line) = line else {
            let access = external.access(&self.context.environment);
            return access.map_err(|error| errored(Blame::Suite, error.to_string()));
        };
        Ok(line.access(external))
    }

    /// Opens the model tap for the agent, if it is enabled.
    async fn line(&self, external: &ExternalAgent) -> Result<Option<ModelLine>, TrialEnded> {
        let limits = &self.limits;
        let options = LineOptions {
            environment: &self.context.environment,
            limits: LoopLimits {
                turns: limits.max_turns,
                tokens: limits.max_tokens,
                cost_usd: limits.max_cost_usd,
            },
            meter: self.context.meter.clone(),
            recorder: self.recorder.clone(),
            replay: self.replay.clone(),
            waiting: self.waiting.clone(),
        };
        let opened = ModelLine::open(external, options).await;
        opened.map_err(|error| match error {
            LineError::Unfit(reason) => errored(Blame::Suite, reason),
            LineError::System(error) => errored(Blame::Infra, error.to_string()),
        })
    }
}

/// The end of a trial whose model tap ended the agent.
async fn line_ended(line: Option<&ModelLine>) -> TrialEnded {
    let Some(line) = line else {
        return std::future::pending().await;
    };
    match line.ended().await {
        TapEnd::Limit(why) => timed_out(why),
        TapEnd::Budget(why) => cancelled(why),
        TapEnd::Unpriced(why) => errored(Blame::Suite, why),
        TapEnd::Dead(why) => errored(Blame::Infra, why),
    }
}

/// The end of a trial whose agent did not start its work.
fn not_started(error: &WorkError) -> TrialEnded {
    let blame = match error {
        WorkError::Unfit(_) => Blame::Suite,
        WorkError::Start(_) => Blame::Infra,
    };
    errored(blame, format!("the agent can't be started: {error}"))
}

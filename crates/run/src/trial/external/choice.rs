//! The choice of an external agent in a selection trial: the calls of its first turn, which no server gets.
//!
//! Its main type is [`ExternalChoice`].

use std::time::Duration;

use proctor_record::event::{Blame, Body, Phase, SelectedCall, TrialEnded};
use proctor_record::fold::FoldedTrial;
use proctor_record::record::{Blobs, EventReader, RecordError};
use proctor_record::transcript::{Call, CallOutcome};

use super::super::Trial;
use super::super::ending::errored;
use super::AgentWorkspace;
use super::facts::ServerContacts;
use super::first_turn::FirstTurn;
use super::verdict::Reach;
use super::withhold::WithheldCalls;
use crate::external::ExternalAgent;

/// How long an agent may take from its first call to the last one of the same turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_POLL: Duration = Duration::from_millis(20);

/// What an external agent chose in a selection trial.
pub(in super::super) struct ExternalChoice {
    /// The names that its model invented, and the calls of its first turn.
    pub(in super::super) calls: Vec<SelectedCall>,
    /// Its answer, if it made no call.
    pub(in super::super) answer: String,
    /// Whether the record has its answer.
    pub(in super::super) is_answered: bool,
}

impl Trial {
    /// Runs an external agent until the calls of its first turn, which no server gets.
    pub(in super::super) async fn choose_external(
        &self,
        external: &ExternalAgent,
        workspace: &mut AgentWorkspace,
        prompt: &str,
    ) -> Result<ExternalChoice, TrialEnded> {
        let withheld = WithheldCalls::new(self.recorder.clone());
        self.phase(Phase::Serve);
        self.offer(external, workspace, Some(&withheld)).await?;
        let answered = tokio::select! {
            biased;
            () = self.first_turn_called(&withheld) => None,
            answer = self.drive_external(external, workspace, prompt) => Some(answer),
        };
        workspace.close().await;
        let called = withheld.calls();
        let answer = match answered {
            // An agent that went on after its call ends as it likes: its first call is its choice.
            Some(Err(ended)) if called.is_empty() => return Err(ended),
            Some(Err(_)) | None => None,
            Some(Ok(answer)) => Some(answer),
        };
        let turn = self.first_turn().await?;
        let folded = self.folded().await?;
        if let (None, Some(reason)) = (&answer, self.unlisted(external).await?) {
            return Err(errored(Blame::Agent, reason));
        }
        // The model called these before, and the agent refused.
        let invented = folded.work.invented.iter().map(|name| SelectedCall {
            server: None,
            tool: name.clone(),
            arguments: Body::Text("{}".to_owned()),
        });
        Ok(ExternalChoice {
            calls: invented
                .chain(called.into_iter().take(turn.calls))
                .collect(),
            is_answered: answer.is_some(),
            answer: answer.unwrap_or_default(),
        })
    }

    /// Waits until the calls of the agent's first turn have their answers in the record.
    async fn first_turn_called(&self, withheld: &WithheldCalls) {
        withheld.first().await;
        let started = tokio::time::Instant::now();
        while started.elapsed() < TURN_TIMEOUT {
            tokio::time::sleep(ANSWER_POLL).await;
            let is_answered = |folded: &FoldedTrial| {
                let calls = &folded.transcript.calls;
                let has_answer = |call: &Call| call.answer != CallOutcome::None;
                !calls.is_empty() && calls.iter().all(has_answer)
            };
            if self.first_turn().await.is_ok_and(|turn| turn.is_over)
                && self.folded().await.is_ok_and(|folded| is_answered(&folded))
            {
                return;
            }
        }
    }

    async fn first_turn(&self) -> Result<FirstTurn, TrialEnded> {
        self.read_record(FirstTurn::of).await
    }

    /// Reads what is recorded so far.
    async fn read_record<T: Default + Send + 'static>(
        &self,
        read: impl FnOnce(EventReader, &Blobs) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<T, TrialEnded> {
        let recorder = self.recorder.clone();
        let reading = tokio::task::spawn_blocking(move || match recorder.written()? {
            Some((events, blobs)) => read(events, &blobs),
            None => Ok(T::default()),
        });
        match reading.await {
            Ok(found) => found.map_err(|error| errored(Blame::Infra, error.to_string())),
            // Propagates a panic of the task.
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// The server whose tools the agent never listed, so that its model could not choose them.
    async fn unlisted(&self, external: &ExternalAgent) -> Result<Option<String>, TrialEnded> {
        let facts = self.read_record(ServerContacts::of);
        let facts = facts.await?;
        if Reach::of(external) != Reach::AllListed {
            return Ok(None);
        }
        let has_tools = |name: &str| {
            let tools = self.tools().get(name);
            tools.is_none_or(|tools| !tools.is_empty())
        };
        let servers = self.servers();
        let unlisted = servers
            .iter()
            .find(|server| has_tools(&server.name) && !facts.listed.contains(&server.name));
        Ok(unlisted.map(|server| format!("the agent never listed the tools of `{}`", server.name)))
    }
}

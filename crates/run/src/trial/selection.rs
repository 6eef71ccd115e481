//! Selection trials: the model gets all tools and takes one turn, and Proctor calls none of them.
//!
//! An external agent works as usual, but Proctor answers its calls in place of the servers, and its
//! first call ends the trial.

use proctor_core::check::{Check, SelectionCheck, SelectionMode};
use proctor_core::suite::{MessageRole, SelectionInput, SelectionMessage};
use proctor_record::decision::{blame_for_failure, server_failure};
use proctor_record::event::{
    Blame, Body, EventKind, Phase, Purpose, SelectedCall, ToolName, ToolsSelected, TrialEnded,
};
use proctor_record::model::{Arguments, ModelMessage, ModelRequest, StopReason, ToolCall, Turn};

use super::ending::{errored, failed, timed_out};
use super::external::{AgentWorkspace, ExternalChoice};
use super::shipped::conversation::turn_text;
use super::{Trial, close, early_end, unanswered};
use crate::agent::Toolbox;
use crate::context::Worker;
use crate::steps::Steps;

/// The name of Proctor's own tools for resources and prompts, as a server.
const OWN: &str = "proctor";

impl Trial {
    /// Runs and grades a selection row.
    pub(super) async fn work_selection(
        &self,
        input: &SelectionInput,
        steps: &mut Steps,
        toolbox: &mut Option<Toolbox>,
        workspace: &mut AgentWorkspace,
    ) -> TrialEnded {
        let expectation = match self.expectation() {
            Ok(expectation) => expectation,
            Err(reason) => return errored(Blame::Suite, reason),
        };
        let answered = match &self.context.agents[self.agent] {
            Worker::External(external) => {
                let prompt = input.messages.last().map(|last| last.text.as_str());
                let prompt = prompt.unwrap_or_default();
                match self.choose_external(external, workspace, prompt).await {
                    Ok(choice) => Ok(self.chosen_externally(expectation, choice)),
                    Err(ended) => Err(ended),
                }
            }
            Worker::Model(_) | Worker::NoAgent => self.choose(input, toolbox, expectation).await,
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(ended) => return ended,
        };
        self.phase(Phase::Grade);
        steps.agent_answered(answer.clone());
        self.grade(steps, &answer, None).await
    }

    /// What the row expects, as the record holds it.
    fn expectation(&self) -> Result<ToolsSelected, String> {
        let checks = self.case().checks.iter();
        let check = checks.map(AsRef::as_ref).find_map(|check| {
            let Check::Selection(check) = check else {
                return None;
            };
            Some(check.as_ref())
        });
        let Some(check) = check else {
            return Err("the row expects nothing".to_owned());
        };
        let expected = check
            .expected()
            .iter()
            .map(|tool| self.offered_by(check, tool));
        Ok(ToolsSelected {
            expected: expected.collect::<Result<_, _>>()?,
            others_allowed: check.mode == SelectionMode::Contains,
            calls: Vec::new(),
        })
    }

    fn offered_by(&self, check: &SelectionCheck, tool: &str) -> Result<ToolName, String> {
        let mut servers = self.tools().iter().filter(|(server, tools)| {
            let is_meant = check.server.as_ref().is_none_or(|meant| meant == *server);
            is_meant && self.case().uses(server) && tools.iter().any(|one| one == tool)
        });
        match servers.next() {
            Some((server, _)) => Ok(ToolName {
                server: server.clone(),
                tool: tool.to_owned(),
            }),
            None => Err(format!("no server offers the tool `{tool}`")),
        }
    }

    /// Asks the model once. Returns its turn as text.
    async fn choose(
        &self,
        input: &SelectionInput,
        toolbox: &mut Option<Toolbox>,
        expectation: ToolsSelected,
    ) -> Result<String, TrialEnded> {
        self.phase(Phase::Serve);
        let opened = self.serve().await;
        let tools = toolbox.insert(opened.map_err(|(blame, reason)| errored(blame, reason))?);
        self.phase(Phase::Drive);
        let Some(model) = self.context.agents[self.agent].model() else {
            return Err(errored(Blame::Suite, "the case has no agent"));
        };
        self.recorder.record(EventKind::Prompted {
            text: Body::Text(self.case().prompt.to_string()),
            turn: None,
        });
        let request = ModelRequest {
            system: tools.instructions(),
            messages: input.messages.iter().map(message).collect(),
            tools: tools.tools().clone(),
            ..ModelRequest::default()
        };
        let asker = self.asker(model, Purpose::Agent);
        let answered = asker.ask(&request).await.map_err(|e| unanswered(&e))?;
        let turn = answered.reply.turn;
        let choice = ToolsSelected {
            calls: turn
                .calls
                .iter()
                .map(|call| selected(call, tools))
                .collect(),
            ..expectation
        };
        self.recorder.record(EventKind::ToolsSelected(choice));
        let answer = turn_text(&turn);
        self.recorder.record(EventKind::AgentAnswered {
            text: Body::Text(answer.clone()),
        });
        let shared_breach = self.shared_breach(tools);
        close(toolbox.take()).await;
        let folded = self.folded().await?;
        if let Some(failure) = server_failure(&folded.conduct) {
            return Err(early_end::ended(failure));
        }
        if let Some(failure) = shared_breach.or_else(|| self.breach(&folded)) {
            return Err(early_end::ended(failure));
        }
        let used = answered.reply.usage.total();
        if let Some(limit) = self.limits.max_tokens
            && used > limit
        {
            return Err(timed_out(format!(
                "the agent used {used} tokens of {limit}"
            )));
        }
        match stopped(&turn, &answered.reply.stop) {
            Some(reason) => Err(failed(blame_for_failure(&folded), reason)),
            None => Ok(self.redacted_text(&answer)),
        }
    }

    /// Records the choice of an external agent. Returns its answer.
    fn chosen_externally(&self, expectation: ToolsSelected, choice: ExternalChoice) -> String {
        let answer = match &choice.calls[..] {
            [] => choice.answer,
            calls => {
                let call = |call: &SelectedCall| format!("calls {}", call.tool);
                let calls: Vec<String> = calls.iter().map(call).collect();
                calls.join("\n")
            }
        };
        self.recorder
            .record(EventKind::ToolsSelected(ToolsSelected {
                calls: choice.calls,
                ..expectation
            }));
        if !choice.is_answered {
            self.recorder.record(EventKind::AgentAnswered {
                text: Body::Text(answer.clone()),
            });
        }
        self.redacted_text(&answer)
    }
}

fn message(message: &SelectionMessage) -> ModelMessage {
    match message.role {
        MessageRole::User => ModelMessage::User(message.text.clone()),
        MessageRole::Assistant => ModelMessage::Assistant(Turn {
            text: message.text.clone(),
            thinking: Vec::new(),
            calls: Vec::new(),
        }),
    }
}

/// A call of the model, with the server's own name of the tool.
fn selected(call: &ToolCall, tools: &Toolbox) -> SelectedCall {
    let (server, tool) = match tools.called(call) {
        Some(known) if known.server.is_empty() => (Some(OWN.to_owned()), known.name),
        Some(known) => (Some(known.server), known.name),
        None => (None, call.name.clone()),
    };
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => serde_json::Value::from(arguments.clone()).to_string(),
        Arguments::Malformed { text, .. } => text.clone(),
    };
    SelectedCall {
        server,
        tool,
        arguments: Body::Text(arguments),
    }
}

/// Why a turn without calls is no answer: the model refused, or was cut off.
fn stopped(turn: &Turn, stop: &StopReason) -> Option<String> {
    if !turn.calls.is_empty() {
        return None;
    }
    match stop {
        StopReason::Done | StopReason::Calls => None,
        StopReason::Refusal => Some("the model refused to answer".to_owned()),
        StopReason::Length => Some("the model's answer was cut off".to_owned()),
        StopReason::Other(_) if !turn.text.trim().is_empty() => None,
        StopReason::Other(word) => Some(format!("the model stopped without an answer: `{word}`")),
    }
}

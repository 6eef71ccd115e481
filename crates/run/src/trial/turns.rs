//! The conversation of a task: the prompt, and what the user says after it.

use proctor_core::grading::{SILENT, is_blank};
use proctor_core::suite::turns::UserTurn;
use proctor_models::{LoopLimits, ModelClient};
use proctor_record::event::{Blame, Body, EventKind, Purpose, TrialEnded};
use proctor_record::model::{ModelMessage, ModelRequest, StopReason};

use super::Trial;
use super::ending::{errored, timed_out};
use super::unanswered;
use crate::agent::{AgentOutcome, AgentSpending, Task, Toolbox, drive};
use crate::context::model_key;
use crate::steps::Steps;

/// With this in its reply, a model that plays the user ends the conversation.
const END: &str = "[end]";

/// Everything that the user says in a trial, with templates filled in.
pub(super) struct UserScript {
    pub(super) prompt: String,
    turns: Vec<FilledTurn>,
}

enum FilledTurn {
    Message(String),
    User(PlayedUser),
}

/// A user that a model plays.
struct PlayedUser {
    /// The key of the model.
    model: String,
    goal: String,
    stop: String,
    max_messages: u32,
}

/// A conversation of the user with the agent.
struct UserConversation<'a> {
    tools: &'a Toolbox,
    asker: &'a ModelClient,
    /// The messages as the agent's model sees them.
    messages: Vec<ModelMessage>,
    /// What the user said, and the answer to it.
    exchanges: Vec<(String, String)>,
    /// Whether the user says something after the prompt.
    has_turns: bool,
    spent: AgentSpending,
}

impl Trial {
    /// Fills in what the user says.
    pub(super) fn user_script(&self, steps: &mut Steps) -> Result<UserScript, TrialEnded> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| {
            errored(Blame::Suite, format!("{what}: {error}"))
        };
        let prompt = steps
            .prompt()
            .map_err(|error| wrong("the prompt", &error))?;
        let mut turns = Vec::new();
        for (turn, number) in self.case().turns.iter().zip(2..) {
            let fill = |template| {
                let filled = steps.fill(template);
                filled.map_err(|error| wrong(&format!("turn {number}"), &error))
            };
            turns.push(match turn {
                UserTurn::Message(message) => FilledTurn::Message(fill(message)?),
                UserTurn::Model(user) => FilledTurn::User(PlayedUser {
                    model: model_key(&user.model),
                    goal: fill(&user.goal)?,
                    stop: fill(&user.stop)?,
                    max_messages: user.max_messages,
                }),
            });
        }
        Ok(UserScript { prompt, turns })
    }

    /// Runs the agent until it has answered every message of the user. A turn without an answer
    /// ends the conversation. So does a blank answer without a call, which would pass all checks of
    /// the turn that only forbid something; the grading handles it if there is only the prompt.
    pub(super) async fn converse(
        &self,
        tools: &Toolbox,
        asker: &ModelClient,
        script: &UserScript,
    ) -> Result<AgentOutcome, TrialEnded> {
        let mut conversation = UserConversation {
            tools,
            asker,
            messages: Vec::new(),
            exchanges: Vec::new(),
            has_turns: !script.turns.is_empty(),
            spent: AgentSpending::default(),
        };
        let mut outcome = self.say(&mut conversation, &script.prompt, None).await?;
        for (turn, number) in script.turns.iter().zip(2..) {
            if !matches!(outcome, AgentOutcome::Answered(_)) {
                break;
            }
            match turn {
                FilledTurn::Message(text) => {
                    outcome = self.say(&mut conversation, text, Some(number)).await?;
                }
                FilledTurn::User(user) => {
                    let played = self.play_user(&mut conversation, user, number).await?;
                    outcome = played.unwrap_or(outcome);
                }
            }
        }
        Ok(outcome)
    }

    /// Sends a message of the user to the agent, and waits for the answer.
    async fn say(
        &self,
        conversation: &mut UserConversation<'_>,
        text: &str,
        turn: Option<u32>,
    ) -> Result<AgentOutcome, TrialEnded> {
        self.recorder.record(EventKind::Prompted {
            text: Body::Text(text.to_owned()),
            turn,
        });
        let mut messages = std::mem::take(&mut conversation.messages);
        messages.push(ModelMessage::User(text.to_owned()));
        let said_before = messages.len();
        let (outcome, messages) = drive(Task {
            messages,
            asker: conversation.asker,
            toolbox: conversation.tools,
            limits: LoopLimits {
                turns: self.limits.max_turns,
                tokens: self.limits.max_tokens,
                cost_usd: self.limits.max_cost_usd,
            },
            spent: &mut conversation.spent,
            watch: &|called| self.watch.called(called),
        })
        .await;
        conversation.messages = messages;
        if let Some(ended) = Self::reply_failure(conversation.tools) {
            return Err(ended);
        }
        if let AgentOutcome::Answered(answer) = &outcome {
            self.recorder.record(EventKind::AgentAnswered {
                text: Body::Text(answer.clone()),
            });
            let exchange = (text.to_owned(), answer.clone());
            conversation.exchanges.push(exchange);
            let replies = &conversation.messages[said_before..];
            if conversation.has_turns
                && is_blank(answer)
                && !has_called(replies, conversation.tools)
            {
                let reason = format!("{SILENT} in turn {}", turn.unwrap_or(1));
                return Ok(AgentOutcome::Stopped(reason));
            }
        }
        Ok(outcome)
    }

    /// Lets a model play the user until it ends the conversation. `None` if it sends no message.
    async fn play_user(
        &self,
        conversation: &mut UserConversation<'_>,
        user: &PlayedUser,
        turn: u32,
    ) -> Result<Option<AgentOutcome>, TrialEnded> {
        let Some(model) = self.context.others.get(&user.model) else {
            let reason = format!("the model of turn {turn} was not opened");
            return Err(errored(Blame::Infra, reason));
        };
        let asker = self.asker(model, Purpose::User);
        let mut request = ModelRequest {
            system: Some(user.instructions()),
            messages: vec![ModelMessage::User(opening(&conversation.exchanges))],
            ..ModelRequest::default()
        };
        let mut outcome = None;
        for sent in 0.. {
            let priced = asker.ask(&request).await;
            let reply = priced.map_err(|error| unanswered(&error))?.reply;
            let text = reply.turn.text.clone();
            if text.contains(END) {
                break;
            }
            if sent == user.max_messages {
                let reason = format!("the user of turn {turn} was not done after {sent} messages");
                return Err(timed_out(reason));
            }
            let is_message = match reply.stop {
                StopReason::Done | StopReason::Calls | StopReason::Other(_) => !is_blank(&text),
                StopReason::Length | StopReason::Refusal => false,
            };
            if !is_message {
                let name = model.name();
                let reason =
                    format!("`{name}`, which plays the user of turn {turn}, wrote no message");
                return Err(errored(Blame::Suite, reason));
            }
            request.messages.push(ModelMessage::Assistant(reply.turn));
            let said = self.say(conversation, &text, Some(turn)).await?;
            let AgentOutcome::Answered(answer) = &said else {
                return Ok(Some(said));
            };
            request.messages.push(ModelMessage::User(answer.clone()));
            outcome = Some(said);
        }
        Ok(outcome)
    }
}

impl PlayedUser {
    fn instructions(&self) -> String {
        let Self { goal, stop, .. } = self;
        format!(
            "You play a user who talks to an AI assistant. Stay in this role: write only the \
             user's next message, and never do the assistant's work.\n\nThe user's goal:\n{goal}\n\n\
             End the conversation when this holds:\n{stop}\n\nTo end it, reply with {END} and \
             nothing else."
        )
    }
}

/// The conversation so far, for a model that starts to play the user.
fn opening(exchanges: &[(String, String)]) -> String {
    let each = exchanges.iter().map(|(said, answer)| {
        format!("The user wrote:\n{said}\n\nThe assistant replied:\n{answer}")
    });
    let so_far = each.collect::<Vec<_>>().join("\n\n");
    format!("{so_far}\n\nWrite the user's next message.")
}

/// Whether any of these messages has a call of a tool that exists.
fn has_called(messages: &[ModelMessage], tools: &Toolbox) -> bool {
    messages.iter().any(|message| match message {
        ModelMessage::Assistant(turn) => turn.calls.iter().any(|call| tools.called(call).is_some()),
        ModelMessage::User(_) | ModelMessage::Media(_) | ModelMessage::Results(_) => false,
    })
}

//! The built-in agent: a model, the tools of all servers, and a loop.
//!
//! Its main function is [`drive`]. It knows nothing of cases, checks or timeouts: the caller stops
//! it by dropping the future.

mod names;
mod rendering;
mod toolbox;

use proctor_record::model::{ModelMessage, ModelRequest, StopReason, ToolCall, ToolResult, Usage};

pub use self::toolbox::{ConnectedServer, KnownOffers, ServerLoss, ToolCallNotice, Toolbox};
use crate::together::together;
pub use proctor_models::{AskError, LoopLimits, ModelClient, ModelError};

/// The default turn limit, which ends a model that loops forever.
pub const DEFAULT_TURNS: u32 = 100;

/// One task for the built-in agent.
pub struct Task<'a> {
    /// The conversation so far, ending with the prompt.
    pub messages: Vec<ModelMessage>,
    pub asker: &'a ModelClient,
    pub toolbox: &'a Toolbox,
    pub limits: LoopLimits,
    /// What the agent used before, to which its use is added. The limits apply to all of it.
    pub spent: &'a mut AgentSpending,
    /// Called for each tool call, before it is sent.
    pub watch: &'a (dyn Fn(ToolCallNotice) + Send + Sync),
}

/// How the agent's work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentOutcome {
    /// The agent's final answer.
    Answered(String),
    /// The model refused, or its reply was cut off.
    Stopped(String),
    /// The agent reached its turn limit.
    Turns(String),
    /// The agent reached its token or cost limit.
    Limit(String),
    /// A server became unusable.
    Lost(ServerLoss),
    /// The model became unusable.
    Unanswered(AskError),
}

/// Runs the agent until it answers or has to stop. Also returns the conversation.
pub async fn drive(task: Task<'_>) -> (AgentOutcome, Vec<ModelMessage>) {
    let mut request = ModelRequest {
        system: task.toolbox.instructions(),
        tools: task.toolbox.tools().clone(),
        ..ModelRequest::default()
    };
    let mut task = task;
    request.messages = std::mem::take(&mut task.messages);
    let outcome = loop {
        match turn(&mut task, &mut request).await {
            None => {}
            Some(outcome) => break outcome,
        }
    };
    (outcome, request.messages)
}

/// Asks the model once and makes the calls of its reply; returns the outcome if that ends the work.
async fn turn(task: &mut Task<'_>, request: &mut ModelRequest) -> Option<AgentOutcome> {
    if let Some(end) = task.spent.exceeds(&task.limits) {
        return Some(end);
    }
    let asked = match task.asker.ask(request).await {
        Ok(asked) => asked,
        Err(error) => return Some(AgentOutcome::Unanswered(error)),
    };
    task.spent.add(&asked.reply.usage, asked.cost_usd);
    if let (Some(limit), false) = (task.limits.tokens, asked.reply.usage.is_known()) {
        let detail = format!(
            "it does not report its token usage, so a limit of {limit} tokens can't be enforced"
        );
        let error = ModelError::Malformed { detail };
        return Some(AgentOutcome::Unanswered(AskError::Model {
            error,
            attempts: 1,
        }));
    }
    let turn = asked.reply.turn;
    request.messages.push(ModelMessage::Assistant(turn.clone()));
    if let Some(reason) = task.spent.overdrawn(&task.limits) {
        return Some(AgentOutcome::Limit(reason));
    }
    if turn.calls.is_empty() {
        return Some(answered(turn.text, &asked.reply.stop));
    }
    match make_calls(task, &turn.calls).await {
        Ok(results) => request.messages.push(ModelMessage::Results(results)),
        Err(lost) => return Some(AgentOutcome::Lost(lost)),
    }
    None
}

/// The outcome of a reply without calls: an answer, unless the model had to stop.
fn answered(text: String, stop: &StopReason) -> AgentOutcome {
    let said = match text.trim() {
        "" => String::new(),
        text => format!(": {}", brief(text)),
    };
    match stop {
        StopReason::Done | StopReason::Calls => AgentOutcome::Answered(text),
        StopReason::Refusal => AgentOutcome::Stopped(format!("the model refused to answer{said}")),
        StopReason::Length => {
            AgentOutcome::Stopped(format!("the model's answer was cut off{said}"))
        }
        // Some endpoints have their own word for `stop`.
        StopReason::Other(_) if !text.trim().is_empty() => AgentOutcome::Answered(text),
        StopReason::Other(word) => {
            AgentOutcome::Stopped(format!("the model stopped without an answer: `{word}`"))
        }
    }
}

/// The first line of a reply, cut to 200 bytes.
fn brief(text: &str) -> &str {
    let end = text.floor_char_boundary(200);
    text[..end].lines().next().unwrap_or_default()
}

/// Makes all calls of one turn at the same time. Calls to the same server are sent in order.
async fn make_calls(task: &Task<'_>, calls: &[ToolCall]) -> Result<Vec<ToolResult>, ServerLoss> {
    let made = calls.iter().map(|call| {
        if let Some(called) = task.toolbox.called(call) {
            (task.watch)(called);
        }
        task.toolbox.call(call)
    });
    together(made).await.into_iter().collect()
}

/// The turns, tokens and dollars that the agent used.
#[derive(Debug, Default)]
pub struct AgentSpending {
    turns: u32,
    usage: Usage,
    cost_usd: f64,
}

impl AgentSpending {
    fn add(&mut self, usage: &Usage, cost_usd: Option<f64>) {
        self.turns += 1;
        self.usage.add(usage);
        self.cost_usd += cost_usd.unwrap_or(0.0);
    }

    /// Returns the limit that forbids another turn.
    fn exceeds(&self, limits: &LoopLimits) -> Option<AgentOutcome> {
        let turns = limits.turns.unwrap_or(DEFAULT_TURNS);
        if self.turns >= turns {
            let reason = format!("the agent was not done after {turns} turns");
            return Some(AgentOutcome::Turns(reason));
        }
        self.beyond(limits, |used, limit| used >= limit)
            .map(AgentOutcome::Limit)
    }

    /// Returns the limit that the last turn exceeded.
    fn overdrawn(&self, limits: &LoopLimits) -> Option<String> {
        self.beyond(limits, |used, limit| used > limit)
    }

    fn beyond(&self, limits: &LoopLimits, is_beyond: fn(f64, f64) -> bool) -> Option<String> {
        #[expect(clippy::cast_precision_loss, reason = "token counts stay below 2^53")]
        let count = |tokens: u64| tokens as f64;
        let used = self.usage.total();
        if let Some(limit) = limits.tokens
            && is_beyond(count(used), count(limit))
        {
            return Some(format!("the agent used {used} tokens of {limit}"));
        }
        if let Some(limit) = limits.cost_usd
            && is_beyond(self.cost_usd, limit)
        {
            let cost = self.cost_usd;
            return Some(format!("the agent cost ${cost:.4} of ${limit}"));
        }
        None
    }
}

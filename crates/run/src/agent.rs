//! The built-in agent: a model, the tools of all servers, and a loop.
//!
//! Its main function is [`drive`]. It knows nothing of cases, checks or time: whoever calls it may
//! drop it at any moment.

mod names;
mod rendering;
mod toolbox;

use proctor_core::model::{ModelMessage, ModelRequest, StopReason, ToolCall, ToolResult, Usage};

pub use self::toolbox::{ConnectedServer, ServerLoss, ToolCallNotice, Toolbox};
use crate::together::together;
pub use proctor_models::{AskError, LoopLimits, ModelClient, ModelError};

/// How many turns the agent has where nobody says: a model that goes round in circles must end.
pub const DEFAULT_TURNS: u32 = 100;

/// What the agent is given.
pub struct Task<'a> {
    /// What it is asked: the conversation so far.
    pub messages: Vec<ModelMessage>,
    /// Its model.
    pub asker: &'a ModelClient,
    /// What it can do.
    pub toolbox: &'a Toolbox,
    /// When it has to stop.
    pub limits: LoopLimits,
    /// Who is told of its calls.
    pub watch: &'a (dyn Fn(ToolCallNotice) + Send + Sync),
}

/// What the agent's work came to.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentOutcome {
    /// It was done, and this is its answer.
    Answered(String),
    /// Its model stopped before it was done.
    Stopped(String),
    /// It was not done after as many turns as it has.
    Turns(String),
    /// Another of its limits ended it.
    Limit(String),
    /// A server can't be used any more.
    Lost(ServerLoss),
    /// Its model can't be asked any more.
    Unanswered(AskError),
}

/// Lets the agent work until it is done or has to stop. Gives the conversation too.
pub async fn drive(task: Task<'_>) -> (AgentOutcome, Vec<ModelMessage>) {
    let mut request = ModelRequest {
        system: task.toolbox.instructions(),
        tools: task.toolbox.tools().to_vec(),
        ..ModelRequest::default()
    };
    let mut task = task;
    request.messages = std::mem::take(&mut task.messages);
    let mut spent = AgentSpending::default();
    let driven = loop {
        match turn(&task, &mut request, &mut spent).await {
            None => {}
            Some(driven) => break driven,
        }
    };
    (driven, request.messages)
}

/// Asks once, and makes the calls that come of it; gives the end, if it is one.
async fn turn(
    task: &Task<'_>,
    request: &mut ModelRequest,
    spent: &mut AgentSpending,
) -> Option<AgentOutcome> {
    if let Some(end) = spent.exceeds(&task.limits) {
        return Some(end);
    }
    let asked = match task.asker.ask(request).await {
        Ok(asked) => asked,
        Err(error) => return Some(AgentOutcome::Unanswered(error)),
    };
    spent.add(&asked.reply.usage, asked.cost_usd);
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
    if let Some(reason) = spent.overdrawn(&task.limits) {
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

/// What it means that a model calls nothing: it is done, unless it had to stop.
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
        // Some endpoints have words of their own for being done.
        StopReason::Other(_) if !text.trim().is_empty() => AgentOutcome::Answered(text),
        StopReason::Other(word) => {
            AgentOutcome::Stopped(format!("the model stopped without an answer: `{word}`"))
        }
    }
}

/// The start of what a model said.
fn brief(text: &str) -> &str {
    let end = text.floor_char_boundary(200);
    text[..end].lines().next().unwrap_or_default()
}

/// Makes the calls of one turn, all at once. Those to one server are sent in their order.
async fn make_calls(task: &Task<'_>, calls: &[ToolCall]) -> Result<Vec<ToolResult>, ServerLoss> {
    let made = calls.iter().map(|call| {
        if let Some(called) = task.toolbox.called(call) {
            (task.watch)(called);
        }
        task.toolbox.call(call)
    });
    together(made).await.into_iter().collect()
}

/// What the agent has used up.
#[derive(Debug, Default)]
struct AgentSpending {
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

    /// Why no further question may be asked.
    fn exceeds(&self, limits: &LoopLimits) -> Option<AgentOutcome> {
        let turns = limits.turns.unwrap_or(DEFAULT_TURNS);
        if self.turns >= turns {
            let reason = format!("the agent was not done after {turns} turns");
            return Some(AgentOutcome::Turns(reason));
        }
        self.beyond(limits, |used, limit| used >= limit)
            .map(AgentOutcome::Limit)
    }

    /// Why even what is done is too much.
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

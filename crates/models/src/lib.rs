//! Models: one small interface, whoever serves them.
//!
//! Main types: [`Model`], which is asked once, and [`ModelClient`], which asks for a trial: again where
//! that helps, within the budget, and on record.

mod anthropic;
mod asker;
mod failure;
mod gemini;
mod http;
mod limits;
mod media;
mod meter;
mod open;
mod open_error;
mod openai;
mod openai_responses;
mod patience;
mod quirks;
mod replay;
mod schema;
mod scripted;
pub mod serve;
pub mod tap;
mod timeouts;
mod turns;
pub mod wire;

use std::pin::Pin;
use std::time::Duration;

use proctor_core::model::{ModelRequest, Reply};

use proctor_wire::recorder::Recorder;

pub use self::anthropic::Anthropic;
pub use self::asker::{AskError, ModelClient, PricedReply, RetryWait};
pub use self::gemini::Gemini;
pub use self::limits::LoopLimits;
pub use self::meter::{Budget, Meter, RunSpending, SpendingTotal};
pub use self::open::Settings;
pub use self::open::{format_of, key_variable, provider_of};
pub use self::open_error::ModelOpenError;
pub use self::openai::OpenAi;
pub use self::openai_responses::OpenAiResponses;
pub use self::patience::RetryPolicy;
pub use self::replay::Replay;
pub use self::scripted::ScriptedModel;
pub use self::timeouts::ModelTimeouts;
pub use self::wire::WireFormat;

/// An LLM behind an API, or a script.
#[derive(Debug)]
pub enum Model {
    /// A file of rules.
    Scripted(ScriptedModel),
    /// OpenAI's Chat Completions, and every server that speaks it.
    OpenAi(Box<OpenAi>),
    /// OpenAI's Responses.
    OpenAiResponses(Box<OpenAiResponses>),
    /// Anthropic's Messages.
    Anthropic(Box<Anthropic>),
    /// One that is not asked: what it replied in an earlier run is heard again.
    Recorded(String),
    /// Google's Gemini.
    Gemini(Box<Gemini>),
    /// A program that is given the question as a prompt. It judges, and does nothing else.
    Program(Box<dyn PromptedProgram>),
}

/// A program that answers a prompt as a model would.
pub trait PromptedProgram: std::fmt::Debug + Send + Sync {
    /// The model that it is told to use, as `provider:id`; the program's name, if that chooses it.
    fn name(&self) -> &str;

    /// Asks once. What the program does is in the record, as a judge's doing.
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        recorder: &'a Recorder,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
}

/// Why a model gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Too many questions.
    #[error("the model's provider asks for patience: {detail}")]
    RateLimited {
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
        /// What it said.
        detail: String,
    },
    /// Nobody there, or nobody well.
    #[error("the model can't be reached: {detail}")]
    Unavailable {
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// No reply in time.
    #[error("no reply from the model within {}", proctor_core::duration::brief(*.after))]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The key is wrong, or may not do this.
    #[error("the model's provider refuses the key: {detail}")]
    Key {
        /// What it said.
        detail: String,
    },
    /// The conversation has become too long.
    #[error("the conversation does not fit the model's context any more: {detail}")]
    ContextOverflow {
        /// What it said.
        detail: String,
    },
    /// The question is refused.
    #[error("the model's provider refuses the request: {detail}")]
    Rejected {
        /// What it said.
        detail: String,
    },
    /// A reply that makes no sense.
    #[error("the reply makes no sense: {detail}")]
    Malformed {
        /// What is wrong with it.
        detail: String,
    },
    /// A script that was not written for this question: the suite's mistake, which asking again
    /// does not mend.
    #[error("the script has no answer: {detail}")]
    Script {
        /// What is wrong with it.
        detail: String,
    },
    /// The record that is replayed has no reply to this.
    #[error("the run can't be replayed: {detail}")]
    Replay {
        /// What it lacks.
        detail: String,
    },
}

impl Model {
    /// The model, as `provider:id`.
    pub fn name(&self) -> &str {
        match self {
            Self::Scripted(model) => model.name(),
            Self::OpenAi(model) => model.name(),
            Self::OpenAiResponses(model) => model.name(),
            Self::Anthropic(model) => model.name(),
            Self::Recorded(name) => name,
            Self::Gemini(model) => model.name(),
            Self::Program(program) => program.name(),
        }
    }

    /// Asks once.
    pub async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        match self {
            Self::Scripted(model) => model.ask(request).await,
            Self::OpenAi(model) => model.ask(request).await,
            Self::OpenAiResponses(model) => model.ask(request).await,
            Self::Anthropic(model) => model.ask(request).await,
            Self::Recorded(_) => Err(ModelError::Replay {
                detail: "its models are not there to be asked".to_owned(),
            }),
            Self::Gemini(model) => model.ask(request).await,
            Self::Program(program) => program.ask(request, &Recorder::nothing()).await,
        }
    }

    /// Asks once, for a trial: what a program does then is in its record.
    pub(crate) async fn ask_for(
        &self,
        request: &ModelRequest,
        recorder: &Recorder,
    ) -> Result<Reply, ModelError> {
        match self {
            Self::Program(program) => program.ask(request, recorder).await,
            model => model.ask(request).await,
        }
    }
}

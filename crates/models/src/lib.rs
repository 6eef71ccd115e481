//! Models behind one small interface, for all providers.
//!
//! Main types: [`Model`], which sends single requests, and [`ModelClient`], which sends the
//! requests of a trial: with retries, within the budget, and recorded.

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
mod pace;
mod patience;
mod quirks;
mod replay;
mod schema;
mod scripted;
pub mod serve;
pub mod tap;
mod timeouts;
mod turns;
mod vertex;
pub mod wire;

use std::pin::Pin;
use std::time::Duration;

use proctor_record::model::{ModelRequest, Reply};

use proctor_wire::recorder::Recorder;

use self::pace::ProviderAccount;

pub use self::anthropic::Anthropic;
pub use self::asker::{AskError, ModelClient, PricedReply, RetryWait};
pub use self::gemini::Gemini;
pub use self::limits::LoopLimits;
pub use self::meter::{Budget, Meter, RunSpending, SpendingTotal};
pub use self::open::Settings;
pub use self::open::{format_of, key_variable, provider_of, proxy};
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
    /// Rules from a file instead of an LLM.
    Scripted(ScriptedModel),
    /// OpenAI's Chat Completions, and every compatible endpoint.
    OpenAi(Box<OpenAi>),
    OpenAiResponses(Box<OpenAiResponses>),
    Anthropic(Box<Anthropic>),
    /// A model whose recorded replies are replayed. It is never asked.
    Recorded(String),
    Gemini(Box<Gemini>),
    /// An external agent as judge, which gets the request as a prompt.
    Program(Box<dyn PromptedProgram>),
}

/// A program that answers a prompt like a model.
pub trait PromptedProgram: std::fmt::Debug + Send + Sync {
    /// The model that the program uses, as `provider:id`; the program's own name if it chooses the
    /// model.
    fn name(&self) -> &str;

    /// Sends one request. The program's actions are recorded as the judge's.
    fn ask<'a>(
        &'a self,
        request: &'a ModelRequest,
        recorder: &'a Recorder,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
}

/// Why a model gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("rate limited by the provider: {detail}")]
    RateLimited {
        /// The wait that the provider asks for.
        retry_after: Option<Duration>,
        detail: String,
    },
    /// The provider could not be reached, or reported an outage.
    #[error("the model is unavailable: {detail}")]
    Unavailable {
        /// The wait that the provider asks for.
        retry_after: Option<Duration>,
        /// Whether the provider has too many requests, from this client or from all.
        is_overload: bool,
        detail: String,
    },
    #[error("no reply from the model within {}", proctor_record::duration::brief(*.after))]
    TimedOut {
        /// How long Proctor waited.
        after: Duration,
    },
    /// The key is wrong or lacks a permission.
    #[error("unauthorized: the provider rejected the key: {detail}")]
    Key { detail: String },
    #[error("the conversation exceeds the model's context window: {detail}")]
    ContextOverflow { detail: String },
    #[error("the provider rejected the request: {detail}")]
    Rejected { detail: String },
    #[error("malformed reply: {detail}")]
    Malformed { detail: String },
    /// No rule of the script matches. This is an error in the suite, so a retry does not help.
    #[error("the script has no reply: {detail}")]
    Script { detail: String },
    /// The replayed record has no reply for this request.
    #[error("can't replay the run: {detail}")]
    Replay { detail: String },
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

    /// The account whose rate limits apply; `None` if no provider is asked over HTTP.
    pub(crate) fn account(&self) -> Option<ProviderAccount> {
        match self {
            Self::OpenAi(model) => Some(model.account()),
            Self::OpenAiResponses(model) => Some(model.account()),
            Self::Anthropic(model) => Some(model.account()),
            Self::Gemini(model) => Some(model.account()),
            Self::Scripted(_) | Self::Recorded(_) | Self::Program(_) => None,
        }
    }

    pub async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        match self {
            Self::Scripted(model) => model.ask(request).await,
            Self::OpenAi(model) => model.ask(request).await,
            Self::OpenAiResponses(model) => model.ask(request).await,
            Self::Anthropic(model) => model.ask(request).await,
            Self::Recorded(_) => Err(ModelError::Replay {
                detail: "a replayed run sends no requests to its models".to_owned(),
            }),
            Self::Gemini(model) => model.ask(request).await,
            Self::Program(program) => program.ask(request, &Recorder::nothing()).await,
        }
    }

    /// Sends one request for a trial, which records what a program does.
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

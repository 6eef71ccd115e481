//! An external agent's line to its model, for one assignment: through the model tap.
//!
//! Its main type is [`ModelLine`]. What the agent asks is in the record, and so is what it took; its key
//! opens the tap and nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::event::Blame;
use proctor_core::suite::Environment;

use super::{AgentReport, ExternalAgent, ModelAccess, ModelUrl};
use proctor_models::LoopLimits;
use proctor_models::serve::{ModelServer, ServedReply, ServedRequest};
pub use proctor_models::tap::{ModelTap, TapEnd, TapOptions, TapProvider};
use proctor_models::{Meter, ModelError, ModelTimeouts, Replay, RetryWait, Settings, WireFormat};
use proctor_wire::recorder::Recorder;

/// What a script that stands in for a model is called there.
const SCRIPTED: &str = "scripted-1";

/// A line that is open until this is dropped.
pub(crate) struct ModelLine {
    tap: ModelTap,
    format: WireFormat,
    /// The script at its other end, if it is one.
    script: Option<(ModelServer, ScriptGap)>,
}

/// What a line is opened with.
pub(crate) struct LineOptions<'a> {
    /// The user's environment, which has the real key.
    pub(crate) environment: &'a Environment,
    /// What the agent may take.
    pub(crate) limits: LoopLimits,
    /// Counts what is asked.
    pub(crate) meter: Arc<Meter>,
    /// Keeps what is asked.
    pub(crate) recorder: Recorder,
    /// What is heard again instead of asking.
    pub(crate) replay: Option<Replay>,
    /// The time that is spent waiting for the provider.
    pub(crate) waiting: RetryWait,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// The agent has no place for it, or its model can't be asked.
    #[error("{0}")]
    Unfit(String),
    /// The system does not let us.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// The first thing that was asked and a script has no answer to.
type ScriptGap = Arc<Mutex<Option<String>>>;

impl ModelLine {
    /// Opens a line; `None` if the agent has a way of its own to its model.
    pub(crate) async fn open(
        external: &ExternalAgent,
        options: LineOptions<'_>,
    ) -> Result<Option<Self>, LineError> {
        let is_replayed = options.replay.is_some();
        if !external.is_tapped() && !is_replayed {
            return Ok(None);
        }
        let Some(format) = external.format() else {
            let name = &external.agent().name;
            let reason = format!("the agent `{name}` does not support a custom model URL");
            return Err(LineError::Unfit(reason));
        };
        let mut script = None;
        let provider = match external.scripted().and_then(|model| model.script.as_ref()) {
            _ if is_replayed => None,
            Some(rules) => {
                let trouble = ScriptGap::default();
                let noted = trouble.clone();
                let watch = move |served: &ServedRequest| note(served, &noted);
                let server = ModelServer::watched(rules.as_ref().clone(), 0, watch).await?;
                let provider = TapProvider::own(server.address(), format);
                script = Some((server, trouble));
                Some(provider)
            }
            None => {
                let provider = external.provider(&Settings::of(options.environment));
                Some(provider.map_err(|error| LineError::Unfit(error.to_string()))?)
            }
        };
        let tap = ModelTap::start(TapOptions {
            provider,
            name: external.model_name(),
            limits: options.limits,
            meter: options.meter,
            timeouts: ModelTimeouts::default(),
            waiting: options.waiting,
            recorder: options.recorder,
            replay: options.replay,
        });
        let tap = tap.await?;
        Ok(Some(Self {
            tap,
            format,
            script,
        }))
    }

    /// How the agent reaches its model over it.
    pub(crate) fn access(&self, external: &ExternalAgent) -> ModelAccess {
        let endpoint = self.endpoint();
        let mut access = external.named_model();
        if external.scripted().is_some() {
            access.model = (endpoint.format != WireFormat::Messages).then(|| SCRIPTED.to_owned());
        }
        access.endpoint = Some(endpoint);
        access
    }

    /// Where the agent finds it, and with which key.
    fn endpoint(&self) -> ModelUrl {
        let base = self.tap.base();
        ModelUrl {
            base: match self.format {
                WireFormat::Chat | WireFormat::Responses => format!("{base}/v1"),
                WireFormat::Messages | WireFormat::Gemini => base,
            },
            key: self.tap.key().to_owned(),
            format: self.format,
        }
    }

    /// Waits until the line is a reason to end the agent.
    pub(crate) async fn ended(&self) -> TapEnd {
        self.tap.ended().await
    }

    /// Adds what the provider said to what the agent makes of it.
    pub(crate) fn explain(&self, told: &mut AgentReport) {
        // What the agent asked wrongly is told by itself.
        if let (Some(error), Some((Blame::Infra, lost))) = (&mut told.error, self.unanswered()) {
            error.push_str(&format!("; {lost}"));
            told.model_lost = true;
        }
    }

    /// Why what the agent says is not its model's answer, and who is to blame, if it is not.
    pub(crate) fn unanswered(&self) -> Option<(Blame, String)> {
        match self.tap.unanswered() {
            // What was asked is the agent's affair.
            Some(error @ (ModelError::Rejected { .. } | ModelError::ContextOverflow { .. })) => {
                Some((Blame::Agent, error.to_string()))
            }
            Some(error) => Some((Blame::Infra, error.to_string())),
            None if !self.tap.has_replies() => {
                Some((Blame::Agent, "it never called its model".to_owned()))
            }
            None => None,
        }
    }

    /// What was asked that the script has no answer to.
    pub(crate) fn trouble(&self) -> Option<String> {
        let (_, trouble) = self.script.as_ref()?;
        trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn note(served: &ServedRequest, trouble: &ScriptGap) {
    if let (ServedReply::Nothing(why), false) = (&served.said, served.is_side_call) {
        let mut noted = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get_or_insert_with(|| why.clone());
    }
}

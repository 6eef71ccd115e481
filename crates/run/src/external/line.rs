//! The connection of an external agent to its model through the model tap, for one assignment.
//!
//! Its main type is [`ModelLine`]. The record contains the agent's requests and their usage; the
//! agent's key is valid only at the tap.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::suite::Environment;
use proctor_record::event::Blame;

use super::{AgentReport, ExternalAgent, ModelAccess, ModelUrl};
use proctor_models::LoopLimits;
use proctor_models::serve::{ModelServer, ServedReply, ServedRequest};
pub use proctor_models::tap::{ModelTap, TapEnd, TapOptions, TapProvider};
use proctor_models::{Meter, ModelError, ModelTimeouts, Replay, RetryWait, Settings, WireFormat};
use proctor_wire::recorder::Recorder;

/// The model name under which a script is served.
const SCRIPTED: &str = "scripted-1";

/// A connection that is open until it is dropped.
pub(crate) struct ModelLine {
    tap: ModelTap,
    format: WireFormat,
    /// The script that stands in for the model, if any.
    script: Option<(ModelServer, ScriptGap)>,
}

pub(crate) struct LineOptions<'a> {
    /// The user's environment, which has the real key.
    pub(crate) environment: &'a Environment,
    pub(crate) limits: LoopLimits,
    pub(crate) meter: Arc<Meter>,
    pub(crate) recorder: Recorder,
    /// The recorded replies to use instead of asking.
    pub(crate) replay: Option<Replay>,
    /// The time spent waiting for the provider.
    pub(crate) waiting: RetryWait,
}

/// Why the connection can't be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// The agent does not support it, or its model can't be asked.
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// The first request that a script has no answer to.
type ScriptGap = Arc<Mutex<Option<String>>>;

impl ModelLine {
    /// Opens a connection; `None` if the agent reaches its model by itself.
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

    /// How the agent reaches its model through it.
    pub(crate) fn access(&self, external: &ExternalAgent) -> ModelAccess {
        let endpoint = self.endpoint();
        let mut access = external.named_model();
        if external.scripted().is_some() {
            access.model = (endpoint.format != WireFormat::Messages).then(|| SCRIPTED.to_owned());
        }
        access.endpoint = Some(endpoint);
        access
    }

    /// The URL and key for the agent.
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

    /// Waits until the tap requires the agent to end.
    pub(crate) async fn ended(&self) -> TapEnd {
        self.tap.ended().await
    }

    /// Adds the provider's error to the agent's report.
    pub(crate) fn explain(&self, report: &mut AgentReport) {
        // The agent reports its own invalid requests.
        if let (Some(error), Some((Blame::Infra, lost))) = (&mut report.error, self.unanswered()) {
            error.push_str(&format!("; {lost}"));
            report.model_lost = true;
        }
    }

    /// Why the agent's answer is not from its model, and the blame, if so.
    pub(crate) fn unanswered(&self) -> Option<(Blame, String)> {
        match self.tap.unanswered() {
            // The agent is responsible for its requests.
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

    /// The first request that the script has no answer to.
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

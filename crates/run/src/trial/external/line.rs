//! An external agent's line to its model, for one trial: through the model tap.
//!
//! Its main type is [`Line`]. What the agent asks is in the record, and so is what it took; its key
//! opens the tap and nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::event::{Blame, TrialEnded};

use super::super::Trial;
use super::super::ending::{cancelled, errored, timed_out};
use crate::agent::LoopLimits;
use crate::external::{Endpoint, External, Told};
use crate::model::serve::{ModelServer, Said, Served};
use crate::model::tap::{ModelTap, Provider, TapEnd, TapOptions};
use crate::model::{Format, ModelError, Settings, Timeouts};

/// A line that is open until this is dropped.
pub(super) struct Line {
    tap: ModelTap,
    format: Format,
    /// The script at its other end, if it is one.
    script: Option<(ModelServer, Trouble)>,
}

/// The first thing that was asked and a script has no answer to.
type Trouble = Arc<Mutex<Option<String>>>;

impl Line {
    /// Opens a line; `None` if the agent has a way of its own to its model.
    pub(super) async fn open(
        trial: &Trial,
        external: &External,
    ) -> Result<Option<Self>, TrialEnded> {
        let is_replayed = trial.replay.is_some();
        if !external.is_tapped() && !is_replayed {
            return Ok(None);
        }
        let suite = |reason: String| errored(Blame::Suite, reason);
        let Some(format) = external.format() else {
            let name = &external.agent().name;
            let reason = format!("the agent `{name}` can't be told where its model is");
            return Err(suite(reason));
        };
        let infra = |error: std::io::Error| errored(Blame::Infra, error.to_string());
        let mut script = None;
        let provider = match external.scripted().and_then(|model| model.script.as_ref()) {
            _ if is_replayed => None,
            Some(rules) => {
                let trouble = Trouble::default();
                let noted = trouble.clone();
                let watch = move |served: &Served| note(served, &noted);
                let server = ModelServer::watched(rules.as_ref().clone(), 0, watch).await;
                let server = server.map_err(infra)?;
                let provider = Provider::own(server.address(), format);
                script = Some((server, trouble));
                Some(provider)
            }
            None => {
                let settings = Settings::of(&trial.context.environment);
                let provider = external.provider(&settings);
                Some(provider.map_err(|error| suite(error.to_string()))?)
            }
        };
        let limits = &trial.limits;
        let tap = ModelTap::start(TapOptions {
            provider,
            name: external.model_name(),
            limits: LoopLimits {
                turns: limits.max_turns,
                tokens: limits.max_tokens,
                cost_usd: limits.max_cost_usd,
            },
            meter: trial.context.meter.clone(),
            timeouts: Timeouts::default(),
            waiting: trial.waiting.clone(),
            recorder: trial.recorder.clone(),
            replay: trial.replay.clone(),
        })
        .await
        .map_err(infra)?;
        Ok(Some(Self {
            tap,
            format,
            script,
        }))
    }

    /// Where the agent finds it, and with which key.
    pub(super) fn endpoint(&self) -> Endpoint {
        let base = self.tap.base();
        Endpoint {
            base: match self.format {
                Format::Chat | Format::Responses => format!("{base}/v1"),
                Format::Messages | Format::Gemini => base,
            },
            key: self.tap.key().to_owned(),
            format: self.format,
        }
    }

    /// Waits until the line is a reason to end the trial, and says how it ends.
    pub(super) async fn ended(&self) -> TrialEnded {
        match self.tap.ended().await {
            TapEnd::Limit(why) => timed_out(why),
            TapEnd::Budget(why) => cancelled(why),
            TapEnd::Unpriced(why) => errored(Blame::Suite, why),
            TapEnd::Dead(why) => errored(Blame::Infra, why),
        }
    }

    /// Why what the agent says is not its model's answer, and who is to blame, if it is not.
    pub(super) fn unanswered(&self) -> Option<(Blame, String)> {
        match self.tap.unanswered() {
            // What was asked is the agent's affair.
            Some(error @ (ModelError::Rejected { .. } | ModelError::ContextOverflow { .. })) => {
                Some((Blame::Agent, error.to_string()))
            }
            Some(error) => Some((Blame::Infra, error.to_string())),
            None if !self.tap.has_replies() => {
                Some((Blame::Agent, "it never asked its model".to_owned()))
            }
            None => None,
        }
    }

    /// Adds what the provider said to what the agent makes of it.
    pub(super) fn explain(&self, told: &mut Told) {
        if let (Some(error), Some(lost)) = (&mut told.error, self.tap.lost()) {
            error.push_str(&format!("; {lost}"));
            told.model_lost = true;
        }
    }

    /// What was asked that the script has no answer to.
    pub(super) fn trouble(&self) -> Option<String> {
        let (_, trouble) = self.script.as_ref()?;
        trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn note(served: &Served, trouble: &Trouble) {
    if let (Said::Nothing(why), false) = (&served.said, served.is_side_call) {
        let mut noted = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get_or_insert_with(|| why.clone());
    }
}

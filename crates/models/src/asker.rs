//! What every question to a model goes through: the budget, the record, and patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use data_encoding::BASE64;
use proctor_core::event::{Body, EventKind, ModelFailed, ModelReplied, Purpose};
use proctor_core::model::{ModelRequest, Reply};

use super::replay::{self, Replay};
use super::{Meter, Model, ModelError};
use proctor_core::asks::text;
use proctor_wire::recorder::Recorder;
use proctor_wire::worker;

/// A model, as one trial asks it.
#[derive(Clone)]
pub struct ModelClient {
    /// The model.
    pub model: Arc<Model>,
    /// For whom it is asked.
    pub purpose: Purpose,
    /// What the run has spent, and may spend.
    pub meter: Arc<Meter>,
    /// The trial's record.
    pub recorder: Recorder,
    /// The time that the trial spends waiting for its turn.
    pub waiting: RetryWait,
    /// What is heard again instead of asking.
    pub replay: Option<Replay>,
}

/// A reply, and what it cost.
#[derive(Debug, Clone)]
pub struct PricedReply {
    /// The reply.
    pub reply: Reply,
    /// In US dollars, if the price is known.
    pub cost_usd: Option<f64>,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    /// The run's budget is spent.
    #[error("{0}")]
    Budget(String),
    /// The model gave none, however often it was asked.
    #[error("{error}{}", if *.attempts > 1 { format!(" (asked {attempts} times)") } else { String::new() })]
    Model {
        /// The last answer.
        error: ModelError,
        /// How often it was asked.
        attempts: u32,
    },
}

/// How long a trial has waited for rate limits and outages: no working time.
#[derive(Debug, Clone, Default)]
pub struct RetryWait(Arc<AtomicU64>);

impl RetryWait {
    /// Says that a wait begins, before it does: whoever watches the clock must know.
    pub fn add(&self, wait: Duration) {
        self.0.fetch_add(micros(wait), Ordering::Relaxed);
    }

    /// How long in all.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

impl ModelClient {
    /// Asks, again where that helps.
    pub async fn ask(&self, request: &ModelRequest) -> Result<PricedReply, AskError> {
        self.meter.check()?;
        let name = self.model.name();
        let (ask, digest) = worker::on_body(request.text_bytes(), || {
            let digest = proctor_core::replay::digest(request);
            let next = self
                .recorder
                .record_ask(|asks| asks.next(self.purpose, name, request, &digest));
            (next, digest)
        });
        let mut reply = match &self.replay {
            Some(replay) => self.hear(replay, ask, request, &digest)?,
            None => self.wait_for(ask, request).await?,
        };
        reply.usage = self.recorder.believed_usage(name, reply.usage);
        let cost_usd = self.meter.charge(self.purpose, name, &reply.usage);
        let size = reply.raw.as_ref().map_or(0, Vec::len);
        worker::on_body(size, || {
            self.recorder.record(EventKind::ModelReplied(ModelReplied {
                ask,
                turn: Body::Text(text(&reply.turn)),
                raw: reply.raw.as_deref().map(body),
                stop: reply.stop.clone(),
                usage: reply.usage,
                cost_usd,
            }));
        });
        Ok(PricedReply { reply, cost_usd })
    }

    /// What was replied in an earlier run.
    fn hear(
        &self,
        replay: &Replay,
        ask: u64,
        request: &ModelRequest,
        digest: &str,
    ) -> Result<Reply, AskError> {
        let heard = worker::on_body(request.text_bytes(), || {
            replay.next(ask, self.purpose, request, digest, &self.recorder)
        });
        heard.map(replay::reply).map_err(|error| {
            self.recorder.record(EventKind::ModelFailed(ModelFailed {
                ask,
                attempt: 1,
                reason: error.to_string(),
                again_in: None,
            }));
            AskError::Model { error, attempts: 1 }
        })
    }

    /// The model's reply, however often it has to be asked.
    async fn wait_for(&self, ask: u64, request: &ModelRequest) -> Result<Reply, AskError> {
        let mut attempt = 1;
        loop {
            let error = match self.model.ask_for(request, &self.recorder).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let reason = error.to_string();
            let next = self.meter.patience().after(error, attempt);
            self.recorder.record(EventKind::ModelFailed(ModelFailed {
                ask,
                attempt,
                reason: match &next {
                    Ok(_) => reason,
                    Err(error) => error.to_string(),
                },
                again_in: next.as_ref().ok().map(|wait| micros(*wait)),
            }));
            let wait = next.map_err(|error| AskError::Model {
                error,
                attempts: attempt,
            })?;
            self.waiting.add(wait);
            tokio::time::sleep(wait).await;
            // Others may have spent it in the meantime.
            self.meter.check()?;
            attempt += 1;
        }
    }
}

pub(super) fn body(bytes: &[u8]) -> Body {
    match str::from_utf8(bytes) {
        Ok(text) => Body::Text(text.to_owned()),
        Err(_) => Body::Base64(BASE64.encode(bytes)),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

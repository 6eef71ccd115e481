//! Sends all requests to models, within the budget and the retry policy, and records them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use data_encoding::BASE64;
use proctor_record::event::{Body, EventKind, ModelFailed, ModelReplied, Purpose};
use proctor_record::model::{ModelRequest, Reply};

use super::pace::PacePermit;
use super::replay::{self, Replay};
use super::{Meter, Model, ModelError};
use proctor_core::asks::{RequestDigest, text};
use proctor_wire::recorder::Recorder;
use proctor_wire::worker;
use tokio::time::Instant;

/// In which steps a wait of unknown length is added to the trial's clock.
const WAIT_STEP: Duration = Duration::from_secs(1);

/// A model for one trial.
#[derive(Clone)]
pub struct ModelClient {
    pub model: Arc<Model>,
    pub purpose: Purpose,
    /// The run's spending and budget.
    pub meter: Arc<Meter>,
    pub recorder: Recorder,
    /// The time that the trial spends waiting for rate limits and outages.
    pub waiting: RetryWait,
    /// The recorded replies to use instead of requests.
    pub replay: Option<Replay>,
}

#[derive(Debug, Clone)]
pub struct PricedReply {
    pub reply: Reply,
    /// The cost in US dollars, if the price is known.
    pub cost_usd: Option<f64>,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    /// The run's budget is spent.
    #[error("{0}")]
    Budget(String),
    /// The last attempt failed, or a retry would not help.
    #[error("{error}{}", if *.attempts > 1 { format!(" ({attempts} attempts)") } else { String::new() })]
    Model {
        error: ModelError,
        /// The number of attempts.
        attempts: u32,
    },
}

/// How long a trial has waited for rate limits and outages, which does not count as working time.
#[derive(Debug, Clone, Default)]
pub struct RetryWait(Arc<AtomicU64>);

impl RetryWait {
    /// Adds a wait before it begins, so that the trial's clock already includes it.
    pub fn add(&self, wait: Duration) {
        self.0.fetch_add(micros(wait), Ordering::Relaxed);
    }

    /// Removes the part of an added wait that was not needed.
    fn give_back(&self, rest: Duration) {
        self.0.fetch_sub(micros(rest), Ordering::Relaxed);
    }

    /// The total wait so far.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

impl ModelClient {
    /// Sends a request, with retries.
    pub async fn ask(&self, request: &ModelRequest) -> Result<PricedReply, AskError> {
        self.meter.check()?;
        let name = self.model.name();
        let (ask, digest) = worker::on_body(request.text_bytes(), || {
            let folder = self.recorder.trial_dir();
            self.recorder.record_ask(|asks| {
                asks.next(self.purpose, name, request, RequestDigest::Whole { folder })
            })
        });
        let mut reply = match &self.replay {
            Some(replay) => self.replayed(replay, ask, request, &digest)?,
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

    /// Returns a reply of the replayed run.
    fn replayed(
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

    /// Sends a request until a reply comes or the last attempt fails.
    async fn wait_for(&self, ask: u64, request: &ModelRequest) -> Result<Reply, AskError> {
        let mut attempt = 1;
        loop {
            let permit = self.permit().await?;
            let error = match self.model.ask_for(request, &self.recorder).await {
                Ok(reply) => {
                    if let Some(permit) = permit {
                        permit.replied();
                    }
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let patience = self.meter.patience();
            if let Some(permit) = permit {
                permit.failed(&error, patience.longest_asked);
            }
            let reason = error.to_string();
            let next = patience.after(error, attempt);
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
            // Other trials may have spent the budget in the meantime.
            self.meter.check()?;
            attempt += 1;
        }
    }

    /// Waits until the provider may get one more request. The wait does not count as working time.
    async fn permit(&self) -> Result<Option<PacePermit>, AskError> {
        let Some(pace) = self.meter.pace(&self.model) else {
            return Ok(None);
        };
        if let Some(permit) = pace.try_enter() {
            return Ok(Some(permit));
        }
        let mut entering = pin!(pace.enter());
        loop {
            let begun = Instant::now();
            self.waiting.add(WAIT_STEP);
            let entered = tokio::time::timeout(WAIT_STEP, &mut entering).await;
            self.waiting
                .give_back(WAIT_STEP.saturating_sub(begun.elapsed()));
            if let Ok(permit) = entered {
                self.meter.check()?;
                return Ok(Some(permit));
            }
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

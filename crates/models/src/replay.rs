//! Replays the model replies of an earlier run in one trial.
//!
//! The main type is [`Replay`].

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::replay::{Cassette, Drift, RecordedReply, ReplayGap, Surroundings, Tape};
use proctor_record::event::{EventKind, Purpose};
use proctor_record::model::{ModelRequest, Reply};
use proctor_record::record::RecordError;

use super::ModelError;
use proctor_wire::recorder::Recorder;

/// The recorded replies that a trial uses instead of requests. Clones share them.
#[derive(Debug, Clone)]
pub struct Replay {
    /// `None` if the trial was not recorded.
    tape: Arc<Mutex<Option<Tape>>>,
    /// Whether a changed request is an error.
    strict: bool,
    /// The rest of the trial's record.
    recorded: Option<RecordedTrial>,
}

/// A trial of the replayed run.
#[derive(Debug, Clone)]
struct RecordedTrial {
    cassette: Arc<Cassette>,
    case: String,
    agent: String,
    repeat: u32,
}

impl Replay {
    /// Replays a tape. Without one, every request fails.
    pub fn new(tape: Option<Tape>, strict: bool) -> Self {
        Self {
            tape: Arc::new(Mutex::new(tape)),
            strict,
            recorded: None,
        }
    }

    /// Replays a trial of a run.
    pub fn of(
        cassette: &Arc<Cassette>,
        (case, agent, repeat): (&str, &str, u32),
        strict: bool,
    ) -> Result<Self, RecordError> {
        let mut replay = Self::new(cassette.tape(case, agent, repeat)?, strict);
        replay.recorded = Some(RecordedTrial {
            cassette: cassette.clone(),
            case: case.to_owned(),
            agent: agent.to_owned(),
            repeat,
        });
        Ok(replay)
    }

    /// Whether a changed request is an error.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Records how the external agent's environment (prompt, tools, results) differs from the
    /// recorded one.
    pub fn drift(&self, recorder: &Recorder) -> Result<Drift, RecordError> {
        let (Some(of), Some((events, blobs))) = (&self.recorded, recorder.written()?) else {
            return Ok(Drift::default());
        };
        let then = of.cassette.surroundings(&of.case, &of.agent, of.repeat)?;
        let Some(then) = then else {
            return Ok(Drift::default());
        };
        let now = Surroundings::of(events, &blobs, recorder.trial_dir())?;
        let drift = then.drift(&now);
        // The requests after a result contain it; the last request always does.
        let differing = match (drift.of_task.is_empty(), drift.of_results.is_empty()) {
            (false, _) => &now.asks[..],
            (true, false) => &now.asks[now.asks.len().saturating_sub(1)..],
            (true, true) => &[],
        };
        for ask in differing {
            recorder.record(EventKind::Replayed {
                ask: *ask,
                drifted: true,
            });
        }
        Ok(drift)
    }

    /// The recorded reply to a request that is already recorded as `ask`.
    pub(crate) fn next(
        &self,
        ask: u64,
        purpose: Purpose,
        request: &ModelRequest,
        digest: &str,
        recorder: &Recorder,
    ) -> Result<RecordedReply, ModelError> {
        let found = match self
            .tape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
        {
            Some(tape) => tape.next(purpose, request, digest, recorder.trial_dir()),
            None => Err(ReplayGap::Trial),
        };
        let (take, drifted) = found.map_err(|missing| ModelError::Replay {
            detail: missing.to_string(),
        })?;
        recorder.record(EventKind::Replayed { ask, drifted });
        if drifted && self.strict {
            return Err(ModelError::Replay {
                detail: "the request differs from the recorded one".to_owned(),
            });
        }
        Ok(take)
    }
}

/// A recorded reply as a new one.
pub(crate) fn reply(take: RecordedReply) -> Reply {
    Reply {
        turn: take.turn,
        stop: take.stop,
        usage: take.usage,
        raw: take.raw,
    }
}

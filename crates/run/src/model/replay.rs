//! Replies of an earlier run, as one trial hears them again.
//!
//! Its main type is [`Replay`].

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::event::{Purpose, What};
use proctor_core::model::{Reply, Request};
use proctor_core::replay::{Missing, Take, Tape};

use super::ModelError;
use crate::recorder::Recorder;

/// The replies that a trial hears instead of asking models. Clones share it.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Nothing, if the trial was never recorded.
    tape: Arc<Mutex<Option<Tape>>>,
    /// Whether a question that has changed is an error.
    strict: bool,
}

impl Replay {
    /// Hears a tape; without one, every question is missing.
    pub fn new(tape: Option<Tape>, strict: bool) -> Self {
        Self {
            tape: Arc::new(Mutex::new(tape)),
            strict,
        }
    }

    /// What was replied to a question, which has its number in the record already.
    pub(crate) fn next(
        &self,
        ask: u64,
        purpose: Purpose,
        request: &Request,
        digest: &str,
        recorder: &Recorder,
    ) -> Result<Take, ModelError> {
        let found = match self
            .tape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
        {
            Some(tape) => tape.next(purpose, request, digest),
            None => Err(Missing::Trial),
        };
        let (take, drifted) = found.map_err(|missing| ModelError::Replay {
            detail: missing.to_string(),
        })?;
        recorder.record(What::Replayed { ask, drifted });
        if drifted && self.strict {
            return Err(ModelError::Replay {
                detail: "the question is not the one that was recorded".to_owned(),
            });
        }
        Ok(take)
    }
}

/// A reply that was recorded, as if it came now.
pub(crate) fn reply(take: Take) -> Reply {
    Reply {
        turn: take.turn,
        stop: take.stop,
        usage: take.usage,
        raw: take.raw,
    }
}

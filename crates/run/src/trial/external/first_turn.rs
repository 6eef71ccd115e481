//! Which calls of an external agent belong to the first turn of its model.
//!
//! Its main type is [`FirstTurn`]. Only the model tap shows turns. Without it, the first call is the turn.

use std::collections::HashSet;

use proctor_record::event::{Event, EventKind, Purpose};
use proctor_record::json;
use proctor_record::model::Turn;
use proctor_record::record::{Blobs, RecordError};

/// The calls of the first turn, as far as the record shows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FirstTurn {
    /// How many of the withheld calls belong to it.
    pub(super) calls: usize,
    /// Whether no further call of it will come.
    pub(super) is_over: bool,
}

impl FirstTurn {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "only requests, replies and calls make a turn"
    )]
    pub(super) fn of(
        events: impl Iterator<Item = Result<Event, RecordError>>,
        blobs: &Blobs,
    ) -> Result<Self, RecordError> {
        let mut asks = HashSet::new();
        let (mut calls, mut wanted) = (0, None);
        for event in events {
            match event?.event {
                EventKind::ModelAsked(asked) if asked.purpose == Purpose::Agent => {
                    // The next turn: the rest were calls of the agent's own tools.
                    if calls > 0 && wanted.is_some() {
                        return Ok(Self {
                            calls,
                            is_over: true,
                        });
                    }
                    wanted = None;
                    asks.insert(asked.ask);
                }
                EventKind::ModelReplied(replied)
                    if wanted.is_none() && asks.contains(&replied.ask) =>
                {
                    let turn = blobs.body_bytes(&replied.turn)?;
                    let turn = turn.and_then(|turn| json::from_slice::<Turn>(&turn).ok());
                    wanted = turn.map(|turn| turn.calls.len()).filter(|count| *count > 0);
                }
                EventKind::CallWithheld(_) => calls += 1,
                _ => {}
            }
        }
        Ok(match wanted {
            Some(wanted) => Self {
                calls: calls.min(wanted),
                is_over: calls >= wanted,
            },
            None => Self {
                calls: calls.min(1),
                is_over: calls > 0 && asks.is_empty(),
            },
        })
    }
}

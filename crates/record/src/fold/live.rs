//! Folds a trial while it is written.
//!
//! The main type is [`LiveFold`]. Checks read the record before the trial ends, and the index needs it afterwards: each
//! event is folded once for both, and parsed only if it is not in memory any more.

use super::{Fold, FoldOptions, FoldedTrial};
use crate::record::{Blobs, EventsSince, Position, RecordError};

/// A fold of the events so far, which goes on where it stopped.
#[derive(Debug)]
pub struct LiveFold {
    fold: Fold,
    position: Position,
}

impl LiveFold {
    /// A fold without any events.
    pub fn new(options: FoldOptions) -> Self {
        Self {
            fold: Fold::new(options),
            position: Position::default(),
        }
    }

    /// The position after the last event that was folded.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Folds the events from [`LiveFold::position`] on. After an error, the fold is of no use.
    pub fn follow(&mut self, mut events: EventsSince, blobs: &Blobs) -> Result<(), RecordError> {
        for event in events.by_ref() {
            self.fold.push(&event?, blobs)?;
        }
        self.position = events.position();
        Ok(())
    }

    /// The trial so far.
    pub fn folded(&self) -> FoldedTrial {
        self.fold.clone().finish()
    }

    /// The trial at its end.
    pub fn finish(self) -> FoldedTrial {
        self.fold.finish()
    }
}

//! What was appended to a trial, for those who read it while others append.
//!
//! The main types are [`WrittenEvents`] and [`EventsSince`]. What they give is what the lines of the file hold: the
//! events are redacted, and their large bodies stored.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec;

use crate::event::Event;

use super::RecordError;
use super::blobs::Blobs;
use super::events::{EventReader, Position};
use super::state::RecordState;

/// The latest events of a short file, as its lines hold them: whoever follows the file does not parse them again.
#[derive(Debug, Default)]
pub(super) struct LatestEvents {
    /// The position before the first event.
    from: Position,
    /// The position after the last event.
    to: Position,
    events: Vec<Event>,
}

impl LatestEvents {
    /// Adds an event whose line has this length.
    pub(super) fn push(&mut self, event: Event, line: u64) {
        self.to = Position {
            bytes: self.to.bytes + line,
            events: event.seq,
        };
        self.events.push(event);
    }

    /// Takes the events if they follow on this position.
    pub(super) fn take(&mut self, position: Position) -> Option<Self> {
        (self.from == position).then(|| {
            let rest = Self {
                from: self.to,
                to: self.to,
                events: Vec::new(),
            };
            std::mem::replace(self, rest)
        })
    }
}

/// The events of a trial so far, for reading while others append.
#[derive(Debug)]
pub struct WrittenEvents {
    pub(super) shared: Arc<RecordState>,
    pub(super) path: PathBuf,
    /// All lines, if they are few.
    pub(super) lines: Option<Vec<u8>>,
}

impl WrittenEvents {
    /// Reads them: from memory if they are few, otherwise from the file once they are in it.
    pub fn open(self) -> Result<EventReader, RecordError> {
        self.open_at(Position::default())
    }

    fn open_at(self, position: Position) -> Result<EventReader, RecordError> {
        if let Some(lines) = self.lines {
            // They are the bytes of the file, unless it could not be written.
            self.shared.check()?;
            return Ok(EventReader::of_lines(&self.path, lines, position));
        }
        self.shared.queue().flush();
        EventReader::open_at(&self.path, position)
    }

    /// Where their large bodies are.
    pub fn blobs(&self) -> Blobs {
        self.shared.blobs()
    }
}

/// The events of a trial from a position on, for reading while others append.
#[derive(Debug)]
pub struct WrittenSince {
    pub(super) written: WrittenEvents,
    pub(super) position: Position,
    pub(super) latest: Option<LatestEvents>,
}

impl WrittenSince {
    /// Reads them: from memory if they are few, otherwise from the file once they are in it.
    pub fn open(self) -> Result<EventsSince, RecordError> {
        let Some(latest) = self.latest else {
            let events = self.written.open_at(self.position)?;
            return Ok(EventsSince(Source::Lines(Box::new(events))));
        };
        self.written.shared.check()?;
        Ok(EventsSince::of_latest(latest))
    }

    /// Where their large bodies are.
    pub fn blobs(&self) -> Blobs {
        self.written.blobs()
    }

    #[cfg(test)]
    pub(super) fn is_in_memory(&self) -> bool {
        self.latest.is_some()
    }
}

/// The events of a trial from a position on.
#[derive(Debug)]
pub struct EventsSince(Source);

#[derive(Debug)]
enum Source {
    Memory(vec::IntoIter<Event>, Position),
    Lines(Box<EventReader>),
}

impl EventsSince {
    pub(super) fn of_latest(latest: LatestEvents) -> Self {
        Self(Source::Memory(latest.events.into_iter(), latest.to))
    }

    pub(super) fn of_lines(path: &Path, lines: Vec<u8>, position: Position) -> Self {
        let events = EventReader::of_lines(path, lines, position);
        Self(Source::Lines(Box::new(events)))
    }

    /// The position after the last event, once it was taken.
    pub fn position(&self) -> Position {
        match &self.0 {
            Source::Memory(_, position) => *position,
            Source::Lines(events) => EventReader::position(events),
        }
    }
}

impl Iterator for EventsSince {
    type Item = Result<Event, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Memory(events, _) => events.next().map(Ok),
            Source::Lines(events) => events.next(),
        }
    }
}

//! One file of events, for writing.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::event::{Event, EventKind};

use super::events::{self, Position};
use super::queue::{EventFile, FollowUp, Queue, QueueSlot};
use super::written::LatestEvents;
use super::{EventReader, MAX_LINE, RecordError};

/// The length up to which the lines of a file are also kept in memory. Most trials are shorter.
const SHORT: usize = 32 * 1024;

/// An append-only file, a line an event. Its lines are queued in order, and written by another thread.
#[derive(Debug)]
pub(super) struct EventLog {
    file: Arc<EventFile>,
    slot: QueueSlot,
    line: Vec<u8>,
    /// The event that `line` holds.
    prepared: Option<Event>,
    next: u64,
    bytes: u64,
    /// When a sync was asked for last.
    synced: u64,
    /// Whether the caller writes through what it appends.
    pub(super) is_written_through: bool,
    /// All lines of a new file, as long as it is short: whoever reads them needs neither to wait for the thread that
    /// writes them nor to open the file.
    lines: Option<Vec<u8>>,
    /// The events of the last of these lines.
    latest: LatestEvents,
}

impl EventLog {
    /// Starts a file.
    pub fn create(path: PathBuf) -> Result<Self, RecordError> {
        let file = new_file(&path).map_err(RecordError::io("create", &path))?;
        Ok(Self {
            lines: Some(Vec::new()),
            ..Self::over(EventFile::open(path, file), 1, 0)
        })
    }

    /// Starts a file that the thread which writes the first line creates. From `at` on, the time until its first sync
    /// counts.
    pub(super) fn begin(path: PathBuf, at: u64) -> Self {
        Self {
            synced: at,
            lines: Some(Vec::new()),
            ..Self::over(EventFile::new(path), 1, 0)
        }
    }

    /// Continues a file after its last complete line.
    pub(super) fn resume(path: PathBuf, mut events: EventReader) -> Result<Self, RecordError> {
        let mut last = 0;
        for event in events.by_ref() {
            last = event?.seq;
        }
        let file = private()
            .append(true)
            .open(&path)
            .map_err(RecordError::io("open", &path))?;
        let torn = events.torn().map_or(0, |torn| torn.bytes);
        let length = file
            .metadata()
            .map(|file| file.len().saturating_sub(torn))
            .and_then(|length| file.set_len(length).map(|()| length))
            .map_err(RecordError::io("truncate", &path))?;
        Ok(Self::over(EventFile::open(path, file), last + 1, length))
    }

    fn over(file: EventFile, next: u64, bytes: u64) -> Self {
        Self {
            file: Arc::new(file),
            slot: QueueSlot::default(),
            line: Vec::new(),
            prepared: None,
            next,
            bytes,
            synced: 0,
            is_written_through: false,
            lines: None,
            latest: LatestEvents::default(),
        }
    }

    /// All lines, if the file is short.
    pub(super) fn lines(&self) -> Option<&[u8]> {
        self.lines.as_deref()
    }

    /// The same with the latest events, for a file that gets only one more line, which is prepared.
    pub(super) fn take_lines(&mut self) -> Option<(Vec<u8>, LatestEvents)> {
        let mut lines = self.lines.take()?;
        lines.extend_from_slice(&self.line);
        self.keep_latest();
        Some((lines, std::mem::take(&mut self.latest)))
    }

    /// The events after a position, if the file is short and they were not taken before.
    pub(super) fn take_latest(&mut self, position: Position) -> Option<LatestEvents> {
        self.lines.as_ref()?;
        self.latest.take(position)
    }

    fn keep_latest(&mut self) {
        if let Some(event) = self.prepared.take() {
            self.latest.push(event, self.line.len() as u64);
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(super) fn file(&self) -> &Arc<EventFile> {
        &self.file
    }

    /// How long the file is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Formats the event as a line, and returns its length. Nothing is written yet.
    pub(super) fn prepare(&mut self, at: u64, what: EventKind) -> Result<u64, RecordError> {
        self.line.clear();
        let event = Event {
            seq: self.next,
            at,
            event: what,
        };
        event
            .write(&mut self.line)
            .map_err(|error| RecordError::io("write", self.path())(error.into()))?;
        debug_assert_eq!(
            events::event(&self.line, false).as_ref(),
            Ok(&event),
            "a line holds its event: {}",
            String::from_utf8_lossy(&self.line)
        );
        self.prepared = Some(event);
        self.line.push(b'\n');
        if self.line.len() > MAX_LINE {
            return Err(RecordError::EventTooLarge {
                path: self.path().to_owned(),
                bytes: self.line.len(),
            });
        }
        Ok(self.line.len() as u64)
    }

    /// Queues the prepared line, and returns its number. Requests a sync if the last one was at
    /// least this many microseconds ago.
    pub(super) fn write(&mut self, queue: &Queue, at: u64, sync_every: u64) -> u64 {
        let next = if self.is_due(at, sync_every) {
            FollowUp::Sync
        } else {
            FollowUp::Nothing
        };
        self.write_then(queue, next)
    }

    /// Whether a sync is due. Marks it as done.
    fn is_due(&mut self, at: u64, sync_every: u64) -> bool {
        let is_due = at.saturating_sub(self.synced) >= sync_every;
        if is_due {
            self.synced = at;
        }
        is_due
    }

    /// Writes the queued lines of this file, on this thread.
    pub(super) fn write_through(&self, queue: &Queue, failed: &OnceLock<RecordError>) {
        queue.write_through(&self.file, &self.slot, failed);
    }

    /// Queues the prepared line, and what to do after it is written.
    pub(super) fn write_then(&mut self, queue: &Queue, next: FollowUp) -> u64 {
        let (file, slot) = (&self.file, &mut self.slot);
        if self.is_written_through {
            queue.push_quietly(file, slot, &self.line, next);
        } else {
            queue.push(file, slot, &self.line, next);
        }
        let is_short = |lines: &Vec<u8>| lines.len() + self.line.len() <= SHORT;
        if let Some(lines) = self.lines.as_mut().filter(|lines| is_short(lines)) {
            lines.extend_from_slice(&self.line);
            self.keep_latest();
        } else {
            (self.lines, self.prepared) = (None, None);
            self.latest = LatestEvents::default();
        }
        let seq = self.next;
        self.next += 1;
        self.bytes += self.line.len() as u64;
        seq
    }
}

/// Creates a new file for its owner only.
pub(super) fn new_file(path: &Path) -> std::io::Result<File> {
    private().write(true).create_new(true).open(path)
}

/// Files that are made with this are for their owner only.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Syncs the names in a folder to the disk.
pub fn sync_folder(path: &Path) -> Result<(), RecordError> {
    // On other systems a folder can't be opened as a file, and a rename is durable without this.
    #[cfg(unix)]
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(RecordError::io("sync", path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_starts_late_is_not_due_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = EventLog::begin(folder.path().join("late"), 5_000);
        assert!(!log.is_due(5_099, 100));
        assert!(log.is_due(5_100, 100));
        assert!(!log.is_due(5_199, 100), "another sync is under way");
        assert!(log.is_due(5_200, 100));
    }
}

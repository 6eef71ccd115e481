//! One file of events, as it grows.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::{Event, What};

use super::{EventReader, MAX_LINE, RecordError};

/// An append-only file, a line an event. Every line reaches the system before `append` returns.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Arc<File>,
    line: Vec<u8>,
    next: u64,
    bytes: u64,
    /// When a sync was done or asked for last, and whether anything was written since.
    synced: u64,
    dirty: bool,
}

impl Log {
    /// Starts a file. From `at` on, the time until its first sync counts.
    pub(super) fn create(path: PathBuf, at: u64) -> Result<Self, RecordError> {
        let file = new_file(&path).map_err(RecordError::io("create", &path))?;
        Ok(Self {
            synced: at,
            ..Self::over(path, file, 1, 0)
        })
    }

    /// Goes on with a file behind its last whole line.
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
            .map_err(RecordError::io("cut", &path))?;
        Ok(Self::over(path, file, last + 1, length))
    }

    fn over(path: PathBuf, file: File, next: u64, bytes: u64) -> Self {
        Self {
            path,
            file: Arc::new(file),
            line: Vec::new(),
            next,
            bytes,
            synced: 0,
            dirty: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How long the file is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lays the event out as a line, and says how long that is. Nothing is written yet.
    pub(super) fn prepare(&mut self, at: u64, what: What) -> Result<u64, RecordError> {
        self.line.clear();
        let event = Event {
            seq: self.next,
            at,
            event: what,
        };
        serde_json::to_writer(&mut self.line, &event)
            .map_err(|error| RecordError::io("write", &self.path)(error.into()))?;
        self.line.push(b'\n');
        if self.line.len() > MAX_LINE {
            return Err(RecordError::EventTooLarge {
                path: self.path.clone(),
                bytes: self.line.len(),
            });
        }
        Ok(self.line.len() as u64)
    }

    /// Writes the line that was prepared, and gives its number.
    pub(super) fn write(&mut self) -> Result<u64, RecordError> {
        (&*self.file)
            .write_all(&self.line)
            .map_err(RecordError::io("write", &self.path))?;
        let seq = self.next;
        self.next += 1;
        self.bytes += self.line.len() as u64;
        self.dirty = true;
        Ok(seq)
    }

    /// Whether the last sync lies so far back that it is time for another.
    pub(super) fn is_due(&self, at: u64, every: u64) -> bool {
        self.dirty && at.saturating_sub(self.synced) >= every
    }

    /// Syncs it, also if somebody else is about to.
    pub(super) fn sync(&mut self, at: u64) -> Result<(), RecordError> {
        self.file
            .sync_data()
            .map_err(RecordError::io("sync", &self.path))?;
        self.leave(at);
        Ok(())
    }

    /// Leaves the sync to somebody else, who gets this.
    pub(super) fn asked(&mut self, at: u64) -> (PathBuf, Arc<File>) {
        self.leave(at);
        (self.path.clone(), self.file.clone())
    }

    fn leave(&mut self, at: u64) {
        self.synced = at;
        self.dirty = false;
    }
}

/// A file that was not there before, for its owner only.
pub(super) fn new_file(path: &Path) -> std::io::Result<File> {
    private().write(true).create_new(true).open(path)
}

/// Files that are made with this are for their owner only.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes what happened to the names in a folder last.
pub(super) fn sync_folder(path: &Path) -> Result<(), RecordError> {
    // Elsewhere a folder can't be opened as a file, and a rename lasts without this.
    #[cfg(unix)]
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(RecordError::io("sync", path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Phase, What};

    #[test]
    fn a_file_that_starts_late_is_not_due_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path().join("late"), 5_000).unwrap();
        let phase = Phase::Setup;
        log.prepare(5_000, What::PhaseStarted { phase }).unwrap();
        log.write().unwrap();
        assert!(!log.is_due(5_099, 100));
        assert!(log.is_due(5_100, 100));
        log.sync(5_100).unwrap();
        assert!(!log.is_due(9_000, 100), "nothing was written since");
    }
}

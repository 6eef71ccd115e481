//! Reads a run, finished or not.

use std::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::event::{Body, Event, EventKind, RECORD_VERSION, RunStarted};
use crate::json;

use super::blobs::Blobs;
use super::events::{EventReader, FileDigest, Position, digest};
use super::log::private;
use super::state::{lock, make_folder};
use super::{BLOBS, ENDED, PART, RUN, RecordError, TRIALS};

/// The folder of a run, for reading.
#[derive(Debug, Clone)]
pub struct RunReader {
    folder: PathBuf,
    started: RunStarted,
    blobs: Blobs,
    /// Whether a newer Proctor wrote the run.
    newer: bool,
}

/// The record of one attempt at a trial.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialFile {
    /// The trial's name in its file name.
    pub stem: String,
    /// The number of the attempt.
    pub attempt: u32,
    pub ended: bool,
    pub path: PathBuf,
}

impl RunReader {
    /// Opens the run in a folder.
    pub fn open(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(RUN);
        let not_a_run = |reason: &str| RecordError::NotARun {
            path: folder.to_owned(),
            reason: reason.to_owned(),
        };
        if !path.is_file() {
            return Err(not_a_run("it has no `run.jsonl`"));
        }
        check_version(&path)?;
        let first = EventReader::open(&path)?.next().transpose()?;
        let Some(Event {
            event: EventKind::RunStarted(started),
            ..
        }) = first
        else {
            return Err(not_a_run(
                "its `run.jsonl` does not begin with the start of a run",
            ));
        };
        Ok(Self {
            folder: folder.to_owned(),
            newer: is_newer(&started.proctor, env!("CARGO_PKG_VERSION")),
            started,
            blobs: Blobs::of_run(folder),
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn started(&self) -> &RunStarted {
        &self.started
    }

    /// Whether a newer Proctor started the run, which may hold unknown events.
    pub fn is_newer(&self) -> bool {
        self.newer
    }

    pub fn events(&self) -> Result<EventReader, RecordError> {
        self.events_from(Position::default())
    }

    /// The run's own events after a position that an earlier reader reached.
    pub fn events_from(&self, position: Position) -> Result<EventReader, RecordError> {
        self.read(&self.folder.join(RUN), position)
    }

    /// The records of all trials, ended or not, by name and attempt.
    pub fn trials(&self) -> Result<Vec<TrialFile>, RecordError> {
        let names = self.trial_names()?;
        let mut trials: Vec<TrialFile> = names.iter().filter_map(|n| self.trial_file(n)).collect();
        trials.sort();
        Ok(trials)
    }

    /// The names of all trial files in order, which need less memory than their paths.
    pub fn trial_names(&self) -> Result<Vec<Box<str>>, RecordError> {
        let mut names = Vec::new();
        self.each_trial_name(|name| names.push(Box::from(name)))?;
        names.sort_unstable();
        Ok(names)
    }

    /// The first names of trial files after a name, at most `most` of them, in order.
    pub(crate) fn trial_names_after(
        &self,
        after: &str,
        most: usize,
    ) -> Result<Vec<Box<str>>, RecordError> {
        let mut names: Vec<Box<str>> = Vec::new();
        let mut last: Option<Box<str>> = None;
        self.each_trial_name(|name| {
            if name <= after || last.as_deref().is_some_and(|last| last < name) {
                return;
            }
            names.push(Box::from(name));
            // Not after every name, since each time takes as long as there are names.
            if names.len() > most + most / 4 {
                names.select_nth_unstable(most - 1);
                names.truncate(most);
                last = names.last().cloned();
            }
        })?;
        names.sort_unstable();
        names.truncate(most);
        Ok(names)
    }

    fn each_trial_name(&self, mut take: impl FnMut(&str)) -> Result<(), RecordError> {
        let folder = self.folder.join(TRIALS);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // The run ended before its first trial, or was merged without one.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RecordError::io("read", &folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(RecordError::io("read", &folder))?;
            entry.file_name().to_str().map(&mut take);
        }
        Ok(())
    }

    /// The record of a trial by its file name, as in an index or a summary.
    pub fn trial_file(&self, name: &str) -> Option<TrialFile> {
        TrialFile::of(self.folder.join(TRIALS).join(name))
    }

    pub fn trial(&self, trial: &TrialFile) -> Result<EventReader, RecordError> {
        self.trial_from(trial, Position::default())
    }

    /// The events of a trial after a position that an earlier reader reached.
    pub fn trial_from(
        &self,
        trial: &TrialFile,
        position: Position,
    ) -> Result<EventReader, RecordError> {
        self.read(&trial.path, position)
    }

    fn read(&self, file: &Path, position: Position) -> Result<EventReader, RecordError> {
        Ok(EventReader::open_at(file, position)?.by_newer(self.newer))
    }

    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The bytes of a body; `None` if the record does not hold them.
    pub fn body_bytes<'a>(&self, body: &'a Body) -> Result<Option<Cow<'a, [u8]>>, RecordError> {
        self.blobs.body_bytes(body)
    }

    /// The total length of all trial records, including blobs, as far as it can be read.
    pub fn bytes(&self) -> u64 {
        let entries = [TRIALS, BLOBS].map(|name| fs::read_dir(self.folder.join(name)));
        let entries = entries.into_iter().flatten().flatten().flatten();
        let lengths = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        lengths.sum()
    }

    /// Whether a process writes the run now.
    pub fn is_active(&self) -> bool {
        matches!(lock(&self.folder), Err(RecordError::Locked { .. }))
    }

    /// The length of `run.jsonl`.
    pub fn run_bytes(&self) -> Result<u64, RecordError> {
        let path = self.folder.join(RUN);
        let file = fs::metadata(&path).map_err(RecordError::io("read", &path))?;
        Ok(file.len())
    }

    /// Replaces a derived file atomically. Returns `false` if another process writes the run, or
    /// the folder is not writable.
    pub fn replace(&self, name: &str, text: &[u8]) -> bool {
        let Ok(_lock) = lock(&self.folder) else {
            return false;
        };
        let path = self.folder.join(name);
        let temporary = self.folder.join(format!("{name}.tmp"));
        private()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .and_then(|mut file| file.write_all(text))
            .and_then(|()| fs::rename(&temporary, &path))
            .is_ok()
    }
}

impl RunReader {
    /// Creates a file in a folder of the run that is not part of the record. Returns its path, the
    /// temporary path under which it is written, and the file.
    pub fn file_beside(
        &self,
        folder: &str,
        name: &str,
    ) -> Result<(PathBuf, PathBuf, fs::File), RecordError> {
        let folder = self.folder.join(folder);
        make_folder(&folder)?;
        let path = folder.join(name);
        let temporary = folder.join(format!("{name}.{}.tmp", std::process::id()));
        let file = private()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(RecordError::io("create", &temporary))?;
        Ok((path, temporary, file))
    }
}

impl TrialFile {
    fn of(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (name, ended) = match name.strip_suffix(PART) {
            Some(name) => (name, false),
            None => (name.strip_suffix(ENDED)?, true),
        };
        let (stem, attempt) = name.rsplit_once('.')?;
        Some(Self {
            stem: stem.to_owned(),
            attempt: attempt.parse().ok()?,
            ended,
            path,
        })
    }

    /// The file as it is called now: it is renamed when its trial ends.
    #[must_use]
    pub fn current(self) -> Self {
        if self.ended {
            return self;
        }
        let ended = self
            .path
            .with_file_name(format!("{}.{}{ENDED}", self.stem, self.attempt));
        if ended.exists() {
            Self {
                ended: true,
                path: ended,
                ..self
            }
        } else {
            self
        }
    }

    /// The file name under `trials/`.
    pub fn file_name(&self) -> &str {
        let name = self.path.file_name().and_then(|name| name.to_str());
        name.unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> Result<u64, RecordError> {
        let file = fs::metadata(&self.path).map_err(RecordError::io("read", &self.path))?;
        Ok(file.len())
    }

    /// The length and hash of the file, and its last event if it is valid.
    pub(crate) fn digest(&self) -> Result<(FileDigest, Option<Event>), RecordError> {
        digest(&self.path).map_err(RecordError::io("read", &self.path))
    }
}

/// Whether one version of Proctor is newer than another; `false` if a version is invalid.
fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let release = version.split(['-', '+']).next()?;
        release.split('.').map(|part| part.parse().ok()).collect()
    };
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version > than,
        _ => false,
    }
}

/// Reports a newer record version before its new events look corrupt.
fn check_version(run: &Path) -> Result<(), RecordError> {
    #[derive(Deserialize)]
    struct StoredLine {
        event: FirstLine,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct FirstLine {
        run_started: RecordVersion,
    }
    #[derive(Deserialize)]
    struct RecordVersion {
        record: u64,
    }
    let Some(line) = super::events::first_line(run)? else {
        return Ok(());
    };
    match json::from_slice::<StoredLine>(&line) {
        Ok(line) if line.event.run_started.record > u64::from(RECORD_VERSION) => {
            Err(RecordError::NewerVersion {
                path: run.to_owned(),
                found: line.event.run_started.record,
                known: RECORD_VERSION,
            })
        }
        // Reading the file reports what is wrong with any other line.
        _ => Ok(()),
    }
}

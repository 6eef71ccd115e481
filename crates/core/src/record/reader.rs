//! Reading a run, while it is written or later.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::event::{Body, Event, RECORD_VERSION, RunStarted, What};

use super::blobs::Blobs;
use super::events::EventReader;
use super::index::{self, IndexEntry};
use super::{BLOBS, ENDED, INDEX, PART, RUN, RecordError, TRIALS};

/// A run's folder, to be read.
#[derive(Debug, Clone)]
pub struct RunReader {
    folder: PathBuf,
    started: RunStarted,
    blobs: Blobs,
    /// Whether a newer Proctor wrote it.
    newer: bool,
}

/// The record of one attempt at a trial.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialFile {
    /// The trial, as its file name says it.
    pub stem: String,
    /// Which attempt at it.
    pub attempt: u32,
    /// Whether it has ended.
    pub ended: bool,
    /// Where it is.
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
            event: What::RunStarted(started),
            ..
        }) = first
        else {
            return Err(not_a_run("its `run.jsonl` does not say what was started"));
        };
        Ok(Self {
            folder: folder.to_owned(),
            newer: is_newer(&started.proctor, env!("CARGO_PKG_VERSION")),
            started,
            blobs: Blobs::of_run(folder),
        })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the run is.
    pub fn started(&self) -> &RunStarted {
        &self.started
    }

    /// Whether a newer Proctor started the run: it may hold what this one does not know.
    pub fn is_newer(&self) -> bool {
        self.newer
    }

    /// The run's own events.
    pub fn events(&self) -> Result<EventReader, RecordError> {
        self.read(&self.folder.join(RUN))
    }

    /// The records of all trials, ended or not, by name and attempt.
    pub fn trials(&self) -> Result<Vec<TrialFile>, RecordError> {
        let names = self.trial_names()?;
        let mut trials: Vec<TrialFile> = names.iter().filter_map(|n| self.trial_file(n)).collect();
        trials.sort();
        Ok(trials)
    }

    /// The names of their files, in order: of many trials, less to hold than all their paths.
    pub(crate) fn trial_names(&self) -> Result<Vec<Box<str>>, RecordError> {
        let folder = self.folder.join(TRIALS);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A run that was ended before its first trial, or merged without one.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(RecordError::io("read", &folder)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(RecordError::io("read", &folder))?;
            names.extend(entry.file_name().to_str().map(Box::from));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The record of a trial by the name of its file, as an index or a summary has it.
    pub fn trial_file(&self, name: &str) -> Option<TrialFile> {
        TrialFile::of(self.folder.join(TRIALS).join(name))
    }

    /// The events of a trial.
    pub fn trial(&self, trial: &TrialFile) -> Result<EventReader, RecordError> {
        self.read(&trial.path)
    }

    fn read(&self, file: &Path) -> Result<EventReader, RecordError> {
        Ok(EventReader::open(file)?.by_newer(self.newer))
    }

    /// The run's blobs.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The bytes of a body; `None` if the record does not hold them.
    pub fn body_bytes<'a>(&self, body: &'a Body) -> Result<Option<Cow<'a, [u8]>>, RecordError> {
        self.blobs.body_bytes(body)
    }

    /// How long the records of all trials are, blobs included, as far as that can be told.
    pub fn bytes(&self) -> u64 {
        let entries = [TRIALS, BLOBS].map(|name| fs::read_dir(self.folder.join(name)));
        let entries = entries.into_iter().flatten().flatten().flatten();
        let lengths = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        lengths.sum()
    }

    /// What the index says of the ended trials, or would say if it were up to date.
    pub fn index(&self) -> Result<Vec<IndexEntry>, RecordError> {
        let ended: Vec<TrialFile> = self
            .trials()?
            .into_iter()
            .filter(|trial| trial.ended)
            .collect();
        let mut entries = index::read(&self.folder.join(INDEX));
        entries.sort_by(|a, b| a.file.cmp(&b.file));
        let named: BTreeSet<&str> = entries.iter().map(|entry| entry.file.as_str()).collect();
        let there: BTreeSet<&str> = ended.iter().filter_map(TrialFile::file_name).collect();
        if named == there && named.len() == entries.len() {
            return Ok(entries);
        }
        let mut entries = Vec::with_capacity(ended.len());
        for trial in &ended {
            entries.extend(entry_of(trial, self.trial(trial)?)?);
        }
        entries.sort_by(|a: &IndexEntry, b| a.file.cmp(&b.file));
        Ok(entries)
    }

    /// Writes the index anew, from the trials.
    pub fn rebuild_index(&self) -> Result<Vec<IndexEntry>, RecordError> {
        let path = self.folder.join(INDEX);
        index::write(&path, &[])?;
        let entries = self.index()?;
        index::write(&path, &entries)?;
        Ok(entries)
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

    fn file_name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }
}

/// The index line of an ended trial; none if its file does not say how it ended.
fn entry_of(trial: &TrialFile, events: EventReader) -> Result<Option<IndexEntry>, RecordError> {
    let mut first = None;
    let mut last = None;
    for event in events {
        let event = event?;
        if first.is_none() {
            first = Some(event);
        } else {
            last = Some(event);
        }
    }
    let length = fs::metadata(&trial.path).map_err(RecordError::io("read", &trial.path))?;
    Ok(match (first, last) {
        (
            Some(Event {
                at: started_at,
                event: What::TrialStarted(started),
                ..
            }),
            Some(Event {
                at: ended_at,
                event: What::TrialEnded(ended),
                seq,
            }),
        ) => Some(IndexEntry {
            file: trial.file_name().unwrap_or_default().to_owned(),
            started,
            started_at,
            ended,
            ended_at,
            events: seq,
            bytes: length.len(),
        }),
        _ => None,
    })
}

/// Whether one version of Proctor comes after another. One that can't be read does not.
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

/// Says that a newer Proctor wrote the run before its new events look like broken ones.
fn check_version(run: &Path) -> Result<(), RecordError> {
    #[derive(Deserialize)]
    struct Line {
        event: First,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct First {
        run_started: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        record: u64,
    }
    let Some(line) = super::events::first_line(run)? else {
        return Ok(());
    };
    match serde_json::from_slice::<Line>(&line) {
        Ok(line) if line.event.run_started.record > u64::from(RECORD_VERSION) => {
            Err(RecordError::NewerVersion {
                path: run.to_owned(),
                found: line.event.run_started.record,
                known: RECORD_VERSION,
            })
        }
        // What is wrong with any other line, reading it will say.
        _ => Ok(()),
    }
}

//! `index.jsonl`: a line for each ended trial.
//!
//! It holds nothing that the trials' own files do not. Whoever reads it checks that it names
//! exactly the files that are there, and else makes it again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::event::{TrialEnded, TrialStarted};

use super::RecordError;
use super::log::private;

/// What the index says of a trial that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexEntry {
    /// Its file under `trials/`.
    pub file: String,
    /// Which trial it is.
    pub started: TrialStarted,
    /// When it started, in microseconds since the run did.
    pub started_at: u64,
    /// How it ended.
    pub ended: TrialEnded,
    /// When.
    pub ended_at: u64,
    /// How many events its file holds.
    pub events: u64,
    /// How long its file is.
    pub bytes: u64,
}

/// The index, while a run is written. Trials end at any time, in any order.
#[derive(Debug)]
pub(super) struct IndexLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl IndexLog {
    pub(super) fn open(path: PathBuf) -> Result<Self, RecordError> {
        let file = private()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(RecordError::io("open", &path))?;
        Ok(Self {
            path,
            file: Mutex::new(file),
        })
    }

    pub(super) fn append(&self, entry: &IndexEntry) -> Result<(), RecordError> {
        let line = line(entry, &self.path)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line)
            .map_err(RecordError::io("write", &self.path))
    }
}

/// The entries of an index, as far as it can be read: it may be torn, or not be there.
pub(super) fn read(path: &Path) -> Vec<IndexEntry> {
    let Ok(file) = File::open(path) else {
        return Vec::new();
    };
    BufReader::new(file)
        .lines()
        .map_while(Result::ok)
        .map_while(|line| serde_json::from_str(&line).ok())
        .collect()
}

/// Writes an index anew, in one step.
pub(super) fn write(path: &Path, entries: &[IndexEntry]) -> Result<(), RecordError> {
    let temporary = path.with_extension("jsonl.tmp");
    let mut text = Vec::new();
    for entry in entries {
        text.extend(line(entry, path)?);
    }
    private()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(&text))
        .map_err(RecordError::io("write", &temporary))?;
    fs::rename(&temporary, path).map_err(RecordError::io("rename", &temporary))
}

fn line(entry: &IndexEntry, path: &Path) -> Result<Vec<u8>, RecordError> {
    let mut line =
        serde_json::to_vec(entry).map_err(|error| RecordError::io("write", path)(error.into()))?;
    line.push(b'\n');
    Ok(line)
}

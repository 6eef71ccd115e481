//! `index.jsonl`, while a run is written: a line when a trial begins, and one when it has ended.
//!
//! Its main type is [`IndexLog`]. What an ended trial came to is a fold of its events, which this module
//! knows nothing of: [`crate::index`] lays those lines out, and reads all of them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::event::TrialStarted;

use super::RecordError;
use super::log::private;

/// A trial that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialBegan {
    /// Its file under `trials/`, once it has ended.
    pub file: String,
    pub trial: TrialStarted,
    /// When, in microseconds since the run started.
    pub at: u64,
}

/// The index, while a run is written. Trials end at any time, in any order.
#[derive(Debug)]
pub(super) struct IndexLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl IndexLog {
    pub(super) fn open(path: PathBuf) -> Result<Self, RecordError> {
        let opened = private().read(true).append(true).create(true).open(&path);
        let file = opened
            .and_then(|mut file| {
                // Behind a torn line, so that it spoils no other.
                if !ends_in_a_line(&mut file)? {
                    file.write_all(b"\n")?;
                }
                Ok(file)
            })
            .map_err(RecordError::io("open", &path))?;
        Ok(Self {
            path,
            file: Mutex::new(file),
        })
    }

    pub(super) fn began(&self, began: &TrialBegan) -> Result<(), RecordError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        enum Line<'a> {
            Began(&'a TrialBegan),
        }
        self.append(&Line::Began(began))
    }

    pub(super) fn append(&self, line: &impl Serialize) -> Result<(), RecordError> {
        let write = RecordError::io("write", &self.path);
        let mut line = match serde_json::to_vec(line) {
            Ok(line) => line,
            Err(error) => return Err(write(error.into())),
        };
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).map_err(write)
    }
}

fn ends_in_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

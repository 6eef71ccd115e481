//! `index.jsonl` while a run is written: a line when a trial begins, and one when it ends.
//!
//! The main type is [`IndexLog`]. The line of an ended trial is a fold of its events, which this
//! module doesn't know: [`crate::index`] formats those lines, and reads all lines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::event::TrialStarted;

use super::RecordError;
use super::log::private;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialBegan {
    /// The name under `trials/` that the file gets when the trial ends.
    pub file: String,
    pub trial: TrialStarted,
    /// The time in microseconds since the run started.
    pub at: u64,
}

/// The index while a run is written. Trials may end at any time and in any order.
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
                // A newline after a torn line, so that it does not damage the next one.
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

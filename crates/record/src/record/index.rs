//! `index.jsonl` while a run is written: a line when a trial begins, and one when it ends.
//!
//! The main type is [`IndexLog`]. The line of an ended trial is a fold of its events, which this
//! module doesn't know: [`crate::index`] formats those lines, and reads all lines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::event::TrialStarted;

use super::RecordError;
use super::log::private;
use super::queue::{EventFile, FollowUp, Queue, QueueSlot};

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
    /// The same file, for lines that are queued. Each line is appended at once, so the two don't mix.
    queued: Arc<EventFile>,
    slot: Mutex<QueueSlot>,
}

impl IndexLog {
    pub(super) fn open(path: PathBuf) -> Result<Self, RecordError> {
        let opened = private().read(true).append(true).create(true).open(&path);
        let (file, queued) = opened
            .and_then(|mut file| {
                // A newline after a torn line, so that it does not damage the next one.
                if !ends_in_a_line(&mut file)? {
                    file.write_all(b"\n")?;
                }
                let queued = file.try_clone()?;
                Ok((file, queued))
            })
            .map_err(RecordError::io("open", &path))?;
        Ok(Self {
            file: Mutex::new(file),
            queued: Arc::new(EventFile::open(path.clone(), queued)),
            slot: Mutex::default(),
            path,
        })
    }

    /// Queues the line of a trial that begins. It is written before later lines of the queue.
    pub(super) fn began(&self, queue: &Queue, began: &TrialBegan) -> Result<(), RecordError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        enum Line<'a> {
            Began(&'a TrialBegan),
        }
        let line = self.line(&Line::Began(began))?;
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(&self.queued, &mut slot, &line, FollowUp::Nothing);
        Ok(())
    }

    pub fn append(&self, line: &impl Serialize) -> Result<(), RecordError> {
        let line = self.line(line)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(&line);
        written.map_err(RecordError::io("write", &self.path))
    }

    fn line(&self, line: &impl Serialize) -> Result<Vec<u8>, RecordError> {
        let written = serde_json::to_vec(line);
        let mut line =
            written.map_err(|error| RecordError::io("write", &self.path)(error.into()))?;
        line.push(b'\n');
        Ok(line)
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

//! Recognizes folders of runs that were killed before they recorded anything useful.
//!
//! The main function is [`is_unused`]. Such a folder can be reused without losing data.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

use crate::event::{Event, EventKind};
use crate::json;

use super::lines::{RecordLine, RecordLines};
use super::{MAX_LINE, RUN, RecordError, TRIALS};

/// The beginning of a run's first line.
const START: &[u8] = br#"{"seq":1,"at":0,"event":{"runStarted":{"#;

/// Whether a folder holds a run without a plan and without trials: its file has at most the start
/// of the run. Files of other programs don't count as a run.
pub fn is_unused(folder: &Path) -> Result<bool, RecordError> {
    let path = folder.join(RUN);
    if !path.is_file() || has_trials(&folder.join(TRIALS)) {
        return Ok(false);
    }
    let read = RecordError::io("read", &path);
    says_no_more_than_its_start(&path).map_err(read)
}

fn has_trials(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn says_no_more_than_its_start(path: &Path) -> std::io::Result<bool> {
    let mut lines = RecordLines::new(BufReader::new(File::open(path)?), MAX_LINE);
    match lines.next()? {
        RecordLine::End => return Ok(true),
        RecordLine::Torn(_) => return is_torn_start(path),
        RecordLine::TooLong => return Ok(false),
        RecordLine::Line(line) => {
            let first = json::from_slice::<Event>(line);
            if !first.is_ok_and(|first| matches!(first.event, EventKind::RunStarted(_))) {
                return Ok(false);
            }
        }
    }
    Ok(matches!(
        lines.next()?,
        RecordLine::End | RecordLine::Torn(_)
    ))
}

/// Whether a file is an incomplete first line.
fn is_torn_start(path: &Path) -> std::io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?
        .take(START.len() as u64)
        .read_to_end(&mut head)?;
    Ok(START.starts_with(&head))
}

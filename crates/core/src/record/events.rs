//! The events of one file, one at a time.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::event::Event;

use super::lines::{Lines, Next};
use super::{MAX_LINE, RecordError};

/// A last line that is not whole: the writer was ended while it wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// How much of it is there.
    pub bytes: u64,
}

/// Reads the events of a file in order, in memory that does not depend on how many there are.
///
/// A torn last line is left out, and [`EventReader::torn`] tells. After an error there is no more.
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    read: u64,
    torn: Option<Torn>,
    done: bool,
}

impl EventReader {
    /// Reads this file.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = File::open(path).map_err(RecordError::io("read", path))?;
        Ok(Self {
            path: path.to_owned(),
            lines: Lines::new(BufReader::with_capacity(64 * 1024, file), MAX_LINE),
            read: 0,
            torn: None,
            done: false,
        })
    }

    /// The torn last line, once the end was reached.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    fn read(&mut self) -> Result<Option<Event>, RecordError> {
        let line = self.read + 1;
        let corrupt = |reason: String| RecordError::Corrupt {
            path: self.path.clone(),
            line,
            reason,
        };
        let next = self
            .lines
            .next()
            .map_err(RecordError::io("read", &self.path))?;
        let event: Event = match next {
            Next::Line(text) => {
                serde_json::from_slice(text).map_err(|error| corrupt(error.to_string()))?
            }
            Next::TooLong => return Err(corrupt(format!("it is longer than {MAX_LINE} bytes"))),
            Next::Torn(bytes) => {
                self.torn = Some(Torn { bytes });
                return Ok(None);
            }
            Next::End => return Ok(None),
        };
        if event.seq != line {
            return Err(corrupt(format!("its number is {}", event.seq)));
        }
        self.read = line;
        Ok(Some(event))
    }
}

impl Iterator for EventReader {
    type Item = Result<Event, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The first line of a file, if it is a whole one.
pub(super) fn first_line(path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    let mut reader = EventReader::open(path)?;
    let next = reader.lines.next().map_err(RecordError::io("read", path))?;
    Ok(match next {
        Next::Line(line) => Some(line.to_owned()),
        Next::Torn(_) | Next::TooLong | Next::End => None,
    })
}

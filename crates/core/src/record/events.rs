//! The events of one file, one at a time.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::event::Event;

use super::lines::{RecordLine, RecordLines};
use super::{MAX_LINE, RecordError};

/// A last line that is not whole: the writer was ended while it wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornLine {
    /// How much of it is there.
    pub bytes: u64,
}

/// A place between two lines of a file of events: where a reader starts, and where it has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// How many bytes are before it.
    pub bytes: u64,
    /// How many events are before it.
    pub events: u64,
}

/// The length and hash of a file that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    pub bytes: u64,
    /// The SHA-256 of all its bytes, a torn last line included.
    pub sha256: String,
}

/// Reads the events of a file in order, in memory that does not depend on how many there are.
///
/// A torn last line is left out, and [`EventReader::torn`] tells: in a file that is still written it is
/// the line that is being written now. [`EventReader::position`] is where another reader goes on later.
/// After an error there is no more. What this version does not know is
/// [`What::Unknown`](crate::event::What::Unknown).
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    lines: RecordLines<BufReader<HashedFile>>,
    position: Position,
    torn: Option<TornLine>,
    done: bool,
    /// Whether a newer Proctor wrote it.
    newer: bool,
}

impl EventReader {
    /// Reads this file.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::open_at(path, Position::default())
    }

    /// Reads what comes after a place that an earlier reader of this file came to.
    pub fn open_at(path: &Path, position: Position) -> Result<Self, RecordError> {
        let file = File::open(path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(position.bytes))?;
                Ok(file)
            })
            .map_err(RecordError::io("read", path))?;
        let file = HashedFile { file, hash: None };
        Ok(Self {
            path: path.to_owned(),
            lines: RecordLines::new(BufReader::with_capacity(64 * 1024, file), MAX_LINE),
            position,
            torn: None,
            done: false,
            newer: false,
        })
    }

    /// Takes a known event in an unknown form for one of a newer version, if a newer Proctor wrote it.
    pub(super) fn by_newer(mut self, newer: bool) -> Self {
        self.newer = newer;
        self
    }

    /// Hashes what is read from here on.
    pub(crate) fn hashed(mut self) -> Self {
        self.lines.input().get_mut().hash = Some((Sha256::new(), 0));
        self
    }

    /// The length and hash of what was read, once the end was reached.
    pub(crate) fn into_digest(mut self) -> Option<FileDigest> {
        let (hash, bytes) = self.lines.input().get_mut().hash.take()?;
        let sha256 = HEXLOWER.encode(&hash.finalize());
        self.done.then_some(FileDigest { bytes, sha256 })
    }

    /// The torn last line, once the end was reached.
    pub fn torn(&self) -> Option<TornLine> {
        self.torn
    }

    /// The place behind the last event that was read.
    pub fn position(&self) -> Position {
        self.position
    }

    fn read(&mut self) -> Result<Option<Event>, RecordError> {
        let line = self.position.events + 1;
        let corrupt = |reason: String| RecordError::Corrupt {
            path: self.path.clone(),
            line,
            reason,
        };
        let next = self
            .lines
            .next()
            .map_err(RecordError::io("read", &self.path))?;
        let (event, bytes): (Event, u64) = match next {
            RecordLine::Line(text) => {
                let event = serde_json::from_slice(text).or_else(|error| {
                    let unknown = Event::read_unknown(text, self.newer);
                    unknown.ok_or_else(|| corrupt(error.to_string()))
                })?;
                (event, text.len() as u64 + 1)
            }
            RecordLine::TooLong => {
                return Err(corrupt(format!("it is longer than {MAX_LINE} bytes")));
            }
            RecordLine::Torn(bytes) => {
                self.torn = Some(TornLine { bytes });
                return Ok(None);
            }
            RecordLine::End => return Ok(None),
        };
        if event.seq != line {
            return Err(corrupt(format!("its number is {}", event.seq)));
        }
        self.position.events = line;
        self.position.bytes += bytes;
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

/// A file whose bytes are hashed and counted as they are read, if somebody asks for it.
#[derive(Debug)]
struct HashedFile {
    file: File,
    hash: Option<(Sha256, u64)>,
}

impl Read for HashedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if let Some((hash, bytes)) = &mut self.hash {
            hash.update(&buffer[..read]);
            *bytes += read as u64;
        }
        Ok(read)
    }
}

/// The length and hash of a file, and its last event if that can be read.
pub(super) fn digest(path: &Path) -> io::Result<(FileDigest, Option<Event>)> {
    let file = HashedFile {
        file: File::open(path)?,
        hash: Some((Sha256::new(), 0)),
    };
    let mut lines = RecordLines::new(BufReader::with_capacity(64 * 1024, file), MAX_LINE);
    let mut last = Vec::new();
    while let RecordLine::Line(line) = lines.next()? {
        last.clear();
        last.extend_from_slice(line);
    }
    // Behind a line that is too long, or a torn one.
    let file = lines.input();
    io::copy(file, &mut io::sink())?;
    let (hash, bytes) = file.get_mut().hash.take().unwrap_or_default();
    let sha256 = HEXLOWER.encode(&hash.finalize());
    let last = serde_json::from_slice(&last).ok();
    Ok((FileDigest { bytes, sha256 }, last))
}

/// The first line of a file, if it is a whole one.
pub(super) fn first_line(path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    let mut reader = EventReader::open(path)?;
    let next = reader.lines.next().map_err(RecordError::io("read", path))?;
    Ok(match next {
        RecordLine::Line(line) => Some(line.to_owned()),
        RecordLine::Torn(_) | RecordLine::TooLong | RecordLine::End => None,
    })
}

//! Reads the events of one file, one at a time.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::event::Event;
use crate::json;

use super::lines::{RecordLine, RecordLines};
use super::{MAX_LINE, RecordError};

/// An incomplete last line: the writer was killed while it wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornLine {
    /// The length of the incomplete line.
    pub bytes: u64,
}

/// How much of a file is read at once.
const BUFFER: usize = 64 * 1024;

/// A position between two lines of an event file, from which another reader can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The number of bytes before it.
    pub bytes: u64,
    /// The number of events before it.
    pub events: u64,
}

/// The length and hash of a file that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    pub bytes: u64,
    /// The SHA-256 of all bytes, including an incomplete last line.
    pub sha256: String,
}

/// Reads the events of a file in order, in constant memory.
///
/// Skips an incomplete last line, which [`EventReader::torn`] returns: in a file that is still
/// written, it is the line being written now. A later reader can continue at
/// [`EventReader::position`]. The iterator ends after an error. Events that this version does not
/// know are [`EventKind::Unknown`](crate::event::EventKind::Unknown).
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    lines: RecordLines<BufReader<HashedFile>>,
    position: Position,
    torn: Option<TornLine>,
    done: bool,
    /// Whether a newer Proctor wrote the file.
    newer: bool,
}

impl EventReader {
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::open_at(path, Position::default())
    }

    /// Reads lines that are still in memory: the whole of a file, from a position that an earlier reader of it reached.
    pub(super) fn of_lines(path: &Path, lines: Vec<u8>, position: Position) -> Self {
        let capacity = lines.len().max(1);
        let mut lines = Cursor::new(lines);
        lines.set_position(position.bytes);
        Self::over(path, Content::Memory(lines), capacity, position)
    }

    /// Opens a file at a position that an earlier reader of it reached.
    pub fn open_at(path: &Path, position: Position) -> Result<Self, RecordError> {
        let file = open_file(path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(position.bytes))?;
                Ok(file)
            })
            .map_err(RecordError::io("read", path))?;
        let content = Content::File(file);
        Ok(Self::over(path, content, BUFFER, position))
    }

    fn over(path: &Path, content: Content, capacity: usize, position: Position) -> Self {
        let file = HashedFile {
            content,
            hash: None,
        };
        Self {
            path: path.to_owned(),
            lines: RecordLines::new(BufReader::with_capacity(capacity, file), MAX_LINE),
            position,
            torn: None,
            done: false,
            newer: false,
        }
    }

    /// Reads a known event in an unknown form as unknown instead of corrupt, if a newer Proctor
    /// wrote it.
    pub(super) fn by_newer(mut self, newer: bool) -> Self {
        self.newer = newer;
        self
    }

    /// Hashes everything that is read from now on.
    pub(crate) fn hashed(mut self) -> Self {
        self.lines.input().get_mut().hash = Some((Sha256::new(), 0));
        self
    }

    /// The length and hash of the file, once the end is reached.
    pub(crate) fn into_digest(mut self) -> Option<FileDigest> {
        let (hash, bytes) = self.lines.input().get_mut().hash.take()?;
        let sha256 = HEXLOWER.encode(&hash.finalize());
        self.done.then_some(FileDigest { bytes, sha256 })
    }

    /// The incomplete last line, once the end is reached.
    pub fn torn(&self) -> Option<TornLine> {
        self.torn
    }

    /// The position after the last event that was read.
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
                let event = event(text, self.newer).map_err(corrupt)?;
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
            return Err(corrupt(format!("unexpected `seq` {}", event.seq)));
        }
        self.position.events = line;
        self.position.bytes += bytes;
        Ok(Some(event))
    }
}

/// Parses a line. If a newer Proctor wrote it, a known event may have an unknown form.
pub(super) fn event(line: &[u8], by_newer: bool) -> Result<Event, String> {
    json::from_slice(line).or_else(|error| {
        let unknown = Event::read_unknown(line, by_newer);
        unknown.ok_or_else(|| error.to_string())
    })
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

/// A file whose bytes are optionally hashed and counted while they are read.
#[derive(Debug)]
struct HashedFile {
    content: Content,
    hash: Option<(Sha256, u64)>,
}

#[derive(Debug)]
enum Content {
    File(File),
    Memory(Cursor<Vec<u8>>),
}

impl Read for HashedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.content {
            Content::File(file) => file.read(buffer)?,
            Content::Memory(lines) => lines.read(buffer)?,
        };
        if let Some((hash, bytes)) = &mut self.hash {
            hash.update(&buffer[..read]);
            *bytes += read as u64;
        }
        Ok(read)
    }
}

/// The length and hash of a file, and its last event if it is valid.
pub(super) fn digest(path: &Path) -> io::Result<(FileDigest, Option<Event>)> {
    let file = HashedFile {
        content: Content::File(open_file(path)?),
        hash: Some((Sha256::new(), 0)),
    };
    let mut lines = RecordLines::new(BufReader::with_capacity(BUFFER, file), MAX_LINE);
    let mut last = Vec::new();
    while let RecordLine::Line(line) = lines.next()? {
        last.clear();
        last.extend_from_slice(line);
    }
    // After a line that is too long or incomplete.
    let file = lines.input();
    io::copy(file, &mut io::sink())?;
    let (hash, bytes) = file.get_mut().hash.take().unwrap_or_default();
    let sha256 = HEXLOWER.encode(&hash.finalize());
    let last = json::from_slice(&last).ok();
    Ok((FileDigest { bytes, sha256 }, last))
}

/// Opens a file of a record. A pipe in its place would make the reader wait forever.
pub fn open_file(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// The first line of a file, if it is complete.
pub(super) fn first_line(path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    let mut reader = EventReader::open(path)?;
    let next = reader.lines.next().map_err(RecordError::io("read", path))?;
    Ok(match next {
        RecordLine::Line(line) => Some(line.to_owned()),
        RecordLine::Torn(_) | RecordLine::TooLong | RecordLine::End => None,
    })
}

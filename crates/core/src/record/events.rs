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
/// A torn last line is left out, and [`EventReader::torn`] tells. After an error there is no more. What
/// this version does not know is [`What::Unknown`](crate::event::What::Unknown).
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    read: u64,
    torn: Option<Torn>,
    done: bool,
    /// Whether a newer Proctor wrote it.
    newer: bool,
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
            newer: false,
        })
    }

    /// Takes a known event in an unknown form for one of a newer version, if a newer Proctor wrote it.
    pub(super) fn by_newer(mut self, newer: bool) -> Self {
        self.newer = newer;
        self
    }

    /// The next event with its time. Of one whose name is among `passed` there is only the time: it is
    /// not parsed, which for messages costs most of a reading.
    pub(crate) fn next_but(
        &mut self,
        passed: &[&str],
    ) -> Option<Result<(u64, Option<Event>), RecordError>> {
        if self.done {
            return None;
        }
        let next = self.read(passed).transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }

    /// The torn last line, once the end was reached.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    fn read(&mut self, passed: &[&str]) -> Result<Option<(u64, Option<Event>)>, RecordError> {
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
                if let Some(at) = passed_at(text, line, passed) {
                    self.read = line;
                    return Ok(Some((at, None)));
                }
                serde_json::from_slice(text).or_else(|error| {
                    let unknown = Event::read_unknown(text, self.newer);
                    unknown.ok_or_else(|| corrupt(error.to_string()))
                })?
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
        Ok(Some((event.at, Some(event))))
    }
}

/// When the event of a line was, if its number is right and its name is among these. A line that is laid
/// out in another way than ours are is none of them, and is parsed.
fn passed_at(line: &[u8], number: u64, passed: &[&str]) -> Option<u64> {
    let rest = line.strip_prefix(br#"{"seq":"#)?;
    let (seq, rest) = digits(rest)?;
    let (at, rest) = digits(rest.strip_prefix(br#","at":"#)?)?;
    let rest = rest.strip_prefix(br#","event":{""#)?;
    let is_passed = |name: &&str| {
        let rest = rest.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(br#"":"#))
    };
    let is_whole = seq == number && line.ends_with(b"}}");
    (is_whole && passed.iter().any(is_passed)).then_some(at)
}

fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    Some((str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

impl Iterator for EventReader {
    type Item = Result<Event, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_but(&[])? {
                Ok((_, Some(event))) => return Some(Ok(event)),
                Ok((_, None)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
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

//! The lines of an index on disk, read one at a time: a large run has more of them than fit in memory.
//!
//! The main type is [`StoredIndex`]. It remembers where the line of each file is. A file name is first taken from
//! the beginning of a line without parsing the rest, so an entry is valid only if the whole line says the same.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use memchr::memmem;
use serde::Deserialize;

use crate::event::TrialStarted;
use crate::record::{INDEX, MAX_LINE, RunReader, TrialBegan, open_file};

use super::{INDEX_VERSION, IndexEntry, IndexLine};

/// Where the file's name must be in a line.
const HEAD: usize = 512;

/// The readable part of an index, which may be incomplete, of another version, or missing.
#[derive(Debug)]
pub(super) struct StoredIndex {
    file: Option<File>,
    /// The line of each trial file, in the order of the files.
    lines: Vec<LinePlace>,
    /// Whether every line was valid so far, and no file occurred twice.
    pub(super) is_whole: bool,
    /// Whether a newer Proctor wrote some of it.
    pub(super) is_newer: bool,
    /// The bytes of the latest line.
    line: Vec<u8>,
}

/// Where the line of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePlace {
    Missing,
    At {
        offset: u64,
        bytes: usize,
    },
    /// If two lines name the same file, neither is trusted.
    Ambiguous,
}

/// What a line says at its beginning.
enum LineHead<'a> {
    Began,
    /// The result of this file.
    Entry(&'a str),
    Unknown,
}

/// The part of an entry that identifies its trial.
#[derive(Debug, Deserialize)]
pub(super) struct EntryIdentity {
    version: u32,
    pub(super) run: String,
    pub(super) file: String,
    pub(super) bytes: u64,
    attempt: AttemptIdentity,
}

#[derive(Debug, Deserialize)]
struct AttemptIdentity {
    trial: Option<TrialStarted>,
}

impl EntryIdentity {
    pub(super) fn into_trial(self) -> Option<TrialStarted> {
        self.attempt.trial
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum IdentityLine {
    Ended(EntryIdentity),
    Left(EntryIdentity),
}

impl StoredIndex {
    /// Finds the lines of these files, which are sorted.
    pub(super) fn read(run: &RunReader, files: &[Box<str>]) -> Self {
        let mut stored = Self {
            file: None,
            lines: vec![LinePlace::Missing; files.len()],
            is_whole: true,
            is_newer: false,
            line: Vec::new(),
        };
        let Ok(file) = open_file(&run.folder().join(INDEX)) else {
            stored.is_whole = false;
            return stored;
        };
        let mut offset = 0;
        let is_read = each_line(&file, |line, has_end| {
            let bytes = line.len();
            match head(line) {
                LineHead::Began => {}
                LineHead::Entry(file) => match files.binary_search_by(|name| (**name).cmp(file)) {
                    Ok(index) => stored.add(index, LinePlace::At { offset, bytes }),
                    Err(_) => stored.reject(line),
                },
                LineHead::Unknown => stored.reject(line),
            }
            offset += bytes as u64 + u64::from(has_end);
        });
        stored.is_whole &= is_read;
        stored.file = Some(file);
        stored
    }

    fn add(&mut self, index: usize, place: LinePlace) {
        let known = &mut self.lines[index];
        if *known == LinePlace::Missing {
            *known = place;
        } else {
            *known = LinePlace::Ambiguous;
            self.is_whole = false;
        }
    }

    fn reject(&mut self, line: &[u8]) {
        self.is_whole = false;
        self.is_newer |= is_newer(line);
    }

    /// The stored entry of a file, by its place in the list of files.
    pub(super) fn entry(&mut self, index: usize, file: &str) -> Option<IndexEntry> {
        self.load(index)?;
        let parsed = match serde_json::from_slice(&self.line) {
            Ok(IndexLine::Ended(entry) | IndexLine::Left(entry)) => Some(*entry),
            Ok(IndexLine::Began(_)) | Err(_) => None,
        };
        let fits = |entry: &IndexEntry| entry.version == INDEX_VERSION && entry.file == file;
        let entry = parsed.filter(fits);
        if entry.is_none() {
            self.forget(index);
            self.is_newer |= is_newer(&self.line);
        }
        entry
    }

    /// Like [`StoredIndex::entry`], but parses only what identifies the trial.
    pub(super) fn identity(&mut self, index: usize, file: &str) -> Option<EntryIdentity> {
        self.load(index)?;
        let (IdentityLine::Ended(entry) | IdentityLine::Left(entry)) =
            serde_json::from_slice(&self.line).ok()?;
        Some(entry).filter(|entry| entry.version == INDEX_VERSION && entry.file == file)
    }

    /// Removes the line of a file that it does not match.
    pub(super) fn forget(&mut self, index: usize) {
        self.is_whole &= self.lines[index] == LinePlace::Missing;
        self.lines[index] = LinePlace::Missing;
    }

    /// The bytes of the line of a file, if the index has one.
    pub(super) fn bytes(&mut self, index: usize) -> Option<&[u8]> {
        self.load(index)?;
        Some(&self.line)
    }

    fn load(&mut self, index: usize) -> Option<()> {
        let LinePlace::At { offset, bytes } = self.lines[index] else {
            return None;
        };
        let file = self.file.as_mut()?;
        file.seek(SeekFrom::Start(offset)).ok()?;
        self.line.resize(bytes, 0);
        file.read_exact(&mut self.line).ok()
    }
}

/// The trials that have begun and not ended.
pub(super) fn under_way(run: &RunReader) -> Vec<TrialBegan> {
    let mut began: Vec<TrialBegan> = Vec::new();
    let mut over = BTreeSet::new();
    let Ok(file) = open_file(&run.folder().join(INDEX)) else {
        return began;
    };
    each_line(&file, |line, _| match head(line) {
        LineHead::Began => {
            if let Ok(IndexLine::Began(trial)) = serde_json::from_slice(line) {
                began.push(trial);
            }
        }
        LineHead::Entry(file) => drop(over.insert(file.trim_end_matches(".part").to_owned())),
        LineHead::Unknown => {}
    });
    began.retain(|trial| !over.contains(&trial.file));
    began
}

/// Calls `take` with each line, and whether a line feed ends it. Returns whether all of the file could be read: a line
/// that Proctor would not write is not.
fn each_line(file: &File, mut take: impl FnMut(&[u8], bool)) -> bool {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut file)
            .take(MAX_LINE as u64)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return true,
            Ok(MAX_LINE) => return false,
            Ok(_) => {
                let has_end = line.pop_if(|byte| *byte == b'\n').is_some();
                take(&line, has_end);
            }
            Err(_) => return false,
        }
    }
}

fn head(line: &[u8]) -> LineHead<'_> {
    if line.starts_with(b"{\"began\":") {
        return LineHead::Began;
    }
    let is_entry = line.starts_with(b"{\"ended\":{") || line.starts_with(b"{\"left\":{");
    let file = || {
        const KEY: &[u8] = b"\"file\":\"";
        let head = &line[..line.len().min(HEAD)];
        let value = &head[memmem::find(head, KEY)? + KEY.len()..];
        let end = memchr::memchr(b'"', value)?;
        str::from_utf8(&value[..end]).ok()
    };
    match file() {
        Some(file) if is_entry => LineHead::Entry(file),
        Some(_) | None => LineHead::Unknown,
    }
}

/// Whether a line is of a later version.
fn is_newer(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct VersionedLine {
        version: u32,
    }
    let line = serde_json::from_slice::<HashMap<String, VersionedLine>>(line);
    line.is_ok_and(|line| line.values().any(|entry| entry.version > INDEX_VERSION))
}

//! The lines of an index on disk, read one at a time: a large run has more of them than fit in memory.
//!
//! The main type is [`StoredIndex`]. It remembers where the line of each file is. A file name is first taken from
//! the beginning of a line without parsing the rest, so an entry is valid only if the whole line says the same.

mod lines;

use std::collections::{BTreeSet, HashMap};

use memchr::memmem;
use serde::Deserialize;

use crate::event::TrialStarted;
use crate::json;
use crate::record::{INDEX, RunReader, TrialBegan, open_file};

use self::lines::{LineReader, each_line};
use super::{INDEX_VERSION, IndexEntry, IndexLine};

/// Where the file's name must be in a line.
const HEAD: usize = 512;

/// What precedes the file's name in a line.
const FILE: &[u8] = b"\"file\":\"";

/// The readable part of an index, which may be incomplete, of another version, or missing.
#[derive(Debug)]
pub(super) struct StoredIndex {
    reader: Option<LineReader>,
    /// The line of each trial file, in the order of the files.
    lines: Vec<LinePlace>,
    /// Whether every line was valid so far, and no file occurred twice.
    pub(super) is_whole: bool,
    /// Whether a newer Proctor wrote some of it.
    pub(super) is_newer: bool,
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
    /// Finds the lines of these files, which are sorted and all files of the run.
    pub(super) fn read(run: &RunReader, files: &[Box<str>]) -> Self {
        Self::find(run, files, true)
    }

    /// Finds the lines of these files, which are sorted and some files of the run. Does not say whether it is whole.
    pub(super) fn read_part(run: &RunReader, files: &[Box<str>]) -> Self {
        Self::find(run, files, false)
    }

    fn find(run: &RunReader, files: &[Box<str>], is_all: bool) -> Self {
        let mut stored = Self {
            reader: None,
            lines: vec![LinePlace::Missing; files.len()],
            is_whole: true,
            is_newer: false,
        };
        let Ok(file) = open_file(&run.folder().join(INDEX)) else {
            stored.is_whole = false;
            return stored;
        };
        let file_key = memmem::Finder::new(FILE);
        let mut next = 0;
        let is_read = each_line(&file, |offset, line| match head(line, &file_key) {
            LineHead::Entry(file) => match position(files, next, file) {
                Some(index) => {
                    next = index + 1;
                    let bytes = line.len();
                    stored.add(index, LinePlace::At { offset, bytes });
                }
                None if is_all => stored.reject(line),
                None => {}
            },
            LineHead::Unknown if is_all => stored.reject(line),
            LineHead::Began | LineHead::Unknown => {}
        });
        stored.is_whole &= is_read;
        stored.reader = Some(LineReader::new(file));
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
        let line = self.bytes(index)?;
        let parsed = match json::from_slice(line).ok() {
            Some(IndexLine::Ended(entry) | IndexLine::Left(entry)) => Some(*entry),
            Some(IndexLine::Began(_)) | None => None,
        };
        let fits = |entry: &IndexEntry| entry.version == INDEX_VERSION && entry.file == file;
        let entry = parsed.filter(fits);
        if entry.is_none() {
            let is_newer = is_newer(line);
            self.is_newer |= is_newer;
            self.forget(index);
        }
        entry
    }

    /// Like [`StoredIndex::entry`], but parses only what identifies the trial.
    pub(super) fn identity(&mut self, index: usize, file: &str) -> Option<EntryIdentity> {
        let (IdentityLine::Ended(entry) | IdentityLine::Left(entry)) =
            json::from_slice(self.bytes(index)?).ok()?;
        Some(entry).filter(|entry| entry.version == INDEX_VERSION && entry.file == file)
    }

    /// Removes the line of a file that it does not match.
    pub(super) fn forget(&mut self, index: usize) {
        self.is_whole &= self.lines[index] == LinePlace::Missing;
        self.lines[index] = LinePlace::Missing;
    }

    /// The bytes of the line of a file, if the index has one.
    pub(super) fn bytes(&mut self, index: usize) -> Option<&[u8]> {
        let LinePlace::At { offset, bytes } = self.lines[index] else {
            return None;
        };
        self.reader.as_mut()?.line(offset, bytes).ok()
    }
}

/// The index of a file in the sorted list. An index that was written in one go has the order of the files, so the next
/// file is nearly always the right one.
fn position(files: &[Box<str>], next: usize, file: &str) -> Option<usize> {
    if files.get(next).is_some_and(|name| **name == *file) {
        return Some(next);
    }
    files.binary_search_by(|name| (**name).cmp(file)).ok()
}

/// The trials that have begun and not ended.
pub(super) fn under_way(run: &RunReader) -> Vec<TrialBegan> {
    let mut began: Vec<TrialBegan> = Vec::new();
    let mut over = BTreeSet::new();
    let Ok(file) = open_file(&run.folder().join(INDEX)) else {
        return began;
    };
    let file_key = memmem::Finder::new(FILE);
    each_line(&file, |_, line| match head(line, &file_key) {
        LineHead::Began => {
            if let Ok(IndexLine::Began(trial)) = json::from_slice(line) {
                began.push(trial);
            }
        }
        LineHead::Entry(file) => drop(over.insert(file.trim_end_matches(".part").to_owned())),
        LineHead::Unknown => {}
    });
    began.retain(|trial| !over.contains(&trial.file));
    began
}

fn head<'a>(line: &'a [u8], file_key: &memmem::Finder<'_>) -> LineHead<'a> {
    if line.starts_with(b"{\"began\":") {
        return LineHead::Began;
    }
    let is_entry = line.starts_with(b"{\"ended\":{") || line.starts_with(b"{\"left\":{");
    let file = || {
        let head = &line[..line.len().min(HEAD)];
        let value = &head[file_key.find(head)? + FILE.len()..];
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
    let line = json::from_slice::<HashMap<String, VersionedLine>>(line);
    line.is_ok_and(|line| line.values().any(|entry| entry.version > INDEX_VERSION))
}

//! Reads the lines of an index.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::Deserialize;

use crate::record::{INDEX, RunReader, TrialBegan};

use super::{INDEX_VERSION, IndexEntry, IndexLine};

/// The readable part of an index, which may be incomplete, of another version, or missing.
#[derive(Debug, Default)]
pub(super) struct StoredIndex {
    /// The entries by file name.
    pub(super) entries: HashMap<String, IndexEntry>,
    pub(super) began: Vec<TrialBegan>,
    /// Whether every line was valid and no file occurred twice.
    pub(super) is_whole: bool,
    /// Whether a newer Proctor wrote some of it.
    pub(super) is_newer: bool,
}

impl StoredIndex {
    pub(super) fn read(run: &RunReader) -> Self {
        let mut stored = Self {
            is_whole: true,
            ..Self::default()
        };
        let Ok(file) = File::open(run.folder().join(INDEX)) else {
            return Self::default();
        };
        for line in BufReader::new(file).split(b'\n') {
            let Ok(line) = line else {
                stored.is_whole = false;
                break;
            };
            stored.take(&line);
        }
        stored
    }

    fn take(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(IndexLine::Began(began)) => self.began.push(began),
            Ok(IndexLine::Ended(entry) | IndexLine::Left(entry))
                if entry.version == INDEX_VERSION =>
            {
                // If two entries name the same file, neither is trusted.
                let before = self.entries.insert(entry.file.clone(), *entry);
                if let Some(before) = before {
                    self.is_whole = false;
                    self.entries.remove(&before.file);
                }
            }
            Ok(IndexLine::Ended(_) | IndexLine::Left(_)) | Err(_) => {
                self.is_whole = false;
                self.is_newer |= is_newer(line);
            }
        }
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

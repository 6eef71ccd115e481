//! The index of a run: what each attempt at a trial came to, without opening its file.
//!
//! Its main types are [`IndexEntry`], a line of `index.jsonl`, and in it [`Attempt`], all that a summary
//! takes of a trial's file. The index holds nothing that the trials' own files do not: an entry that does
//! not fit its file is made again from it, by the same fold.

mod attempt;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::event::{EventKind, TrialEnded};
use crate::fold::{Fold, FoldOptions};
use crate::record::{
    EndedTrial, INDEX, PART, RecordError, RunReader, TrialBegan, TrialFile, TrialWriter,
};

pub use self::attempt::{Attempt, CallTotals, CheckVerdict, FindingCounts, FoundKind};
use self::stored::StoredIndex;

/// The version of the entries that this program writes and takes. It is raised whenever a fold of the
/// same file gives another [`Attempt`], so that an older index is made again.
pub const INDEX_VERSION: u32 = 2;

/// What the index says of an attempt at a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexEntry {
    pub version: u32,
    /// When the run started, by the wall clock: an index of another run does not fit.
    pub run: String,
    /// The file under `trials/`.
    pub file: String,
    /// How long the file is.
    pub bytes: u64,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// How many events the file holds.
    pub events: u64,
    pub attempt: Attempt,
}

/// A line of the index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum IndexLine {
    /// A trial began.
    Began(TrialBegan),
    /// A trial ended.
    Ended(Box<IndexEntry>),
    /// A trial was left without an end by a writer that is gone.
    Left(Box<IndexEntry>),
}

/// How closely an entry is compared with its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexScrutiny {
    /// The file has the length that the entry names. It is not opened.
    Length,
    /// The file has the hash that the entry names, and ends as the entry says. Only its last line is
    /// parsed.
    Digest,
}

/// Ends a trial, and writes its line in the index.
pub fn end_trial(trial: TrialWriter, at: u64, ended: TrialEnded) -> Result<(), RecordError> {
    add(&trial.end(at, ended)?)
}

/// Writes the line of a trial that has ended. One whose file can't be folded gets none: whoever reads the
/// run meets the same error.
pub fn add(ended: &EndedTrial) -> Result<(), RecordError> {
    let entry =
        RunReader::open(ended.folder()).and_then(|run| match run.trial_file(ended.file()) {
            Some(file) => entry_of(&run, &file).map(Some),
            None => Ok(None),
        });
    match entry {
        Ok(Some(entry)) => ended.append_to_index(&IndexLine::Ended(Box::new(entry))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// What all attempts of a run came to, by the names of their files. Those that the index does not name,
/// or not as they are, are folded; then the index is written anew, unless somebody writes the run.
pub fn load(run: &RunReader, scrutiny: IndexScrutiny) -> Result<Vec<IndexEntry>, RecordError> {
    let mut stored = StoredIndex::read(run);
    let names = run.trial_names()?;
    let mut entries = Vec::with_capacity(names.len());
    let mut is_whole = stored.is_whole;
    for file in names.iter().filter_map(|name| run.trial_file(name)) {
        let (entry, was_stored) = entry(run, &file, &mut stored, scrutiny)?;
        is_whole &= was_stored;
        entries.push(entry);
    }
    is_whole &= stored.entries.is_empty();
    if !is_whole && !stored.is_newer && !run.is_newer() {
        // It can be made again at any time, also by those who can't keep it.
        run.replace(INDEX, &text(&entries));
    }
    Ok(entries)
}

/// As [`load`], of the trials that have ended. The index stays as it is.
pub fn ended(run: &RunReader) -> Result<Vec<IndexEntry>, RecordError> {
    let mut stored = StoredIndex::read(run);
    let names = run.trial_names()?;
    let files = names.iter().filter_map(|name| run.trial_file(name));
    let ended = files.filter(|file| file.ended);
    ended
        .map(|file| Ok(entry(run, &file, &mut stored, IndexScrutiny::Length)?.0))
        .collect()
}

/// The trials that have begun and not ended, as far as the index tells. Of a run that nobody writes,
/// they were left so.
pub fn under_way(run: &RunReader) -> Vec<TrialBegan> {
    let stored = StoredIndex::read(run);
    let over = stored.entries.keys();
    let over: BTreeSet<&str> = over.map(|file| file.trim_end_matches(".part")).collect();
    let began = stored.began.into_iter();
    began
        .filter(|began| !over.contains(began.file.as_str()))
        .collect()
}

/// The entry of a file, and whether the index holds it already.
fn entry(
    run: &RunReader,
    file: &TrialFile,
    stored: &mut StoredIndex,
    scrutiny: IndexScrutiny,
) -> Result<(IndexEntry, bool), RecordError> {
    if let Some(entry) = stored.entries.remove(file.file_name())
        && fits(&entry, run, file, scrutiny)?
    {
        return Ok((entry, true));
    }
    Ok((entry_of(run, file)?, false))
}

fn fits(
    entry: &IndexEntry,
    run: &RunReader,
    file: &TrialFile,
    scrutiny: IndexScrutiny,
) -> Result<bool, RecordError> {
    let attempt = entry.attempt.trial.as_ref().map(|trial| trial.attempt);
    if entry.run != run.started().started
        || attempt.is_some_and(|attempt| attempt != file.attempt)
        || entry.bytes != file.bytes()?
        // Whoever knows these events makes more of the file.
        || entry.attempt.unknown_events > 0
    {
        return Ok(false);
    }
    if scrutiny == IndexScrutiny::Length {
        return Ok(true);
    }
    let (digest, last) = file.digest()?;
    let ended = last.and_then(|event| match event.event {
        EventKind::TrialEnded(ended) => Some(attempt::bounded_end(&ended)),
        _ => None,
    });
    Ok(digest.sha256 == entry.sha256 && (!file.ended || ended == entry.attempt.ended))
}

/// Folds a file, in one reading.
fn entry_of(run: &RunReader, file: &TrialFile) -> Result<IndexEntry, RecordError> {
    let mut fold = Fold::new(FoldOptions {
        payload_bytes: 0,
        text_bytes: 0,
        ..FoldOptions::default()
    });
    let mut events = run.trial(file)?.hashed();
    for event in events.by_ref() {
        fold.push(&event?, run.blobs())?;
    }
    let read = events.position().events;
    let (bytes, sha256) = events
        .into_digest()
        .map(|digest| (digest.bytes, digest.sha256))
        .unwrap_or_default();
    Ok(IndexEntry {
        version: INDEX_VERSION,
        run: run.started().started.clone(),
        file: file.file_name().to_owned(),
        bytes,
        sha256,
        events: read,
        attempt: Attempt::of(fold.finish()),
    })
}

fn text(entries: &[IndexEntry]) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in entries {
        let boxed = Box::new(entry.clone());
        let line = if entry.file.ends_with(PART) {
            IndexLine::Left(boxed)
        } else {
            IndexLine::Ended(boxed)
        };
        // An entry is text and numbers, which can always be laid out.
        if serde_json::to_writer(&mut text, &line).is_ok() {
            text.push(b'\n');
        }
    }
    text
}

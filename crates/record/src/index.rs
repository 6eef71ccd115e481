//! The index of a run: the result of each attempt at a trial, without opening its file.
//!
//! The main types are [`IndexEntry`], a line of `index.jsonl`, and [`Attempt`], the data of a
//! trial's file that a summary needs. The index holds nothing that the trials' own files don't
//! hold: an entry that does not match its file is derived again, by the same fold.

mod attempt;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::event::{EventKind, TrialEnded, TrialStarted};
use crate::fold::{Fold, FoldOptions, LiveFold};
use crate::record::{
    Blobs, ENDED, EndedTrial, EventReader, EventsSince, FileDigest, INDEX, PART, RecordError,
    RunReader, TRIALS, TrialBegan, TrialFile, TrialWriter, private,
};

pub use self::attempt::{Attempt, CallTotals, CheckVerdict, FindingCounts, FoundKind};
use self::stored::StoredIndex;

/// The version of the entries that this program reads and writes. It increases whenever folding the
/// same file gives another [`Attempt`], so that an older index is rebuilt.
pub const INDEX_VERSION: u32 = 3;

/// The entry of one attempt at a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexEntry {
    pub version: u32,
    /// The start of the run by the wall clock, which detects the index of another run.
    pub run: String,
    pub file: String,
    /// The length of the file.
    pub bytes: u64,
    pub sha256: String,
    /// The number of events in the file.
    pub events: u64,
    pub attempt: Attempt,
}

/// A line of the index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum IndexLine {
    Began(TrialBegan),
    Ended(Box<IndexEntry>),
    /// A trial without an end, which an earlier writer left.
    Left(Box<IndexEntry>),
}

/// How strictly an entry is compared with its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexScrutiny {
    /// The file has the length in the entry. It is not opened.
    Length,
    /// The file has the hash and the end in the entry. Only its last line is parsed.
    Digest,
}

/// Ends a trial, and adds its line to the index.
pub fn end_trial(trial: TrialWriter, at: u64, ended: TrialEnded) -> Result<(), RecordError> {
    add(&mut trial.end(at, ended)?)
}

/// Adds the line of an ended trial. A trial whose file can't be folded gets none; readers of the
/// run get the same error.
pub fn add(ended: &mut EndedTrial) -> Result<(), RecordError> {
    add_after(ended, None)
}

/// The same, for a trial of which some events may be folded already, with [`FoldOptions::for_checks`]. No person makes
/// calls in it, so these count the same calls.
pub fn add_after(ended: &mut EndedTrial, live: Option<LiveFold>) -> Result<(), RecordError> {
    let live = live.unwrap_or_else(|| LiveFold::new(fold_options()));
    let entry = if let Some((events, blobs, digest)) = ended.take_events(live.position()) {
        followed(live, events, &blobs, digest, ended).map(Some)
    } else {
        RunReader::open(ended.folder()).and_then(|run| match run.trial_file(ended.file()) {
            Some(file) => entry_of(&run, &file).map(Some),
            None => Ok(None),
        })
    };
    match entry {
        Ok(Some(entry)) => ended.append_to_index(&IndexLine::Ended(Box::new(entry))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// The entry of a trial whose last events are in memory.
fn followed(
    mut live: LiveFold,
    events: EventsSince,
    blobs: &Blobs,
    digest: FileDigest,
    ended: &EndedTrial,
) -> Result<IndexEntry, RecordError> {
    live.follow(events, blobs)?;
    Ok(IndexEntry {
        version: INDEX_VERSION,
        run: ended.run().to_owned(),
        file: ended.file().to_owned(),
        bytes: digest.bytes,
        sha256: digest.sha256,
        events: live.position().events,
        attempt: Attempt::of(live.finish()),
    })
}

/// The entries of all attempts of a run, by file name. See [`each`].
pub fn load(run: &RunReader, scrutiny: IndexScrutiny) -> Result<Vec<IndexEntry>, RecordError> {
    let mut entries = Vec::new();
    each(run, scrutiny, |_, entry| entries.push(entry))?;
    Ok(entries)
}

/// Calls `take` with the entry of each attempt of a run, by file name. Only one entry is in memory at a time.
///
/// Attempts without a matching entry are folded. Then the index is rewritten, unless another process writes the run.
pub fn each(
    run: &RunReader,
    scrutiny: IndexScrutiny,
    mut take: impl FnMut(&TrialFile, IndexEntry),
) -> Result<(), RecordError> {
    let names = run.trial_names()?;
    let mut stored = StoredIndex::read(run, &names);
    let mut folded: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        let Some(file) = run.trial_file(name) else {
            stored.forget(index);
            continue;
        };
        let (entry, was_stored) = entry(run, &file, index, &mut stored, scrutiny)?;
        if !was_stored {
            folded.insert(index, line(&entry));
        }
        take(&file, entry);
    }
    let is_whole = stored.is_whole && folded.is_empty();
    if !is_whole && !stored.is_newer && !run.is_newer() {
        let mut text = Vec::new();
        for index in 0..names.len() {
            match folded.get(&index) {
                Some(line) => text.extend_from_slice(line),
                None => text.extend_from_slice(stored.bytes(index).unwrap_or_default()),
            }
            if !text.is_empty() && !text.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        // The index can be rebuilt at any time, even without permission to store it.
        run.replace(INDEX, &text);
    }
    Ok(())
}

/// Like [`each`], with at most `names` names of files in memory at a time, which takes longer for a run with more files.
/// Does not change the index.
pub fn each_in_parts(
    run: &RunReader,
    scrutiny: IndexScrutiny,
    names: usize,
    mut take: impl FnMut(&TrialFile, IndexEntry),
) -> Result<(), RecordError> {
    let mut last: Box<str> = Box::default();
    loop {
        let part = run.trial_names_after(&last, names)?;
        let mut stored = StoredIndex::read_part(run, &part);
        for (index, name) in part.iter().enumerate() {
            if let Some(file) = run.trial_file(name) {
                let (entry, _) = entry(run, &file, index, &mut stored, scrutiny)?;
                take(&file, entry);
            }
        }
        match part.into_iter().nth(names - 1) {
            Some(name) => last = name,
            None => return Ok(()),
        }
    }
}

/// Calls `take` with the entry of each attempt of a run, by file name, folded from its file. The index is not used.
pub fn each_folded(run: &RunReader, mut take: impl FnMut(IndexEntry)) -> Result<(), RecordError> {
    let names = run.trial_names()?;
    for file in names.iter().filter_map(|name| run.trial_file(name)) {
        take(entry_of(run, &file)?);
    }
    Ok(())
}

/// Like [`load`], for trials that have ended. Does not change the index.
pub fn ended(run: &RunReader) -> Result<Vec<IndexEntry>, RecordError> {
    let names = run.trial_names()?;
    let mut stored = StoredIndex::read(run, &names);
    let mut entries = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(file) = run.trial_file(name).filter(|file| file.ended) {
            entries.push(entry(run, &file, index, &mut stored, IndexScrutiny::Length)?.0);
        }
    }
    Ok(entries)
}

/// Calls `take` with every attempt of a run, by file name, and the trial that it belongs to; `None` if its file does not say.
///
/// A file is opened only if the index has no entry of its length. Does not change the index.
pub fn each_identity(
    run: &RunReader,
    mut take: impl FnMut(TrialFile, Option<TrialStarted>),
) -> Result<(), RecordError> {
    let names = run.trial_names()?;
    let mut stored = StoredIndex::read(run, &names);
    for (index, name) in names.iter().enumerate() {
        let Some(file) = run.trial_file(name) else {
            continue;
        };
        let started = match stored.identity(index, name) {
            Some(entry) if entry.run == run.started().started && entry.bytes == file.bytes()? => {
                entry.into_trial()
            }
            Some(_) | None => first_event(run, &file)?,
        };
        take(file, started);
    }
    Ok(())
}

fn first_event(run: &RunReader, file: &TrialFile) -> Result<Option<TrialStarted>, RecordError> {
    let first = run.trial(file)?.next().transpose()?;
    Ok(first.and_then(|event| match event.event {
        EventKind::TrialStarted(started) => Some(started),
        _ => None,
    }))
}

/// The text of an index that is up to date. It depends only on the trials' files.
pub fn rendered(run: &RunReader) -> Result<Vec<u8>, RecordError> {
    let mut text = Vec::new();
    for entry in load(run, IndexScrutiny::Digest)? {
        text.extend(line(&entry));
        text.push(b'\n');
    }
    Ok(text)
}

/// The trials that have begun and not ended, according to the index. If no process writes the run,
/// they are abandoned.
pub fn under_way(run: &RunReader) -> Vec<TrialBegan> {
    let trials = run.folder().join(TRIALS);
    let mut began = stored::under_way(run);
    // A writer that was killed may have left a line without a file.
    began.retain(|began| {
        let stem = began.file.strip_suffix(ENDED).unwrap_or(&began.file);
        trials.join(format!("{stem}{PART}")).exists()
    });
    began
}

/// The entry of a file, and whether the index already holds it.
fn entry(
    run: &RunReader,
    file: &TrialFile,
    index: usize,
    stored: &mut StoredIndex,
    scrutiny: IndexScrutiny,
) -> Result<(IndexEntry, bool), RecordError> {
    if let Some(entry) = stored.entry(index, file.file_name()) {
        if fits(&entry, run, file, scrutiny)? {
            return Ok((entry, true));
        }
        stored.forget(index);
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
        // A newer version may read more from the file.
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

/// Reads and folds a file once.
fn entry_of(run: &RunReader, file: &TrialFile) -> Result<IndexEntry, RecordError> {
    let (started, name) = (&run.started().started, file.file_name());
    folded(run.trial(file)?, run.blobs(), started, name)
}

fn folded(
    events: EventReader,
    blobs: &Blobs,
    run: &str,
    file: &str,
) -> Result<IndexEntry, RecordError> {
    let mut fold = Fold::new(fold_options());
    let mut events = events.hashed();
    for event in events.by_ref() {
        fold.push(&event?, blobs)?;
    }
    let read = events.position().events;
    let (bytes, sha256) = events
        .into_digest()
        .map(|digest| (digest.bytes, digest.sha256))
        .unwrap_or_default();
    Ok(IndexEntry {
        version: INDEX_VERSION,
        run: run.to_owned(),
        file: file.to_owned(),
        bytes,
        sha256,
        events: read,
        attempt: Attempt::of(fold.finish()),
    })
}

/// An entry needs no payloads and texts.
fn fold_options() -> FoldOptions {
    FoldOptions {
        payload_bytes: 0,
        text_bytes: 0,
        ..FoldOptions::default()
    }
}

/// The line of an entry.
fn line(entry: &IndexEntry) -> Vec<u8> {
    let boxed = Box::new(entry.clone());
    let line = if entry.file.ends_with(PART) {
        IndexLine::Left(boxed)
    } else {
        IndexLine::Ended(boxed)
    };
    // An entry holds only texts and numbers, which always serialize.
    serde_json::to_vec(&line).unwrap_or_default()
}

/// The index of a run that is put together from other runs.
#[derive(Debug)]
pub struct MergedIndex {
    run: String,
    path: std::path::PathBuf,
    file: std::io::BufWriter<std::fs::File>,
}

impl MergedIndex {
    pub fn create(run: &RunReader) -> Result<Self, RecordError> {
        let path = run.folder().join(INDEX);
        let file = private().append(true).create(true).open(&path);
        Ok(Self {
            run: run.started().started.clone(),
            file: std::io::BufWriter::new(file.map_err(RecordError::io("open", &path))?),
            path,
        })
    }

    /// Adds the entry of a file, as one of this run.
    pub fn append(&mut self, entry: IndexEntry) -> Result<(), RecordError> {
        let mut line = line(&IndexEntry {
            run: self.run.clone(),
            ..entry
        });
        line.push(b'\n');
        self.file
            .write_all(&line)
            .map_err(RecordError::io("write", &self.path))
    }

    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.file
            .flush()
            .map_err(RecordError::io("write", &self.path))
    }
}

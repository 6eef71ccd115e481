//! Puts the trials of shards into the folder of the merged run, one shard at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proctor_record::event::{Outcome, TrialStarted};
use proctor_record::index::{self, IndexEntry, IndexScrutiny, MergedIndex};
use proctor_record::record::{BLOBS, RecordError, TRIALS, make_folder, sync_folder};

use super::LISTED;
use super::shards::ShardCopy;

/// Adds trials to a merged run.
pub(super) struct TrialMerger {
    trials: PathBuf,
    blobs: PathBuf,
    /// The folders whose blobs are added.
    added_blobs: BTreeSet<PathBuf>,
    pub(super) merged: usize,
    pub(super) doubled: usize,
    pub(super) doubled_trials: Vec<String>,
    pub(super) unfinished: usize,
}

impl TrialMerger {
    pub(super) fn new(folder: &Path) -> Result<Self, RecordError> {
        let (trials, blobs) = (folder.join(TRIALS), folder.join(BLOBS));
        make_folder(&trials)?;
        make_folder(&blobs)?;
        Ok(Self {
            trials,
            blobs,
            added_blobs: BTreeSet::new(),
            merged: 0,
            doubled: 0,
            doubled_trials: Vec::new(),
            unfinished: 0,
        })
    }

    /// Adds the trials of one shard, which may have been executed several times.
    pub(super) fn add(
        &mut self,
        copies: &[ShardCopy],
        index: &mut MergedIndex,
    ) -> Result<(), RecordError> {
        let sources = sources(copies)?;
        for (number, copy) in copies.iter().enumerate() {
            let mut failed = None;
            let mut counted = BTreeSet::new();
            index::each(&copy.run, IndexScrutiny::Digest, |file, entry| {
                if failed.is_some() {
                    return;
                }
                if !file.ended {
                    self.unfinished += 1;
                    return;
                }
                if sources
                    .get(&file.stem)
                    .is_some_and(|source| *source != number)
                {
                    if counted.insert(file.stem.clone()) {
                        self.double(&entry);
                    }
                    return;
                }
                let added = belongs(copy, &entry)
                    .and_then(|()| place(&file.path, &self.trials.join(file.file_name())))
                    .and_then(|()| index.append(entry));
                match added {
                    Ok(()) => self.merged += usize::from(counted.insert(file.stem.clone())),
                    Err(error) => failed = Some(error),
                }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            self.add_blobs(&copy.run.folder().join(BLOBS))?;
        }
        Ok(())
    }

    fn double(&mut self, entry: &IndexEntry) {
        self.doubled += 1;
        if self.doubled_trials.len() < LISTED {
            self.doubled_trials
                .extend(entry.attempt.trial.as_ref().map(name));
        }
    }

    fn add_blobs(&mut self, from: &Path) -> Result<(), RecordError> {
        // Shards from a store share their blobs.
        let path = from.canonicalize().unwrap_or_else(|_| from.to_owned());
        if !self.added_blobs.insert(path) {
            return Ok(());
        }
        let entries = match fs::read_dir(from) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RecordError::io("read", from)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(RecordError::io("read", from))?;
            let to = self.blobs.join(entry.file_name());
            // Its name is its hash, which every reader verifies.
            if !to.exists() {
                place(&entry.path(), &to)?;
            }
        }
        Ok(())
    }

    /// Waits until the names of all files are on the disk.
    pub(super) fn sync(&self) -> Result<(), RecordError> {
        sync_folder(&self.trials)?;
        sync_folder(&self.blobs)
    }
}

/// The execution that each trial comes from, by the stem of its files; empty for a shard that was executed once.
fn sources(copies: &[ShardCopy]) -> Result<BTreeMap<String, usize>, RecordError> {
    let mut sources = BTreeMap::new();
    if copies.len() < 2 {
        return Ok(sources);
    }
    let mut decided: BTreeSet<String> = BTreeSet::new();
    for (number, copy) in copies.iter().enumerate() {
        // Attempts come in order, so the last one of a trial stays.
        let mut outcomes: BTreeMap<String, (u32, Option<Outcome>)> = BTreeMap::new();
        index::each(&copy.run, IndexScrutiny::Digest, |file, entry| {
            let outcome = entry.attempt.ended.as_ref().map(|ended| ended.outcome);
            let known = outcomes.entry(file.stem.clone()).or_default();
            if file.ended && file.attempt >= known.0 {
                *known = (file.attempt, outcome);
            }
        })?;
        for (stem, (_, outcome)) in outcomes {
            let has_verdict = match outcome {
                Some(Outcome::Passed | Outcome::Failed | Outcome::TimedOut) => true,
                Some(Outcome::Errored | Outcome::Cancelled) | None => false,
            };
            if has_verdict && decided.insert(stem.clone()) {
                sources.insert(stem, number);
            } else if outcome.is_some() {
                sources.entry(stem).or_insert(number);
            }
        }
    }
    Ok(sources)
}

/// Refuses a trial in a shard that it does not belong to: it might be counted for another one.
fn belongs(copy: &ShardCopy, entry: &IndexEntry) -> Result<(), RecordError> {
    let Some(trial) = &entry.attempt.trial else {
        return Ok(());
    };
    let agent = trial.agent.as_deref().unwrap_or_default();
    if copy.shard.holds(&trial.case, agent, trial.repeat) {
        return Ok(());
    }
    Err(RecordError::NotARun {
        path: copy.run.folder().to_owned(),
        reason: format!(
            "the trial `{}` does not belong to shard {}",
            name(trial),
            copy.shard
        ),
    })
}

fn name(trial: &TrialStarted) -> String {
    let agent = trial.agent.as_deref().unwrap_or_default();
    format!("{}:{agent}:{}", trial.case, trial.repeat)
}

/// Puts a file that never changes at another place: as a link, or as a copy on another file system.
fn place(from: &Path, to: &Path) -> Result<(), RecordError> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(RecordError::TrialExists {
                path: to.to_owned(),
            })
        }
        Err(_) => fs::copy(from, to)
            .map(drop)
            .map_err(RecordError::io("copy", to)),
    }
}

//! The default folder of runs.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use proctor_record::event::RunStarted;
use proctor_record::record::{RecordError, RunWriter};
use proctor_record::redact::Redactor;

/// The default folder of runs.
pub const RUNS: &str = ".proctor/runs";

/// Writes a `.gitignore` that excludes runs, before the first run. A failure is ignored: the run
/// reports its own write errors.
pub(super) fn ignore() {
    let runs = Path::new(RUNS);
    let Some(folder) = runs.parent().filter(|_| !runs.exists()) else {
        return;
    };
    let mut new = OpenOptions::new();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let _ = made
        .and_then(|()| {
            let ignore = folder.join(".gitignore");
            new.write(true).create_new(true).open(ignore)
        })
        .and_then(|mut file| file.write_all(b"*\n"));
}

/// Starts a run in a new folder below `runs`, unique even if several start in the same second.
pub(super) fn create(
    runs: &Path,
    redactor: &Redactor,
    started: &RunStarted,
) -> Result<RunWriter, RecordError> {
    let mut taken = None;
    for folder in folders(runs, &redactor.text(&started.name)) {
        // Only creating the folder shows whether it is free, since other processes try at the same
        // time.
        match RunWriter::create(&folder, redactor.clone(), started.clone()) {
            Err(error @ (RecordError::HoldsARun { .. } | RecordError::Locked { .. })) => {
                taken = Some(error);
            }
            done => return done,
        }
    }
    // After four billion folders.
    Err(taken.unwrap_or_else(|| RecordError::HoldsARun {
        path: runs.to_owned(),
    }))
}

/// Creates a new folder for a run, in the default folder of runs.
pub(super) fn reserve(name: &str) -> std::io::Result<PathBuf> {
    ignore();
    let runs = Path::new(RUNS);
    let mut new = DirBuilder::new();
    new.recursive(true).mode(0o700).create(runs)?;
    for folder in folders(runs, name) {
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    // After four billion folders.
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// Candidate folders for a run, best first: the time and a name, then with a number.
fn folders(runs: &Path, name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let word = word(name);
    let base = runs.join(format!("{time}-{word}"));
    let runs = runs.to_owned();
    let numbered = (2_u32..).map(move |number| runs.join(format!("{time}-{word}-{number}")));
    std::iter::once(base).chain(numbered)
}

/// The name of a suite as part of a folder's name.
pub(super) fn word(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use proctor_record::event::RECORD_VERSION;

    use super::*;

    #[test]
    fn runs_of_the_same_second_have_a_folder_each() {
        const STARTS: usize = 32;
        let runs = tempfile::tempdir().unwrap();
        let started = RunStarted {
            record: RECORD_VERSION,
            proctor: String::new(),
            started: String::new(),
            name: "suite".to_owned(),
            command: Vec::new(),
            context: None,
        };
        let together = Barrier::new(STARTS);
        let create = || {
            together.wait();
            super::create(runs.path(), &Redactor::default(), &started).unwrap()
        };
        let writers: Vec<RunWriter> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..STARTS).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let folders: BTreeSet<&Path> = writers.iter().map(RunWriter::folder).collect();
        assert_eq!(folders.len(), STARTS);
    }
}

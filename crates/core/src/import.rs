//! Imports the result file of mcpchecker as a record, so that all readers of runs read it.
//!
//! The main function is [`import`]. The record says what the file says and marks itself as imported
//! ([`RunKind::Imported`]): data that the file lacks, such as prompts, model turns and response times, stays
//! absent. A trial passes only if every part of its entry says so. The file is read entry by entry, twice:
//! first for the plan, then for the trials.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod outcome;
mod plan;
mod result_file;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use jiff::Timestamp;
use proctor_record::event::{EventKind, RECORD_VERSION, RunEnded, RunKind, RunStarted};
use proctor_record::index;
use proctor_record::record::{EndedTrial, RecordError, RunReader, RunWriter};
use proctor_record::redact::Redactor;

use crate::gate::Gate;
use crate::summary::Summary;

pub use self::outcome::ASSERTIONS_PASSED;
use self::plan::ImportPlan;
use self::result_file::ResultEntry;

/// How many trials may wait for the disk at a time.
const WAITING: usize = 64;

/// Why a result file can't be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("could not read `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is not JSON, or has another form.
    #[error("`{}` is not a result file of mcpchecker: {reason}", path.display())]
    Form { path: PathBuf, reason: String },
    #[error("`{}` holds no results", path.display())]
    Empty { path: PathBuf },
    #[error("`{}`: {reason}", path.display())]
    Implausible { path: PathBuf, reason: String },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Writes the results of a file as a run into a folder that holds none.
pub fn import(file: &Path, folder: &Path, redactor: Redactor) -> Result<(), ImportError> {
    let plan = ImportPlan::read(file)?;
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: env!("CARGO_PKG_VERSION").to_owned(),
        started: plan.started.to_string(),
        name: run_name(file),
        command: Vec::new(),
        context: None,
    };
    let mut run = RunWriter::create(folder, redactor, started)?;
    run.append(
        0,
        EventKind::RunPlanned(plan.planned(RunKind::Imported).into()),
    )?;
    for server in plan.servers() {
        run.append(0, EventKind::ServerSeen(server))?;
    }
    let last = trials(file, &plan, &run)?;
    run.flush();
    let mut summary = Summary::of_run(&RunReader::open(folder)?)?;
    summary.ended = Some(RunEnded::default());
    let ended = RunEnded {
        exit: Gate::of(&summary).exit(),
        ..RunEnded::default()
    };
    Ok(run.end(last, ended)?)
}

/// Writes the trials, and returns the time of the last event.
fn trials(file: &Path, plan: &ImportPlan, run: &RunWriter) -> Result<u64, ImportError> {
    let mut last = 0;
    let mut waiting: VecDeque<Receiver<Result<EndedTrial, RecordError>>> = VecDeque::new();
    let finish = |ended: Receiver<Result<EndedTrial, RecordError>>| {
        let mut ended = ended.recv().unwrap_or(Err(RecordError::WriterGone))?;
        index::add(&mut ended)
    };
    result_file::read(file, |number, entry: ResultEntry| {
        let changed = || ImportError::Form {
            path: file.to_owned(),
            reason: "it changed while it was read".to_owned(),
        };
        let slot = plan.slots.get(number).ok_or_else(changed)?;
        if outcome::is_not_run(&entry) {
            return Ok(());
        }
        let (writer, at, ended) = trial::write(run, plan, slot, number, &entry)?;
        last = last.max(at);
        let (tell, told) = mpsc::channel();
        // Many ends are synced together.
        writer.end_then(at, ended, move |result| drop(tell.send(result)));
        waiting.push_back(told);
        if waiting.len() >= WAITING
            && let Some(first) = waiting.pop_front()
        {
            finish(first)?;
        }
        Ok(())
    })?;
    for ended in waiting {
        finish(ended)?;
    }
    Ok(last)
}

/// The name of the run: NAME for `mcpchecker-NAME-out.json`, or else the file's name.
fn run_name(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy());
    let stem = stem.unwrap_or_default();
    let name = stem.strip_prefix("mcpchecker-");
    let name = name.and_then(|name| name.strip_suffix("-out"));
    name.filter(|name| !name.is_empty())
        .unwrap_or(&stem)
        .to_owned()
}

/// A time of the file. Go writes the year 1 for a time that was never set.
fn time(text: Option<&str>) -> Option<Timestamp> {
    let time: Timestamp = text?.parse().ok()?;
    (time >= Timestamp::UNIX_EPOCH).then_some(time)
}

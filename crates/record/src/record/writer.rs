//! Writes a run.
//!
//! A failed write is final for the run and all its trials: earlier data stays readable, nothing
//! more is written, and no unfinished trial looks finished.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{ConnectionId, Direction, EventKind, Frame, RunEnded, RunStarted, TrialStarted};
use crate::redact::Redactor;

use super::log::{EventLog, sync_folder};
use super::reader::RunReader;
use super::state::{RecordState, lock, make_folder};
use super::trial_writer::{TrialStarter, TrialWriter};
use super::unused::is_unused;
use super::{MAX_TRIAL, RUN, RecordError, SUMMARY};

#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The maximum time, by the events' clock, until written data is synced to the disk.
    pub sync_every: Duration,
    /// How long a trial's record may get, blobs included.
    pub max_trial: u64,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            sync_every: Duration::from_millis(100),
            max_trial: MAX_TRIAL,
        }
    }
}

/// Writes a run's own events, and starts the records of its trials.
#[derive(Debug)]
pub struct RunWriter {
    shared: Arc<RecordState>,
    log: EventLog,
}

impl RunWriter {
    /// Starts a run in a folder that holds none, or one that was killed before it had a plan or a
    /// trial. Its first event is at time zero.
    pub fn create(
        folder: &Path,
        redactor: Redactor,
        started: RunStarted,
    ) -> Result<Self, RecordError> {
        Self::create_with(folder, redactor, started, RecordOptions::default())
    }

    /// Like [`RunWriter::create`], with options.
    pub fn create_with(
        folder: &Path,
        redactor: Redactor,
        started: RunStarted,
        options: RecordOptions,
    ) -> Result<Self, RecordError> {
        make_folder(folder)?;
        let lock = lock(folder)?;
        let path = folder.join(RUN);
        if is_unused(folder)? {
            fs::remove_file(&path).map_err(RecordError::io("remove", &path))?;
        }
        if path.exists() {
            return Err(RecordError::HoldsARun {
                path: folder.to_owned(),
            });
        }
        let when = redactor.text(&started.started).into_owned();
        let mut run = Self {
            shared: RecordState::open(folder, redactor, options, lock, when)?,
            log: EventLog::create(path)?,
        };
        run.append(0, EventKind::RunStarted(started))?;
        run.sync()?;
        sync_folder(folder)?;
        Ok(run)
    }

    /// Resumes a run that was stopped or killed.
    ///
    /// Removes an incomplete last line and the files derived from the whole run. Unfinished trials
    /// stay as they are: another attempt gets another file. Times should continue from the run's
    /// last event.
    pub fn resume(
        folder: &Path,
        redactor: Redactor,
        options: RecordOptions,
    ) -> Result<Self, RecordError> {
        let run = RunReader::open(folder)?;
        let lock = lock(folder)?;
        let log = EventLog::resume(folder.join(RUN), run.events()?)?;
        let summary = folder.join(SUMMARY);
        match fs::remove_file(&summary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(RecordError::io("remove", &summary)(error));
            }
            _ => {}
        }
        let when = run.started().started.clone();
        let shared = RecordState::open(folder, redactor, options, lock, when)?;
        Ok(Self { shared, log })
    }

    /// Writes an event, and returns its number.
    pub fn append(&mut self, at: u64, what: EventKind) -> Result<u64, RecordError> {
        let what = self.shared.store(what, &self.shared.redactor)?.0;
        self.shared.append(&mut self.log, at, what)
    }

    /// Writes a message, in the most suitable form.
    pub fn append_frame(
        &mut self,
        at: u64,
        conn: ConnectionId,
        exchange: Option<u64>,
        direction: Direction,
        bytes: &[u8],
    ) -> Result<u64, RecordError> {
        let body = self.shared.body(bytes, &self.shared.redactor)?;
        let frame = Frame {
            conn,
            exchange,
            direction,
            body,
        };
        self.shared
            .append(&mut self.log, at, EventKind::Frame(frame))
    }

    /// Starts the record of a trial.
    pub fn trial(
        &self,
        at: u64,
        name: &str,
        started: TrialStarted,
    ) -> Result<TrialWriter, RecordError> {
        self.trials().start(at, name, started)
    }

    /// Starts the records of trials, also elsewhere.
    pub fn trials(&self) -> TrialStarter {
        TrialStarter {
            shared: self.shared.clone(),
        }
    }

    /// Waits until everything appended, also to trials, can be read.
    pub fn flush(&self) {
        self.shared.queue().flush();
    }

    /// Waits until everything appended is synced to the disk.
    pub fn sync(&mut self) -> Result<(), RecordError> {
        self.shared.sync(&self.log)
    }

    /// Ends the run. Fails if any write of the run or of one of its trials has failed.
    pub fn end(mut self, at: u64, ended: RunEnded) -> Result<(), RecordError> {
        self.append(at, EventKind::RunEnded(ended))?;
        self.sync()?;
        self.shared.keep(sync_folder(&self.shared.folder))
    }

    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// The redactor for everything written.
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }
}

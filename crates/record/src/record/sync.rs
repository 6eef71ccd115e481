//! The thread that syncs written data to the disk, for all trials of a run.
//!
//! The main type is [`Syncer`]. A trial waits only for its own end; a slow disk delays only this
//! thread.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::RecordError;
use super::blobs::BlobStore;
use super::log::sync_folder;
use super::queue::{EventFile, FollowUp, Queue, fail_on_panic};

/// How many files are synced at once. File systems commit concurrent syncs together.
const AT_ONCE: usize = 16;

/// The end of a trial, once its last line is written.
pub(super) struct TrialEnd {
    pub(super) file: Arc<EventFile>,
    /// The file's name after the trial's end.
    pub(super) name: PathBuf,
    /// Called when the trial has ended, or failed to.
    pub(super) done: Box<dyn FnOnce(Result<(), RecordError>) + Send>,
}

impl fmt::Debug for TrialEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrialEnd")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct SyncState {
    files: Vec<Arc<EventFile>>,
    ends: Vec<TrialEnd>,
    /// Whether the end of a trial is queued.
    hurried: bool,
    closed: bool,
}

/// What is to be synced.
#[derive(Debug)]
pub(super) struct Syncer {
    pub(super) queue: Arc<Queue>,
    state: Mutex<SyncState>,
    work: Condvar,
    trials: PathBuf,
    syncing_trials: SyncTurn,
    blobs: Arc<BlobStore>,
    failed: Arc<OnceLock<RecordError>>,
}

impl Syncer {
    pub(super) fn new(
        trials: PathBuf,
        blobs: Arc<BlobStore>,
        failed: Arc<OnceLock<RecordError>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::default(),
            state: Mutex::default(),
            work: Condvar::new(),
            trials,
            syncing_trials: SyncTurn::default(),
            blobs,
            failed,
        })
    }

    /// Requests a sync of a file and of all blobs so far.
    pub(super) fn ask(&self, file: Arc<EventFile>) {
        let mut state = self.lock();
        // A slow disk is asked once for a file, however often its turn came meanwhile.
        if !state.files.iter().any(|known| Arc::ptr_eq(known, &file)) {
            state.files.push(file);
            self.work.notify_one();
        }
    }

    /// Ends a trial whose lines are written.
    pub(super) fn end(&self, end: TrialEnd) {
        self.lock().ends.push(end);
        self.work.notify_one();
    }

    /// Writes and ends the trials whose ends are queued. So one thread does both, and no other has to wake up.
    pub(super) fn hurry(&self) {
        self.lock().hurried = true;
        self.work.notify_one();
    }

    fn run(&self) {
        let is_idle =
            |s: &mut SyncState| s.files.is_empty() && s.ends.is_empty() && !s.hurried && !s.closed;
        loop {
            let state = self.work.wait_while(self.lock(), is_idle);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            if state.closed && state.ends.is_empty() {
                return;
            }
            let is_hurried = std::mem::take(&mut state.hurried);
            let mut ends = std::mem::take(&mut state.ends);
            // Not all of them: an end that comes now waits for this round.
            let some = state.files.len().min(AT_ONCE);
            let mut files: Vec<Arc<EventFile>> = state.files.drain(..some).collect();
            drop(state);
            if is_hurried {
                self.queue.write_all(&self.failed, |file, next| match next {
                    FollowUp::Nothing => {}
                    FollowUp::Sync => files.push(file),
                    FollowUp::End(end) => ends.push(end),
                });
            }
            if !files.is_empty() || !ends.is_empty() {
                fail_on_panic(&self.failed, || self.round(files, ends));
            }
        }
    }

    fn round(&self, mut files: Vec<Arc<EventFile>>, ends: Vec<TrialEnd>) {
        files.extend(ends.iter().map(|end| end.file.clone()));
        let synced = match self.failed.get() {
            Some(error) => Err(error.clone()),
            None => self.sync(&files).and_then(|()| self.rename(&ends)),
        };
        let result = synced.map_err(|error| self.failed.get_or_init(|| error).clone());
        for end in ends {
            (end.done)(result.clone());
        }
    }

    fn sync(&self, files: &[Arc<EventFile>]) -> Result<(), RecordError> {
        // Blobs first: a durable event must not name a blob that is not.
        self.blobs.sync()?;
        in_parallel(files, |file| file.sync())
    }

    fn rename(&self, ends: &[TrialEnd]) -> Result<(), RecordError> {
        if ends.is_empty() {
            return Ok(());
        }
        for end in ends {
            let path = &end.file.path;
            fs::rename(path, &end.name).map_err(RecordError::io("rename", path))?;
        }
        self.syncing_trials.take(|| sync_folder(&self.trials))
    }

    fn lock(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many rounds run at once. On a slow disk, the end of a trial does not wait for an earlier round.
const ROUNDS: usize = 4;

/// The threads that sync. Dropping them ends the pending trials, then the threads.
#[derive(Debug)]
pub(super) struct SyncThreads {
    syncer: Arc<Syncer>,
    threads: Vec<JoinHandle<()>>,
}

impl SyncThreads {
    pub(super) fn start(folder: &Path, syncer: Arc<Syncer>) -> Result<Self, RecordError> {
        let mut threads = Vec::new();
        for _ in 0..ROUNDS {
            let theirs = syncer.clone();
            match Builder::new()
                .name("sync".to_owned())
                .spawn(move || theirs.run())
            {
                Ok(thread) => threads.push(thread),
                // One is enough.
                Err(_) if !threads.is_empty() => break,
                Err(error) => return Err(RecordError::io("start a thread to sync", folder)(error)),
            }
        }
        Ok(Self { syncer, threads })
    }

    pub(super) fn syncer(&self) -> &Syncer {
        &self.syncer
    }
}

impl Drop for SyncThreads {
    fn drop(&mut self) {
        self.syncer.lock().closed = true;
        self.syncer.work.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last owner of a record may be the end of a trial, on one of these threads.
            if thread.thread().id() != this {
                // If it panicked, the trials that it had to end have not ended.
                let _ = thread.join();
            }
        }
    }
}

/// Syncs one after another, until one fails. The system reports a failed write to one of those who sync, and the others
/// must not take the data for stored.
#[derive(Debug, Default)]
pub(super) struct SyncTurn(Mutex<Option<RecordError>>);

impl SyncTurn {
    /// Syncs; or returns the earlier error.
    pub(super) fn take(
        &self,
        sync: impl FnOnce() -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failed {
            Some(error) => Err(error.clone()),
            None => sync().inspect_err(|error| *failed = Some(error.clone())),
        }
    }
}

/// Runs blocking work on several items at once. Returns the first error.
pub(super) fn in_parallel<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), RecordError> + Sync,
) -> Result<(), RecordError> {
    let next = AtomicUsize::new(0);
    let failed = OnceLock::new();
    let help = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                failed.get_or_init(|| error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..items.len().min(AT_ONCE) {
            // Without more threads the work takes longer, but is done.
            let _ = Builder::new().spawn_scoped(scope, help);
        }
        help();
    });
    failed.into_inner().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_sync_no_other_succeeds() {
        let turn = SyncTurn::default();
        turn.take(|| Ok(())).unwrap();
        let failed = turn.take(|| Err(RecordError::WriterGone));
        assert!(matches!(failed, Err(RecordError::WriterGone)));
        // The system would report success.
        let later = turn.take(|| Ok(()));
        assert!(matches!(later, Err(RecordError::WriterGone)));
    }
}

//! The queue of a run's unwritten lines, and the thread that writes them.
//!
//! The main type is [`Queue`]. Appending copies a line and returns; the lines of a file are written
//! in order, many at once. The queue is bounded: appending to a full queue waits.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::RecordError;
use super::log::new_file;
use super::sync::{SyncTurn, Syncer, TrialEnd};

/// The number of queued bytes from which the queue has no room: callers that can wait do so before
/// they append.
const FULL: usize = 256 * 1024;

/// The number of queued bytes from which appending itself waits.
const MAX_QUEUED: usize = 2 * FULL;

/// How long the first line waits for others, to be written with them: the less is queued, the longer.
const LINGER: Duration = Duration::from_millis(10);
const SHORT_LINGER: Duration = Duration::from_millis(1);

/// The number of queued bytes up to which lines may wait long. Long lines are in memory twice while they wait.
const FEW: usize = 32 * 1024;

/// A file of events, as the threads of a record know it.
#[derive(Debug)]
pub(super) struct EventFile {
    pub(super) path: PathBuf,
    file: OnceLock<File>,
    syncing: SyncTurn,
}

impl EventFile {
    /// A file that is created with its first line. There must be none at this path.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: OnceLock::new(),
            syncing: SyncTurn::default(),
        }
    }

    pub(super) fn open(path: PathBuf, file: File) -> Self {
        Self {
            path,
            file: file.into(),
            syncing: SyncTurn::default(),
        }
    }

    /// Appends lines. Only one thread at a time does so.
    fn write(&self, lines: &[u8]) -> Result<(), RecordError> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut file = if let Some(file) = self.file.get() {
            file
        } else {
            let file = new_file(&self.path).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => RecordError::TrialExists {
                    path: self.path.clone(),
                },
                _ => RecordError::io("create", &self.path)(error),
            })?;
            self.file.get_or_init(|| file)
        };
        file.write_all(lines)
            .map_err(RecordError::io("write", &self.path))
    }

    pub(super) fn sync(&self) -> Result<(), RecordError> {
        self.syncing.take(|| {
            let synced = self.file.get().map_or(Ok(()), File::sync_data);
            synced.map_err(RecordError::io("sync", &self.path))
        })
    }
}

/// What to do after lines are written.
#[derive(Debug, Default)]
pub(super) enum FollowUp {
    #[default]
    Nothing,
    Sync,
    End(TrialEnd),
}

/// Lines of one file, to be written at once.
#[derive(Debug)]
struct LineBatch {
    file: Arc<EventFile>,
    lines: Vec<u8>,
    next: FollowUp,
}

/// Where a file's lines are in the queue, if it has some there.
#[derive(Debug)]
pub(super) struct QueueSlot {
    round: u64,
    index: usize,
}

impl Default for QueueSlot {
    fn default() -> Self {
        Self {
            round: u64::MAX,
            index: 0,
        }
    }
}

/// Whether the thread has to write the queued lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// There are none, or only few that callers write through.
    #[default]
    None,
    Soon,
    /// A caller waits for them.
    Now,
}

#[derive(Debug, Default)]
struct QueueState {
    batches: Vec<LineBatch>,
    /// The bytes of what is queued or being written.
    bytes: usize,
    /// The numbers of batch rounds that the thread has taken and written.
    taken: u64,
    written: u64,
    need: Need,
    /// Whether the thread waits for a line, and not only for some time.
    asleep: bool,
    closed: bool,
    /// The threads that wait for progress, and the tasks.
    waiting: usize,
    wakers: Vec<Waker>,
}

impl QueueState {
    /// Whether the thread may be writing lines that a file has queued.
    fn is_writing(&self, slot: &QueueSlot) -> bool {
        self.written < self.taken && self.written <= slot.round
    }
}

/// The queue of a run.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Held by the thread that writes: what was taken first is written first.
    writing: Mutex<()>,
    /// There is something to write.
    work: Condvar,
    progress: Condvar,
}

impl Queue {
    /// Appends a line. Waits only if the queue is more than full.
    pub(super) fn push(
        &self,
        file: &Arc<EventFile>,
        slot: &mut QueueSlot,
        line: &[u8],
        next: FollowUp,
    ) {
        self.add(file, slot, line, next, true);
    }

    /// Appends a line that the caller writes through. The thread does not wake up for it.
    pub(super) fn push_quietly(
        &self,
        file: &Arc<EventFile>,
        slot: &mut QueueSlot,
        line: &[u8],
        next: FollowUp,
    ) {
        let needs_thread = !matches!(next, FollowUp::Nothing);
        self.add(file, slot, line, next, needs_thread);
    }

    fn add(
        &self,
        file: &Arc<EventFile>,
        slot: &mut QueueSlot,
        line: &[u8],
        next: FollowUp,
        needs_thread: bool,
    ) {
        let mut state = self.wait_while(self.lock(), |state| state.bytes >= MAX_QUEUED);
        if slot.round != state.taken {
            *slot = QueueSlot {
                round: state.taken,
                index: state.batches.len(),
            };
            state.batches.push(LineBatch {
                file: file.clone(),
                lines: Vec::new(),
                next: FollowUp::Nothing,
            });
        }
        state.bytes += line.len();
        let batch = &mut state.batches[slot.index];
        batch.lines.extend_from_slice(line);
        if !matches!(next, FollowUp::Nothing) {
            batch.next = next;
        }
        let before = state.bytes - line.len();
        let passes = |limit: usize| before < limit && state.bytes >= limit;
        let wakes = (needs_thread && state.asleep)
            || state.need == Need::Now
            || passes(FEW)
            || state.bytes >= FULL;
        if needs_thread || wakes {
            state.need = state.need.max(Need::Soon);
        }
        // Otherwise the thread would wake up only to wait for the lock.
        drop(state);
        if wakes {
            self.work.notify_one();
        }
    }

    /// Waits until everything appended so far is written, or writing has failed.
    pub fn flush(&self) {
        let mut state = self.lock();
        let mut last = state.taken;
        if !state.batches.is_empty() {
            last += 1;
            state.need = Need::Now;
            self.work.notify_one();
        }
        drop(self.wait_while(state, |state| state.written < last));
    }

    /// Writes the queued lines of a file on this thread: they are in the file when it returns. Only the one
    /// who appends to the file may call it.
    pub(super) fn write_through(
        &self,
        file: &EventFile,
        slot: &QueueSlot,
        failed: &OnceLock<RecordError>,
    ) {
        // The thread may be writing earlier lines of the file, or take these meanwhile.
        let mut state = self.wait_while(self.lock(), |state| state.is_writing(slot));
        if slot.round != state.taken {
            return;
        }
        let lines = std::mem::take(&mut state.batches[slot.index].lines);
        drop(state);
        write_lines(file, &lines, failed);
        for waker in self.release(lines.len(), 0) {
            waker.wake();
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.lock().bytes < FULL
    }

    /// Waits until there is room.
    pub(super) fn wait_for_room(&self) {
        drop(self.wait_while(self.lock(), |state| state.bytes >= FULL));
    }

    /// Whether there is room; if not, the task is woken when there is.
    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.bytes < FULL {
            return Poll::Ready(());
        }
        let mut known = state.wakers.iter();
        if !known.any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Writes everything that is queued, on this thread. Calls `then` with what to do after the lines of a file.
    pub(super) fn write_all(
        &self,
        failed: &OnceLock<RecordError>,
        mut then: impl FnMut(Arc<EventFile>, FollowUp),
    ) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        state.need = Need::None;
        if state.batches.is_empty() {
            return;
        }
        state.taken += 1;
        let batches = std::mem::take(&mut state.batches);
        drop(state);
        let bytes = batches.iter().map(|batch| batch.lines.len()).sum();
        for LineBatch { file, lines, next } in batches {
            fail_on_panic(failed, || {
                write_lines(&file, &lines, failed);
                then(file, next);
            });
        }
        for waker in self.release(bytes, 1) {
            fail_on_panic(failed, || waker.wake());
        }
    }

    /// Waits until lines should be written. Returns `false` once the queue is closed and empty.
    fn wait_for_lines(&self) -> bool {
        let mut state = self.linger(self.lock());
        if state.need == Need::None && !state.closed {
            state.asleep = true;
            let is_idle = |state: &mut QueueState| state.need == Need::None && !state.closed;
            let woken = self.work.wait_while(state, is_idle);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.asleep = false;
            state = self.linger(state);
        }
        !state.batches.is_empty() || !state.closed
    }

    /// Waits for lines for some time, and for more of them if there are many. While lines come often, they need not
    /// wake the thread.
    fn linger<'a>(&self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        let may_linger = |bytes: usize| {
            move |state: &mut QueueState| {
                state.need < Need::Now && !state.closed && state.bytes < bytes
            }
        };
        let lingered = self.work.wait_timeout_while(state, LINGER, may_linger(FEW));
        let (state, result) = lingered.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            return state;
        }
        let lingered = self
            .work
            .wait_timeout_while(state, SHORT_LINGER, may_linger(FULL));
        lingered.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Makes room again, and notes how many rounds were written. Returns the tasks to wake.
    fn release(&self, bytes: usize, rounds: u64) -> Vec<Waker> {
        let mut state = self.lock();
        state.bytes -= bytes;
        state.written += rounds;
        let woken = if state.bytes < FULL {
            std::mem::take(&mut state.wakers)
        } else {
            Vec::new()
        };
        let is_awaited = state.waiting > 0;
        drop(state);
        // Each call asks the system, also if no thread waits.
        if is_awaited {
            self.progress.notify_all();
        }
        woken
    }

    /// Waits for progress as long as something holds.
    fn wait_while<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
        holds: impl Fn(&QueueState) -> bool,
    ) -> MutexGuard<'a, QueueState> {
        while holds(&state) {
            state.waiting += 1;
            let waited = self.progress.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that writes. Dropping it writes everything queued, then ends the thread.
#[derive(Debug)]
pub(super) struct WriterThread {
    pub(super) queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    /// Starts the thread. It stores the first failure in `failed`, and writes nothing after it.
    pub(super) fn start(
        folder: &Path,
        syncer: Arc<Syncer>,
        failed: Arc<OnceLock<RecordError>>,
    ) -> Result<Self, RecordError> {
        let queue = syncer.queue.clone();
        let theirs = queue.clone();
        let thread = Builder::new()
            .name("record".to_owned())
            .spawn(move || run(&theirs, &syncer, &failed))
            .map_err(RecordError::io("start a thread to write", folder))?;
        Ok(Self {
            queue,
            thread: Some(thread),
        })
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // If it panicked, what it had to write is lost, and its trial has not ended.
            let _ = thread.join();
        }
    }
}

fn run(queue: &Queue, syncer: &Syncer, failed: &OnceLock<RecordError>) {
    while queue.wait_for_lines() {
        queue.write_all(failed, |file, next| match next {
            FollowUp::Nothing => {}
            FollowUp::Sync => syncer.ask(file),
            FollowUp::End(end) => syncer.end(end),
        });
    }
}

/// Does a part of the work of a record's thread. If it panics, the record has failed, and the thread goes
/// on: whoever waits for it learns that.
pub(super) fn fail_on_panic(failed: &OnceLock<RecordError>, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        failed.get_or_init(|| RecordError::WriterGone);
    }
}

fn write_lines(file: &EventFile, lines: &[u8], failed: &OnceLock<RecordError>) {
    if failed.get().is_none()
        && let Err(error) = file.write(lines)
    {
        failed.get_or_init(|| error);
    }
}

#[cfg(test)]
mod tests;

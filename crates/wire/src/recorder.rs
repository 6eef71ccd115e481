//! Writes events into a record: numbered, timed and redacted.
//!
//! Its main type is [`Recorder`], a handle that all tasks of a trial share. It stores the first
//! failed write, and the owner of the trial checks it before reporting success. Async workers don't
//! wait for the disk: lines are queued, and large bodies are written by other threads.

mod tap;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use proctor_record::event::{
    Actor, ConnectionEnd, ConnectionId, EndedBy, EventKind, Finding, FindingKind, WireKind,
};
use proctor_record::fold::{self, FoldOptions, FoldedTrial, LiveFold};
use proctor_record::model::{MAX_REPORTED_TOKENS, Usage};
use proctor_record::record::{Blobs, Bodies, EventReader, QueueCapacity, RecordError, TrialWriter};
use proctor_record::redact::Redactor;
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use self::tap::ConnectionTap;
pub use self::tap::OversizedMessage;
use crate::worker;
use proctor_core::asks::{LoggedRequest, ModelRequestLog};

/// A handle to a trial's record, or to none.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Mutex<RecorderState>>,
    /// Locked before `inner`, from the number of a model request to its events, so that they are in
    /// order.
    asks: Arc<Mutex<ModelRequestLog>>,
    room: Option<QueueCapacity>,
    /// The owner of a record that is no trial's.
    owner: Option<UnboundedSender<EventKind>>,
    /// Whether a recording call returns only after its message is in the file.
    writes_through: bool,
    started: Instant,
    redactor: Redactor,
    /// The trial's folder, if it has one.
    trial_dir: Option<Arc<str>>,
}

struct RecorderState {
    trial: Option<TrialWriter>,
    /// The trial was taken back, so later events are lost.
    taken: bool,
    failed: Option<RecordError>,
    connections: u32,
    /// The connections of this record, for those that are still open when it ends.
    opened: Vec<Weak<ConnectionTap>>,
}

impl Recorder {
    /// Writes to a trial's record. Times count from `started`.
    pub fn new(trial: TrialWriter, started: Instant) -> Self {
        Self::with(Some(trial), started)
    }

    /// Creates a recorder that stores nothing.
    pub fn nothing() -> Self {
        Self::with(None, Instant::now())
    }

    /// Passes events on to the owner of a record that is no trial's. Connections are not recorded.
    pub fn passing_to(owner: UnboundedSender<EventKind>) -> Self {
        Self {
            owner: Some(owner),
            ..Self::nothing()
        }
    }

    fn with(trial: Option<TrialWriter>, started: Instant) -> Self {
        let redactor = trial.as_ref().map(|trial| trial.redactor().clone());
        Self {
            room: trial.as_ref().map(TrialWriter::room),
            owner: None,
            writes_through: false,
            inner: Arc::new(Mutex::new(RecorderState {
                trial,
                taken: false,
                failed: None,
                connections: 0,
                opened: Vec::new(),
            })),
            asks: Arc::default(),
            started,
            redactor: redactor.unwrap_or_default(),
            trial_dir: None,
        }
    }

    /// Sets the trial's folder, whose path does not count when requests are compared.
    #[must_use]
    pub fn in_folder(mut self, dir: &str) -> Self {
        self.trial_dir = Some(dir.into());
        self
    }

    /// The trial's folder, if it has one.
    pub fn trial_dir(&self) -> Option<&str> {
        self.trial_dir.as_deref()
    }

    /// Writes each message to the file before the recording call returns. Proxies promise that.
    #[must_use]
    pub(crate) fn writing_through(mut self) -> Self {
        self.writes_through = true;
        self
    }

    /// Redacts these secrets in shown texts if nothing is recorded. A record has its own redactor.
    #[must_use]
    pub fn redacting(mut self, redactor: &Redactor) -> Self {
        self.redactor = redactor.clone();
        self
    }

    /// Writes an event. A large one is redacted without blocking other writers.
    pub fn record(&self, what: EventKind) {
        self.record_all(vec![what]);
    }

    /// Writes events as one block, without events of others between them.
    fn record_all(&self, mut events: Vec<EventKind>) {
        if let Some(owner) = &self.owner {
            // Without an owner there is no record to write to.
            for event in events {
                let _ = owner.send(event);
            }
            return;
        }
        self.wait_for_room();
        let Some(bodies) = self.lock().bodies(0) else {
            return;
        };
        let may_block = |bodies: &Bodies| events.iter_mut().any(|what| bodies.may_block(what));
        if bodies.as_ref().is_ok_and(may_block) {
            worker::blocking(|| self.append(&bodies, events));
        } else {
            let bytes = events.iter_mut().map(EventKind::text_bytes).sum();
            worker::on_body(bytes, || self.append(&bodies, events));
        }
    }

    fn append(&self, bodies: &Result<Bodies, RecordError>, events: Vec<EventKind>) {
        let keep = |what: EventKind| bodies.as_ref().map_err(Clone::clone)?.keep_event(what);
        let kept: Vec<_> = events.into_iter().map(keep).collect();
        let at = self.at();
        self.lock().write(|trial| {
            let mut written = kept.into_iter().map(|kept| trial.append_kept(at, kept?));
            written.try_for_each(|one| one.map(drop))
        });
    }

    /// Waits until the queue of the record has room. Async callers call it before they read more.
    pub async fn room(&self) {
        if let Some(room) = &self.room {
            std::future::poll_fn(|context| room.poll(context)).await;
        }
    }

    /// Waits for room in synchronous code.
    fn wait_for_room(&self) {
        if let Some(room) = &self.room
            && !room.is_there()
        {
            worker::blocking(|| room.wait());
        }
    }

    /// Returns the number of bytes written so far, an upper bound for anything that is read back.
    pub fn bytes(&self) -> usize {
        let bytes = self.lock().trial.as_ref().map_or(0, TrialWriter::bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Whether reading what was written so far takes only a moment.
    pub fn is_short(&self) -> bool {
        let inner = self.lock();
        inner.trial.as_ref().is_none_or(TrialWriter::is_short)
    }

    /// Returns the microseconds since the start of the run.
    pub fn at(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Takes the first failed write, if there is one.
    pub fn take_error(&self) -> Option<RecordError> {
        self.lock().failed.take()
    }

    /// Reads the events so far as checks read them; `None` without a record. Blocks.
    pub fn fold(&self, options: &FoldOptions) -> Result<Option<FoldedTrial>, RecordError> {
        let Some((events, blobs)) = self.written()? else {
            return Ok(None);
        };
        fold::fold(events, &blobs, options).map(Some)
    }

    /// Reads the events so far and the location of their large bodies; `None` without a record.
    /// Blocks.
    pub fn written(&self) -> Result<Option<(EventReader, Blobs)>, RecordError> {
        // Without the lock, so that others can write meanwhile.
        let written = self.lock().trial.as_ref().map(TrialWriter::written);
        let Some(written) = written else {
            return Ok(None);
        };
        let blobs = written.blobs();
        Ok(Some((written.open()?, blobs)))
    }

    /// Lets a fold follow what was written since; `false` without a record. Blocks.
    pub fn follow(&self, live: &mut LiveFold) -> Result<bool, RecordError> {
        let mut inner = self.lock();
        let written = inner.trial.as_mut();
        let written = written.map(|trial| trial.written_since(live.position()));
        // Without the lock, so that others can write meanwhile.
        drop(inner);
        let Some(written) = written else {
            return Ok(false);
        };
        let blobs = written.blobs();
        live.follow(written.open()?, &blobs)?;
        Ok(true)
    }

    /// Takes the trial back to end it, after the end of each connection. Later events are lost.
    pub fn take_trial(&self) -> Option<TrialWriter> {
        let opened = std::mem::take(&mut self.lock().opened);
        for tap in opened.iter().filter_map(Weak::upgrade) {
            // Its owner was dropped, for example at a timeout while the server was starting.
            let end = ConnectionEnd::by(EndedBy::Proctor);
            let reason = "the trial ended before the connection was closed".to_owned();
            tap.ended(reason, None, Some(end));
        }
        let mut inner = self.lock();
        inner.taken = true;
        inner.trial.take()
    }

    /// Returns the reported token usage; unknown, with a finding, if it is absurdly high.
    pub fn believed_usage(&self, who: &str, usage: Usage) -> Usage {
        usage.believable().unwrap_or_else(|tokens| {
            self.record(EventKind::Finding(Finding {
                conn: ConnectionId::NONE,
                kind: FindingKind::AbsurdUsage,
                detail: format!(
                    "`{who}` reported {tokens} tokens, more than {MAX_REPORTED_TOKENS}: its usage \
                     counts as unknown"
                ),
                count: 1,
            }));
            Usage::default()
        })
    }

    /// Returns the redactor for truncated or shown texts.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the start of a text without secrets, for messages.
    pub fn shown(&self, bytes: &[u8], limit: usize) -> String {
        self.redactor.head(bytes, limit)
    }

    /// Opens a connection in the record.
    pub(crate) fn open(
        &self,
        server: &str,
        actor: Actor,
        transport: WireKind,
        target: &str,
    ) -> Arc<ConnectionTap> {
        ConnectionTap::open(self, server, actor, transport, target, None)
    }

    /// Writes a model request with its bodies as one block, and returns its number and its digest.
    pub fn record_ask(
        &self,
        next: impl FnOnce(&mut ModelRequestLog) -> LoggedRequest,
    ) -> (u64, String) {
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        let logged = next(&mut asks);
        self.record_all(logged.events);
        (logged.ask, logged.digest)
    }

    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        // A panic elsewhere leaves the record as it is; later events still belong to it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderState {
    /// Returns the storage for a body of this size; `None` without a record.
    fn bodies(&self, bytes: usize) -> Option<Result<Bodies, RecordError>> {
        let trial = self.trial.as_ref().filter(|_| self.failed.is_none())?;
        Some(trial.bodies(bytes))
    }

    fn write(&mut self, run: impl FnOnce(&mut TrialWriter) -> Result<(), RecordError>) {
        if self.failed.is_some() {
            return;
        }
        if let Some(trial) = &mut self.trial
            && let Err(error) = run(trial)
        {
            self.failed = Some(error);
        }
    }
}

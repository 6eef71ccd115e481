//! Where what happens goes: numbered, timed, redacted, written.
//!
//! Its main type is [`Recorder`], a handle that every task of a trial shares. A write that fails is
//! remembered: whoever owns the trial asks before calling it a success.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use proctor_core::event::{
    Actor, Body, ConnectionClosed, ConnectionId, ConnectionOpened, Direction, Finding, FindingKind,
    Http, What, Wire,
};
use proctor_core::record::{RecordError, TrialWriter};
use proctor_core::redact::Redactor;

/// How many findings of one sort are written one by one; the rest are counted.
const WRITTEN_FINDINGS: u64 = 20;

/// How much of a finding's detail is kept.
const DETAIL: usize = 2_000;

/// A handle to a trial's record, or to nothing.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Mutex<Inner>>,
    started: Instant,
    redactor: Redactor,
}

struct Inner {
    trial: Option<TrialWriter>,
    failed: Option<RecordError>,
    connections: u32,
}

impl Recorder {
    /// Writes to a trial's record. Times count from `started`.
    pub fn new(trial: TrialWriter, started: Instant) -> Self {
        Self::with(Some(trial), started)
    }

    /// Keeps nothing.
    pub fn nothing() -> Self {
        Self::with(None, Instant::now())
    }

    fn with(trial: Option<TrialWriter>, started: Instant) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                trial,
                failed: None,
                connections: 0,
            })),
            started,
            redactor: Redactor::default(),
        }
    }

    /// Knows these secrets where a text is cut. The record itself knows its own.
    #[must_use]
    pub fn redacting(mut self, redactor: &Redactor) -> Self {
        self.redactor = redactor.clone();
        self
    }

    /// Writes an event.
    pub fn record(&self, what: What) {
        let at = self.at();
        self.write(|trial| trial.append(at, what).map(drop));
    }

    /// Microseconds since the run started.
    pub fn at(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The first write that failed, if one did. It is handed out once.
    pub fn take_error(&self) -> Option<RecordError> {
        self.lock().failed.take()
    }

    /// Takes the trial back, to end it. What is recorded later is lost.
    pub fn take_trial(&self) -> Option<TrialWriter> {
        self.lock().trial.take()
    }

    /// Opens a connection in the record.
    pub(crate) fn open(&self, server: &str, actor: Actor, transport: Wire, target: &str) -> Tap {
        let conn = {
            let mut inner = self.lock();
            inner.connections += 1;
            ConnectionId(inner.connections)
        };
        self.record(What::ConnectionOpened(ConnectionOpened {
            conn,
            server: server.to_owned(),
            actor,
            transport,
            target: target.to_owned(),
        }));
        Tap {
            recorder: self.clone(),
            conn,
            findings: Arc::default(),
            closed: Arc::default(),
        }
    }

    fn write(&self, run: impl FnOnce(&mut TrialWriter) -> Result<(), RecordError>) {
        let mut inner = self.lock();
        if inner.failed.is_some() {
            return;
        }
        if let Some(trial) = &mut inner.trial
            && let Err(error) = run(trial)
        {
            inner.failed = Some(error);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere leaves the record as it is; what comes later still belongs to it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to one connection of a record.
#[derive(Clone)]
pub(crate) struct Tap {
    recorder: Recorder,
    conn: ConnectionId,
    closed: Arc<AtomicBool>,
    findings: Arc<Mutex<Vec<(FindingKind, String, u64)>>>,
}

impl Tap {
    /// Writes a message, exactly.
    pub(crate) fn frame(&self, exchange: Option<u64>, direction: Direction, bytes: &[u8]) {
        let at = self.recorder.at();
        self.recorder.write(|trial| {
            trial
                .append_frame(at, self.conn, exchange, direction, bytes)
                .map(drop)
        });
    }

    /// Writes that a message was too large to be kept.
    pub(crate) fn cut_frame(&self, exchange: Option<u64>, direction: Direction, cut: &Oversized) {
        self.recorder
            .record(What::Frame(proctor_core::event::Frame {
                conn: self.conn,
                exchange,
                direction,
                body: Body::Cut {
                    bytes: cut.bytes,
                    sha256: cut.sha256.clone(),
                },
            }));
    }

    /// Writes the head of an HTTP request or response.
    pub(crate) fn http(
        &self,
        exchange: u64,
        direction: Direction,
        line: String,
        headers: &reqwest::header::HeaderMap,
    ) {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            all.entry(name.as_str().to_owned())
                .and_modify(|known| *known = format!("{known}, {value}"))
                .or_insert_with(|| value.into_owned());
        }
        let headers = all;
        self.recorder.record(What::Http(Http {
            conn: self.conn,
            exchange,
            direction,
            line,
            headers,
        }));
    }

    /// The start of what a server said, to be shown.
    pub(crate) fn head(&self, bytes: &[u8], limit: usize) -> String {
        self.recorder.redactor.head(bytes, limit)
    }

    /// Notes that something is not as it should be. Many of one sort are counted, not written.
    pub(crate) fn finding(&self, kind: FindingKind, detail: impl Into<String>) {
        // A server chooses what is in it, and how long that is.
        let detail = self.head(detail.into().as_bytes(), DETAIL);
        let count = {
            let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
            let known = findings.iter_mut().find(|(known, ..)| *known == kind);
            if let Some((_, last, count)) = known {
                *count += 1;
                last.clone_from(&detail);
                *count
            } else {
                findings.push((kind, detail.clone(), 1));
                1
            }
        };
        if count <= WRITTEN_FINDINGS {
            self.write_finding(kind, detail, 1);
        }
    }

    fn write_finding(&self, kind: FindingKind, detail: String, count: u64) {
        self.recorder.record(What::Finding(Finding {
            conn: self.conn,
            kind,
            detail,
            count,
        }));
    }

    /// How many findings of each sort there were.
    pub(crate) fn findings(&self) -> Vec<(FindingKind, String, u64)> {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.clone()
    }

    /// Writes that the connection ended, after the findings that were only counted.
    pub(crate) fn close(&self, reason: String, stderr: Option<String>) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        for (kind, detail, count) in self.findings() {
            if count > WRITTEN_FINDINGS {
                self.write_finding(kind, detail, count - WRITTEN_FINDINGS);
            }
        }
        self.recorder
            .record(What::ConnectionClosed(ConnectionClosed {
                conn: self.conn,
                reason,
                stderr,
            }));
    }
}

/// A message that was too large to be taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Oversized {
    /// Its length.
    pub(crate) bytes: u64,
    /// The SHA-256 of all of it.
    pub(crate) sha256: String,
    /// How it starts.
    pub(crate) head: Vec<u8>,
}

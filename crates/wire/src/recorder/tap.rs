//! One connection of a record.
//!
//! Its main type is [`ConnectionTap`]. A connection that several trials share has one tap in the
//! record of each trial, and its own tap, the home of the others. Events that are too late for a
//! trial's record go to the home, so nothing that was sent is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proctor_record::event::{
    Actor, BLANK_LINE, Body, ConnectionClosed, ConnectionEnd, ConnectionId, ConnectionOpened,
    Direction, EventKind, Finding, FindingKind, Frame, HttpFailure, HttpHead, WireKind,
};
use proctor_record::record::{Bodies, MAX_INLINE, RecordError, TrialWriter};
use proctor_record::redact::Redactor;

use super::{Recorder, RecorderState};
use crate::worker;

/// How many findings of one kind are written one by one; the rest are only counted.
const WRITTEN_FINDINGS: u64 = 20;

/// The maximum recorded length of a body that is not a message.
const ASIDE: usize = 500;

/// The maximum length of a finding's detail.
const DETAIL: usize = 2_000;

/// A handle to one connection of a record. The last drop ends the connection in the record, if it
/// has not ended before.
pub(crate) struct ConnectionTap {
    recorder: Recorder,
    opened: ConnectionOpened,
    /// The connection's own tap, if this is the tap of a share.
    home: Option<Arc<ConnectionTap>>,
    /// Changed only while the record is locked, so that no event follows the end.
    closed: AtomicBool,
    findings: Mutex<Vec<(FindingKind, String, u64)>>,
}

impl ConnectionTap {
    pub(super) fn open(
        recorder: &Recorder,
        server: &str,
        actor: Actor,
        transport: WireKind,
        target: &str,
        home: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let mut inner = recorder.lock();
        inner.connections += 1;
        let opened = ConnectionOpened {
            conn: ConnectionId(inner.connections),
            server: server.to_owned(),
            actor,
            transport,
            target: target.to_owned(),
        };
        let event = EventKind::ConnectionOpened(opened.clone());
        inner.write(|trial| trial.append(recorder.at(), event).map(drop));
        let tap = Arc::new(Self {
            recorder: recorder.clone(),
            opened,
            home,
            closed: AtomicBool::new(false),
            findings: Mutex::default(),
        });
        inner.opened.retain(|known| known.strong_count() > 0);
        inner.opened.push(Arc::downgrade(&tap));
        tap
    }

    /// Opens the same connection in another record.
    pub(crate) fn attach(self: &Arc<Self>, recorder: &Recorder, actor: Actor) -> Arc<Self> {
        let ConnectionOpened {
            server,
            transport,
            target,
            ..
        } = &self.opened;
        let home = self.home.as_ref().unwrap_or(self).clone();
        Self::open(recorder, server, actor, *transport, target, Some(home))
    }

    /// Writes a message byte for byte. A large one is redacted without blocking other writers.
    pub(crate) fn frame(&self, exchange: Option<u64>, direction: Direction, bytes: &[u8]) {
        self.recorder.wait_for_room();
        if bytes.len() <= MAX_INLINE / 2 {
            return self
                .write(|at, conn, trial| trial.append_frame(at, conn, exchange, direction, bytes));
        }
        let Some(bodies) = self.bodies(bytes.len()) else {
            return;
        };
        let kept = worker::blocking(|| bodies.and_then(|bodies| bodies.keep(bytes)));
        self.write(|at, conn, trial| {
            let frame = Frame {
                conn,
                exchange,
                direction,
                body: kept?,
            };
            trial.append_kept_frame(at, frame)
        });
    }

    /// Waits until the queue of the record has room.
    pub(crate) async fn room(&self) {
        self.recorder.room().await;
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the storage for a message of this size; `None` without a record.
    fn bodies(&self, bytes: usize) -> Option<Result<Bodies, RecordError>> {
        let inner = self.recorder.lock();
        if let Some(home) = self.home_of_the_late(&inner) {
            drop(inner);
            return home.bodies(bytes);
        }
        inner.bodies(bytes)
    }

    /// Writes the head of a message that exceeds the size limit.
    pub(crate) fn cut_frame(
        &self,
        exchange: Option<u64>,
        direction: Direction,
        cut: &OversizedMessage,
    ) {
        self.record(|conn| {
            EventKind::Frame(Frame {
                conn,
                exchange,
                direction,
                body: Body::Cut {
                    bytes: cut.bytes,
                    sha256: cut.sha256.clone(),
                },
            })
        });
    }

    /// Writes the head of an HTTP request or response. A proxy writes it through with the message that follows.
    pub(crate) fn head_of_message(
        &self,
        exchange: u64,
        direction: Direction,
        line: String,
        headers: &reqwest::header::HeaderMap,
    ) {
        let head = |conn| http_head(conn, exchange, direction, line, headers);
        self.write_soon(|at, conn, trial| trial.append(at, head(conn)));
    }

    /// Writes the head of an HTTP request or response.
    pub(crate) fn http(
        &self,
        exchange: u64,
        direction: Direction,
        line: String,
        headers: &reqwest::header::HeaderMap,
    ) {
        self.record(|conn| http_head(conn, exchange, direction, line, headers));
    }

    /// Writes why an HTTP exchange ended early.
    pub(crate) fn http_failed(&self, exchange: u64, line: String, failure: HttpFailure) {
        self.record(|conn| {
            EventKind::Http(HttpHead {
                conn,
                exchange,
                direction: Direction::ToClient,
                line,
                headers: BTreeMap::new(),
                failure: Some(failure),
            })
        });
    }

    /// Returns the redactor for truncated or shown texts.
    pub(crate) fn redactor(&self) -> &Redactor {
        self.recorder.redactor()
    }

    /// Writes the start of an HTTP body that is not a message, so that it is not parsed as one.
    pub(crate) fn aside(
        &self,
        exchange: u64,
        direction: Direction,
        what: &str,
        said: &Result<Vec<u8>, OversizedMessage>,
    ) {
        let line = self.aside_line(what, said);
        self.http(
            exchange,
            direction,
            line,
            &reqwest::header::HeaderMap::new(),
        );
    }

    /// Describes a body: what it is, its length and its start.
    pub(crate) fn aside_line(
        &self,
        what: &str,
        said: &Result<Vec<u8>, OversizedMessage>,
    ) -> String {
        let (bytes, length) = match said {
            Ok(bytes) => (bytes, bytes.len() as u64),
            Err(cut) => (&cut.head, cut.bytes),
        };
        match length {
            0 => what.to_owned(),
            _ => format!("{what} ({length} bytes): {}", self.head(bytes, ASIDE)),
        }
    }

    /// Returns the start of a server's text without secrets, for messages.
    pub(crate) fn head(&self, bytes: &[u8], limit: usize) -> String {
        self.recorder.redactor.head(bytes, limit)
    }

    /// Adds a finding. After the first ones of a kind, they are only counted.
    pub(crate) fn finding(&self, kind: FindingKind, detail: impl Into<String>) {
        // The server controls its content and length.
        let detail = self.head(detail.into().as_bytes(), DETAIL);
        let mut findings = self.lock_findings();
        let inner = self.recorder.lock();
        let late = self.home_of_the_late(&inner);
        // Both taps may write to the same record.
        drop(inner);
        if let Some(home) = late {
            drop(findings);
            return home.finding(kind, detail);
        }
        let known = findings.iter_mut().find(|(known, ..)| *known == kind);
        let count = if let Some((_, first, count)) = known {
            *count += 1;
            if first == BLANK_LINE {
                first.clone_from(&detail);
            }
            *count
        } else {
            findings.push((kind, detail.clone(), 1));
            1
        };
        if count <= WRITTEN_FINDINGS {
            self.record(|conn| finding(conn, kind, detail, 1));
        }
    }

    /// Returns the findings, each kind with its first example and its count.
    pub(crate) fn findings(&self) -> Vec<(FindingKind, String, u64)> {
        self.lock_findings().clone()
    }

    /// Writes the end of a connection, with only a description.
    pub(crate) fn close(&self, reason: String, stderr: Option<String>) {
        self.ended(reason, stderr, None);
    }

    /// Writes the end of the connection, after the findings that were only counted.
    pub(crate) fn ended(&self, reason: String, stderr: Option<String>, end: Option<ConnectionEnd>) {
        // Held to the end, so that no finding is counted that will not be written.
        let findings = self.lock_findings();
        let mut inner = self.recorder.lock();
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let conn = self.opened.conn;
        let counted = findings
            .iter()
            .filter(|(.., count)| *count > WRITTEN_FINDINGS);
        let counted = counted.map(|(kind, detail, count)| {
            finding(conn, *kind, detail.clone(), count - WRITTEN_FINDINGS)
        });
        let closed = EventKind::ConnectionClosed(ConnectionClosed {
            conn,
            reason,
            stderr,
            end,
        });
        for event in counted.chain([closed]) {
            let at = self.recorder.at();
            inner.write(|trial| trial.append(at, event).map(drop));
        }
    }

    fn record(&self, what: impl FnOnce(ConnectionId) -> EventKind) {
        self.write(|at, conn, trial| trial.append(at, what(conn)));
    }

    /// Writes to this record; or, if it has ended, to the connection's own.
    fn write(
        &self,
        run: impl FnOnce(u64, ConnectionId, &mut TrialWriter) -> Result<u64, RecordError>,
    ) {
        self.write_with(self.recorder.writes_through, run);
    }

    /// The same, without writing through.
    fn write_soon(
        &self,
        run: impl FnOnce(u64, ConnectionId, &mut TrialWriter) -> Result<u64, RecordError>,
    ) {
        self.write_with(false, run);
    }

    fn write_with(
        &self,
        writes_through: bool,
        run: impl FnOnce(u64, ConnectionId, &mut TrialWriter) -> Result<u64, RecordError>,
    ) {
        let mut inner = self.recorder.lock();
        if let Some(home) = self.home_of_the_late(&inner) {
            drop(inner);
            return home.write(run);
        }
        let (at, conn) = (self.recorder.at(), self.opened.conn);
        inner.write(|trial| {
            if writes_through {
                trial.write_through(|trial| run(at, conn, trial))
            } else {
                run(at, conn, trial).map(drop)
            }
        });
    }

    /// Returns the tap for events that are too late for this record. The connection's own record
    /// always accepts them.
    fn home_of_the_late(&self, inner: &RecorderState) -> Option<&Arc<Self>> {
        let is_late = inner.taken || self.closed.load(Ordering::Relaxed);
        self.home.as_ref().filter(|_| is_late)
    }

    fn lock_findings(&self) -> MutexGuard<'_, Vec<(FindingKind, String, u64)>> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn http_head(
    conn: ConnectionId,
    exchange: u64,
    direction: Direction,
    line: String,
    headers: &reqwest::header::HeaderMap,
) -> EventKind {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        all.entry(name.as_str().to_owned())
            .and_modify(|known| *known = format!("{known}, {value}"))
            .or_insert_with(|| value.into_owned());
    }
    EventKind::Http(HttpHead {
        conn,
        exchange,
        direction,
        line,
        headers: all,
        failure: None,
    })
}

fn finding(conn: ConnectionId, kind: FindingKind, detail: String, count: u64) -> EventKind {
    EventKind::Finding(Finding {
        conn,
        kind,
        detail,
        count,
    })
}

impl Drop for ConnectionTap {
    fn drop(&mut self) {
        // The owner dropped the connection without recording how it ended.
        self.close("the connection was dropped".to_owned(), None);
    }
}

/// A message that exceeds the size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OversizedMessage {
    pub bytes: u64,
    /// The SHA-256 of the whole message.
    pub sha256: String,
    pub(crate) head: Vec<u8>,
}

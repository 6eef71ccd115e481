//! Writes the record of one trial.
//!
//! The main type is [`TrialWriter`]. What it writes is redacted first, and large bodies become blobs. The trial has ended
//! when its file is synced and renamed.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};

use crate::event::{Body, ConnectionId, Direction, EventKind, Frame, TrialEnded, TrialStarted};
use crate::redact::Redactor;

use super::blobs::{Blobs, hash};
use super::events::{FileDigest, Position};
use super::index::TrialBegan;
use super::log::EventLog;
use super::name::trial_stem;
use super::queue::{FollowUp, Queue};
use super::state::{RecordState, blob_bytes};
use super::sync::TrialEnd;
use super::written::{EventsSince, LatestEvents, WrittenEvents, WrittenSince};
use super::{ENDED, MAX_FRAME, MAX_INLINE, PART, RecordError, TRIALS};

/// Starts the records of a run's trials.
#[derive(Debug, Clone)]
pub struct TrialStarter {
    pub(super) shared: Arc<RecordState>,
}

/// Writes one trial. If it is dropped before [`TrialWriter::end`], the trial has not ended.
#[derive(Debug)]
pub struct TrialWriter {
    shared: Arc<RecordState>,
    log: EventLog,
    stem: String,
    /// The bytes of the blobs that this trial refers to.
    blob_bytes: u64,
    /// Redacts the secrets of the run and those learned in this trial.
    redactor: Redactor,
    is_ending: bool,
}

/// A trial that has ended. [`crate::index::add`] writes its line in the index.
#[derive(Debug)]
pub struct EndedTrial {
    shared: Arc<RecordState>,
    file: String,
    /// All lines of its file, if they are few.
    lines: Option<Vec<u8>>,
    /// The last of its events, if they are few.
    latest: Option<LatestEvents>,
}

impl EndedTrial {
    pub(crate) fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Whether [`crate::index::add`] needs only a moment.
    pub fn is_short(&self) -> bool {
        self.lines.is_some()
    }

    /// Its events from a position on, where their large bodies are, and the digest of all of them, without opening its
    /// file; `None` if it is long.
    pub(crate) fn take_events(
        &mut self,
        from: Position,
    ) -> Option<(EventsSince, Blobs, FileDigest)> {
        let path = self.shared.folder.join(TRIALS).join(&self.file);
        let lines = self.lines.take()?;
        let digest = FileDigest {
            bytes: lines.len() as u64,
            sha256: hash(&lines),
        };
        let latest = self.latest.take().and_then(|mut latest| latest.take(from));
        let events = match latest {
            Some(latest) => EventsSince::of_latest(latest),
            None => EventsSince::of_lines(&path, lines, from),
        };
        Some((events, self.shared.blobs(), digest))
    }

    /// The start of its run by the wall clock.
    pub(crate) fn run(&self) -> &str {
        &self.shared.started
    }

    /// Its file under `trials/`.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn append_to_index(&self, line: &impl serde::Serialize) -> Result<(), RecordError> {
        self.shared.keep(self.shared.index.append(line))
    }
}

/// Redacts and stores the large bodies of a trial.
#[derive(Debug, Clone)]
pub struct Bodies {
    shared: Arc<RecordState>,
    redactor: Redactor,
}

/// A redacted event whose large bodies are stored.
#[derive(Debug)]
pub struct RedactedEvent {
    what: EventKind,
    blob_bytes: u64,
}

impl Bodies {
    /// Redacts and stores the bytes.
    pub fn keep(&self, bytes: &[u8]) -> Result<Body, RecordError> {
        self.shared.body(bytes, &self.redactor)
    }

    /// Redacts an event, and stores its large bodies.
    pub fn keep_event(&self, what: EventKind) -> Result<RedactedEvent, RecordError> {
        let (what, blob_bytes) = self.shared.store(what, &self.redactor)?;
        Ok(RedactedEvent { what, blob_bytes })
    }

    /// Whether storing this event may write to the disk.
    pub fn may_block(&self, what: &mut EventKind) -> bool {
        // Redaction can make a body longer, though not by much.
        let is_long = |body: &mut Body| match body {
            Body::Text(text) | Body::Base64(text) => text.len() > MAX_INLINE / 2,
            Body::Blob { .. } | Body::Cut { .. } => false,
        };
        let is_shared = matches!(
            what,
            EventKind::ToolsOffered { .. } | EventKind::ServerSeen(_)
        );
        // What many trials share is stored once.
        let is_new = |body: &mut Body| match body {
            Body::Text(text) => self.shared.is_new(text),
            Body::Base64(_) | Body::Blob { .. } | Body::Cut { .. } => true,
        };
        is_shared && what.bodies().into_iter().any(is_new) || what.bodies().into_iter().any(is_long)
    }
}

/// The room in a run's queue. Appending to a full queue may block, so callers that must not block
/// wait for room first.
#[derive(Debug, Clone)]
pub struct QueueCapacity(Arc<Queue>);

impl QueueCapacity {
    /// Whether there is room.
    pub fn is_there(&self) -> bool {
        self.0.has_room()
    }

    /// Blocks until there is room.
    pub fn wait(&self) {
        self.0.wait_for_room();
    }

    /// Whether there is room; if not, the task is woken when there is.
    pub fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.0.poll_room(context)
    }
}

impl TrialStarter {
    /// Starts the record of a trial.
    pub fn start(
        &self,
        at: u64,
        name: &str,
        started: TrialStarted,
    ) -> Result<TrialWriter, RecordError> {
        let shared = &self.shared;
        shared.check()?;
        let started = shared.redactor.trial_started(started);
        let stem = format!(
            "{}.{}",
            trial_stem(&shared.redactor.text(name)),
            started.attempt
        );
        let trials = shared.folder.join(TRIALS);
        let path = trials.join(format!("{stem}{PART}"));
        let ended = trials.join(format!("{stem}{ENDED}"));
        if let Some(path) = [&path, &ended].into_iter().find(|path| path.exists()) {
            return Err(RecordError::TrialExists { path: path.clone() });
        }
        // The file is created with its first line, by the thread that writes it.
        let log = EventLog::begin(path, at);
        shared.keep(shared.index.began(
            shared.queue(),
            &TrialBegan {
                file: format!("{stem}{ENDED}"),
                trial: started.clone(),
                at,
            },
        ))?;
        let mut trial = TrialWriter {
            shared: shared.clone(),
            log,
            stem,
            blob_bytes: 0,
            redactor: shared.redactor.scoped(),
            is_ending: false,
        };
        shared.append(&mut trial.log, at, EventKind::TrialStarted(started))?;
        Ok(trial)
    }

    /// Whether to start a trial takes only a moment.
    pub fn has_room(&self) -> bool {
        self.shared.queue().has_room()
    }

    /// The folder of the run.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }
}

impl TrialWriter {
    /// Writes an event, and returns its number. Fails if the record would become too large; the
    /// trial can still be ended.
    ///
    /// A frame that the caller had to cut is written with [`Body::Cut`](crate::event::Body::Cut).
    pub fn append(&mut self, at: u64, what: EventKind) -> Result<u64, RecordError> {
        let (what, blob_bytes) = self.shared.store(what, &self.redactor)?;
        self.write(at, what, blob_bytes)
    }

    /// Writes an event that [`Bodies`] has stored, and returns its number.
    pub fn append_kept(&mut self, at: u64, kept: RedactedEvent) -> Result<u64, RecordError> {
        self.write(at, kept.what, kept.blob_bytes)
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
        // Checked first, so that a rejected message leaves no blob.
        if bytes.len() <= MAX_FRAME {
            self.check_room(bytes.len() as u64)?;
        }
        let body = self.shared.body(bytes, &self.redactor)?;
        let blob_bytes = blob_bytes(&body);
        let frame = Frame {
            conn,
            exchange,
            direction,
            body,
        };
        self.write(at, EventKind::Frame(frame), blob_bytes)
    }

    /// A store for a body of this many bytes, which works while others write to the trial.
    pub fn bodies(&self, bytes: usize) -> Result<Bodies, RecordError> {
        if bytes <= MAX_FRAME {
            self.check_room(bytes as u64)?;
        }
        Ok(Bodies {
            shared: self.shared.clone(),
            redactor: self.redactor.clone(),
        })
    }

    /// Writes a message that [`Bodies`] has stored.
    pub fn append_kept_frame(&mut self, at: u64, frame: Frame) -> Result<u64, RecordError> {
        let blob_bytes = blob_bytes(&frame.body);
        self.write(at, EventKind::Frame(frame), blob_bytes)
    }

    /// The room for more events.
    pub fn room(&self) -> QueueCapacity {
        QueueCapacity(self.shared.queue().clone())
    }

    /// The redactor for everything written. What it learns applies to this trial only.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The number of bytes written so far, including blobs.
    pub fn bytes(&self) -> u64 {
        self.log.bytes() + self.blob_bytes
    }

    /// Appends something, and puts everything appended so far into the file, on this thread. A proxy does so before it
    /// passes a message on.
    pub fn write_through(
        &mut self,
        append: impl FnOnce(&mut Self) -> Result<u64, RecordError>,
    ) -> Result<(), RecordError> {
        self.log.is_written_through = true;
        let appended = append(self);
        self.log.is_written_through = false;
        let written = self.shared.write_through(&self.log);
        appended.and(written)
    }

    /// What was appended so far, to be read.
    pub fn written(&self) -> WrittenEvents {
        WrittenEvents {
            shared: self.shared.clone(),
            path: self.log.path().to_owned(),
            lines: self.log.lines().map(<[u8]>::to_vec),
        }
    }

    /// What was appended after a position, to be read once.
    pub fn written_since(&mut self, position: Position) -> WrittenSince {
        let latest = self.log.take_latest(position);
        let lines = self.log.lines().filter(|_| latest.is_none());
        WrittenSince {
            written: WrittenEvents {
                shared: self.shared.clone(),
                path: self.log.path().to_owned(),
                lines: lines.map(<[u8]>::to_vec),
            },
            position,
            latest,
        }
    }

    /// Whether reading what was appended so far takes only a moment.
    pub fn is_short(&self) -> bool {
        self.log.lines().is_some() && self.blob_bytes <= MAX_INLINE as u64
    }

    /// Ends the trial, and waits until that is synced to the disk. Only then has the trial ended.
    pub fn end(self, at: u64, ended: TrialEnded) -> Result<EndedTrial, RecordError> {
        let (tell, told) = mpsc::channel();
        self.end_then(at, ended, move |result| drop(tell.send(result)));
        told.recv().unwrap_or(Err(RecordError::WriterGone))
    }

    /// Ends the trial. Another thread calls `done` when that is synced to the disk or has failed.
    pub fn end_then(
        mut self,
        at: u64,
        ended: TrialEnded,
        done: impl FnOnce(Result<EndedTrial, RecordError>) + Send + 'static,
    ) {
        let ended = self.redactor.trial_ended(ended).with_bounded_reason();
        let what = EventKind::TrialEnded(ended);
        let prepared = self.shared.check();
        if let Err(error) = prepared.and_then(|()| self.log.prepare(at, what)) {
            return done(Err(error));
        }
        let file = format!("{}{ENDED}", self.stem);
        let name = self.shared.folder.join(TRIALS).join(&file);
        let shared = self.shared.clone();
        let is_short = self.is_short();
        let (lines, latest) = self.log.take_lines().filter(|_| is_short).unzip();
        let ended = EndedTrial {
            shared,
            file,
            lines,
            latest,
        };
        let end = TrialEnd {
            file: self.log.file().clone(),
            name,
            done: Box::new(|result| done(result.map(|()| ended))),
        };
        self.is_ending = true;
        self.log.write_then(self.shared.queue(), FollowUp::End(end));
        self.shared.syncer().hurry();
    }

    fn write(&mut self, at: u64, what: EventKind, blob_bytes: u64) -> Result<u64, RecordError> {
        self.shared.check()?;
        let line = self.log.prepare(at, what)?;
        self.check_room(line + blob_bytes)?;
        let seq = self.shared.write(&mut self.log, at);
        self.blob_bytes += blob_bytes;
        Ok(seq)
    }

    fn check_room(&self, more: u64) -> Result<(), RecordError> {
        let limit = self.shared.options.max_trial;
        if self.bytes() + more > limit {
            return Err(RecordError::TrialTooLarge {
                path: self.log.path().to_owned(),
                limit,
            });
        }
        Ok(())
    }
}

impl Drop for TrialWriter {
    fn drop(&mut self) {
        if !self.is_ending {
            self.shared.queue().flush();
        }
    }
}

//! The state that the writers of one run share: its folder, its secrets, and its first failure.

use std::collections::HashSet;
use std::fs::{DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use data_encoding::BASE64;

use crate::event::{Body, EventKind};
use crate::redact::Redactor;

use super::blobs::{BlobStore, Blobs, hash};
use super::index::IndexLog;
use super::log::{EventLog, private};
use super::queue::{Queue, WriterThread};
use super::sync::{SyncThreads, Syncer};
use super::writer::RecordOptions;
use super::{BLOBS, INDEX, LOCK, MAX_FRAME, MAX_INLINE, RecordError, TRIALS};

#[derive(Debug)]
pub(super) struct RecordState {
    pub(super) folder: PathBuf,
    /// The start of the run by the wall clock, as its record has it.
    pub(super) started: String,
    pub(super) options: RecordOptions,
    pub(super) redactor: Redactor,
    blobs: Arc<BlobStore>,
    /// The hashes of texts that were stored as blobs before.
    stored: Mutex<HashSet<u64>>,
    hasher: RandomState,
    pub(super) index: IndexLog,
    failed: Arc<OnceLock<RecordError>>,
    // Dropped in this order: the writer passes its work to the syncer, and both finish before the
    // lock is released.
    writer: WriterThread,
    syncs: SyncThreads,
    /// Held as long as any writer exists.
    _lock: File,
}

impl RecordState {
    pub(super) fn open(
        folder: &Path,
        redactor: Redactor,
        options: RecordOptions,
        lock: File,
        started: String,
    ) -> Result<Arc<Self>, RecordError> {
        let trials = folder.join(TRIALS);
        make_folder(&trials)?;
        make_folder(&folder.join(BLOBS))?;
        let blobs = Arc::new(BlobStore::new(folder.join(BLOBS)));
        let failed: Arc<OnceLock<RecordError>> = Arc::default();
        let syncer = Syncer::new(trials, blobs.clone(), failed.clone());
        let syncs = SyncThreads::start(folder, syncer.clone())?;
        Ok(Arc::new(Self {
            writer: WriterThread::start(folder, syncer, failed.clone())?,
            syncs,
            folder: folder.to_owned(),
            started,
            options,
            redactor,
            blobs,
            stored: Mutex::default(),
            hasher: RandomState::new(),
            index: IndexLog::open(folder.join(INDEX))?,
            failed,
            _lock: lock,
        }))
    }

    /// Redacts an event and stores its long bodies. Returns the length of the blobs.
    pub(super) fn store(
        &self,
        mut what: EventKind,
        redactor: &Redactor,
    ) -> Result<(EventKind, u64), RecordError> {
        self.check()?;
        if !matches!(what, EventKind::Frame(_)) {
            what = redactor.what(what);
        }
        let is_frame = matches!(what, EventKind::Frame(_));
        let is_shared = matches!(
            what,
            EventKind::ToolsOffered { .. } | EventKind::ServerSeen(_)
        );
        let mut bytes = 0;
        for body in what.bodies() {
            *body = match std::mem::replace(body, Body::Text(String::new())) {
                Body::Text(text) if is_frame => self.body(text.as_bytes(), redactor)?,
                Body::Text(text) if is_shared => {
                    self.keep(self.blobs.put_shared(text.as_bytes()))?
                }
                Body::Text(text) if text.len() <= MAX_INLINE => Body::Text(text),
                Body::Text(text) => self.placed(text.as_bytes())?,
                Body::Base64(text) => {
                    let decoded = BASE64.decode(text.as_bytes());
                    self.body(decoded.as_deref().unwrap_or(text.as_bytes()), redactor)?
                }
                body @ (Body::Blob { .. } | Body::Cut { .. }) => body,
            };
            bytes += blob_bytes(body);
        }
        Ok((what, bytes))
    }

    /// Whether this text was not asked for before. Only a hint: a known text may still have to be stored.
    pub(super) fn is_new(&self, text: &str) -> bool {
        let hash = self.hasher.hash_one(text);
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.insert(hash)
    }

    /// The body for these bytes, redacted and stored.
    pub(super) fn body(&self, bytes: &[u8], redactor: &Redactor) -> Result<Body, RecordError> {
        self.check()?;
        if bytes.len() > MAX_FRAME {
            return Ok(cut(bytes));
        }
        self.kept(&redactor.bytes(bytes))
    }

    /// The body for redacted bytes.
    fn placed(&self, redacted: &[u8]) -> Result<Body, RecordError> {
        if redacted.len() > MAX_FRAME {
            return Ok(cut(redacted));
        }
        self.kept(redacted)
    }

    fn kept(&self, redacted: &[u8]) -> Result<Body, RecordError> {
        if redacted.len() > MAX_INLINE {
            return self.keep(self.blobs.put(redacted));
        }
        Ok(match str::from_utf8(redacted) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Base64(BASE64.encode(redacted)),
        })
    }

    pub fn append(&self, log: &mut EventLog, at: u64, what: EventKind) -> Result<u64, RecordError> {
        self.check()?;
        log.prepare(at, what)?;
        Ok(self.write(log, at))
    }

    pub(super) fn write(&self, log: &mut EventLog, at: u64) -> u64 {
        let every = u64::try_from(self.options.sync_every.as_micros()).unwrap_or(u64::MAX);
        log.write(self.queue(), at, every)
    }

    /// Syncs everything appended to a file to the disk.
    pub(super) fn sync(&self, log: &EventLog) -> Result<(), RecordError> {
        self.queue().flush();
        self.check()?;
        // Blobs first: a durable event must not name a blob that is not.
        self.keep(self.blobs.sync())?;
        self.keep(log.file().sync())
    }

    /// Puts what was appended to a file into it at once.
    pub(super) fn write_through(&self, log: &EventLog) -> Result<(), RecordError> {
        log.write_through(self.queue(), &self.failed);
        self.check()
    }

    /// The bodies that are stored as blobs.
    pub(super) fn blobs(&self) -> Blobs {
        self.blobs.reader()
    }

    /// What ends trials.
    pub(super) fn syncer(&self) -> &Syncer {
        self.syncs.syncer()
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.writer.queue
    }

    /// Fails if anything has failed before.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        match self.failed.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Remembers the first failure.
    pub(super) fn keep<T>(&self, result: Result<T, RecordError>) -> Result<T, RecordError> {
        result.map_err(|error| self.failed.get_or_init(|| error).clone())
    }
}

fn cut(bytes: &[u8]) -> Body {
    Body::Cut {
        bytes: bytes.len() as u64,
        sha256: hash(bytes),
    }
}

pub(super) fn blob_bytes(body: &Body) -> u64 {
    match body {
        Body::Blob { bytes, .. } => *bytes,
        Body::Text(_) | Body::Base64(_) | Body::Cut { .. } => 0,
    }
}

/// Creates a folder for its owner only, unless it exists.
pub fn make_folder(path: &Path) -> Result<(), RecordError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .map_err(RecordError::io("create", path))
}

pub fn lock(folder: &Path) -> Result<File, RecordError> {
    let path = folder.join(LOCK);
    let file = private()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(RecordError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordError::Locked {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(RecordError::io("lock", &path)(error)),
    }
}

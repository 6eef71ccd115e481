//! A run that is served, and that may go on meanwhile.
//!
//! The main type is [`LiveRun`]. Its snapshot is replaced when the files of the run have grown, but not more often than
//! the machine can bear. An error replaces it too: a run that can't be read is never shown as it was.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::patch;
use super::snapshot::{Fingerprint, Reading, Snapshot};

/// How often the lengths of the files are compared.
pub(super) const POLL: Duration = Duration::from_millis(500);

/// The shortest time between two readings of a run that goes on.
const PAUSE: Duration = Duration::from_secs(1);

/// Reading a run takes at most this part of the time.
const SHARE: u32 = 4;

/// How long a run that was written must be quiet before its lock is tried. A writer that starts at that moment would
/// be refused.
const QUIET: Duration = Duration::from_secs(3);

/// What is known of a run: its snapshot, or why it can't be read.
pub(super) type Known = Result<Arc<Snapshot>, String>;

/// A run that is served.
pub(super) struct LiveRun {
    folder: PathBuf,
    shown: PathBuf,
    known: Mutex<Option<(Known, Fingerprint, Instant)>>,
    /// Held while the run is read.
    reading: AsyncMutex<()>,
    shared: Arc<Shared>,
}

/// What all runs of a server share.
pub(super) struct Shared {
    /// Limits how many requests read files at a time.
    pub(super) work: Semaphore,
    /// The number of the latest snapshot of any run.
    pub(super) revision: AtomicU64,
}

impl LiveRun {
    pub(super) fn new(folder: PathBuf, shown: PathBuf, shared: Arc<Shared>) -> Self {
        Self {
            folder,
            shown,
            known: Mutex::new(None),
            reading: AsyncMutex::new(()),
            shared,
        }
    }

    pub(super) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The run as it is now, or was a moment ago.
    pub(super) async fn current(&self) -> Known {
        self.known(true).await
    }

    /// The run, read again only if its files have grown.
    pub(super) async fn followed(&self) -> Known {
        self.known(false).await
    }

    async fn known(&self, is_asked: bool) -> Known {
        let _reading = self.reading.lock().await;
        match self.last() {
            Some((known, _, _)) if !self.is_due(is_asked) => known,
            _ => self.read(Reading::Quick).await,
        }
    }

    /// The run after all its trials were compared with the index.
    pub(super) async fn checked(&self) -> Known {
        let _reading = self.reading.lock().await;
        match self.last() {
            Some((Ok(snapshot), seen, _))
                if snapshot.status.is_checked && seen == Fingerprint::of(&self.folder) =>
            {
                Ok(snapshot)
            }
            _ => self.read(Reading::Checked).await,
        }
    }

    /// The latest snapshot, however old.
    pub(super) fn last_known(&self) -> Option<Known> {
        self.last().map(|(known, _, _)| known)
    }

    /// Whether the run must be read again. A page that is loaded gets it anew: files may have been changed in place.
    fn is_due(&self, is_asked: bool) -> bool {
        let Some((known, seen, at)) = self.last() else {
            return true;
        };
        let is_changed = Fingerprint::of(&self.folder) != seen;
        match known {
            Ok(snapshot) => {
                let pause = PAUSE.max(snapshot.cost * SHARE);
                let is_over = snapshot.status.is_active && at.elapsed() > QUIET;
                at.elapsed() > pause && (is_asked || is_changed || is_over)
            }
            Err(_) => is_changed || at.elapsed() > PAUSE,
        }
    }

    fn last(&self) -> Option<(Known, Fingerprint, Instant)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Reads the run on a thread of its own.
    async fn read(&self, reading: Reading) -> Known {
        let seen = Fingerprint::of(&self.folder);
        let before = self.last().and_then(|(known, _, _)| known.ok());
        let (folder, shown) = (self.folder.clone(), self.shown.clone());
        let shared = self.shared.clone();
        let _permit = self.shared.work.acquire().await;
        let read = tokio::task::spawn_blocking(move || {
            let mut new = Snapshot::take(&folder, &shown, reading).map_err(|error| {
                let cause = std::error::Error::source(&error);
                cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"))
            })?;
            let next = shared.revision.fetch_add(1, Ordering::Relaxed) + 1;
            patch::number(&mut new, before.as_deref(), next);
            Ok(Arc::new(new))
        });
        let known = match read.await {
            Ok(known) => known,
            Err(_) => Err("reading the run failed; this is a bug in Proctor".to_owned()),
        };
        let mut last = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((known.clone(), seen, Instant::now()));
        known
    }
}

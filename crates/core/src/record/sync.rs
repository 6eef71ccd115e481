//! The thread that makes what was written last, now and then, while others go on writing.
//!
//! Its main type is [`Syncer`]. Whoever writes only asks for it: a disk that takes its time holds up
//! nobody but this thread. What has to last before something else happens is synced by whoever needs that.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use super::RecordError;
use super::blobs::BlobStore;

/// A file of events that is to be synced.
pub(super) type Asked = (PathBuf, Arc<File>);

/// Where to ask for a sync.
#[derive(Debug)]
pub(super) struct Syncer {
    ask: Sender<Asked>,
}

impl Syncer {
    /// Starts the thread, which ends when nobody can ask any more. The first failure is kept in `failed`.
    /// `None` if the system gives no thread.
    pub(super) fn start(blobs: Arc<BlobStore>, failed: Arc<OnceLock<RecordError>>) -> Option<Self> {
        let (ask, asked) = channel();
        let thread = std::thread::Builder::new().name("sync".to_owned());
        thread.spawn(move || run(&asked, &blobs, &failed)).ok()?;
        Some(Self { ask })
    }

    /// Asks for a sync of a file and of all blobs so far. Says whether somebody heard it.
    pub(super) fn ask(&self, file: Asked) -> bool {
        self.ask.send(file).is_ok()
    }
}

fn run(asked: &Receiver<Asked>, blobs: &BlobStore, failed: &OnceLock<RecordError>) {
    while let Ok(first) = asked.recv() {
        // What came while the disk was busy is done together, each file once.
        let files: HashMap<PathBuf, Arc<File>> =
            std::iter::once(first).chain(asked.try_iter()).collect();
        if failed.get().is_some() {
            return;
        }
        if let Err(error) = sync(blobs, &files) {
            failed.get_or_init(|| error);
            return;
        }
    }
}

fn sync(blobs: &BlobStore, files: &HashMap<PathBuf, Arc<File>>) -> Result<(), RecordError> {
    // Blobs first: an event that lasts must not name a blob that does not.
    blobs.sync()?;
    for (path, file) in files {
        file.sync_data().map_err(RecordError::io("sync", path))?;
    }
    Ok(())
}

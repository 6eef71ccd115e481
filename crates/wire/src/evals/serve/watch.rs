//! Polls the eval file, and serves its new content when it changes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proctor_record::problem::Problems;

use super::{EvalsResponder, ServeNotice, load};

/// The polling interval. A change counts once two polls see the same state, because programs write
/// files in pieces.
const LOOK: Duration = Duration::from_millis(250);

/// Identifies the state of a file; `None` if the file does not exist.
pub type Stamp = Option<(SystemTime, u64, u64)>;

/// Returns the state of a file. Must be called before the file is read.
pub fn stamp(path: &Path) -> Stamp {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len(), about.ino()))
}

/// Serves the file again whenever it changes and is valid; never returns. `read` is the state of
/// the file when it was last read.
pub async fn watch(path: PathBuf, read: Stamp, responder: Arc<EvalsResponder>) {
    let (mut read, mut seen) = (read, read);
    loop {
        tokio::time::sleep(LOOK).await;
        let now = stamp(&path);
        if now == read || now != std::mem::replace(&mut seen, now) {
            continue;
        }
        read = now;
        let path = path.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            let mut problems = Problems::default();
            let suite = load(&path, &mut problems);
            (suite, problems)
        });
        match loaded.await {
            Ok((Some(suite), problems)) => responder.replace(suite, problems),
            Ok((None, problems)) => (responder.tell)(&ServeNotice::Kept(problems)),
            // The task panicked, or the runtime is shutting down.
            Err(_) => {}
        }
    }
}

//! Looks at the file of evals from time to time, and serves it anew when it changes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proctor_core::problem::Problems;

use super::{EvalsResponder, ServeNotice, load};

/// How often the file is looked at. A change counts once two looks see the same, since programs write in
/// pieces.
const LOOK: Duration = Duration::from_millis(250);

/// What tells one state of a file from another. `None` if there is no file.
pub type Stamp = Option<(SystemTime, u64, u64)>;

/// The state of a file. To be taken before the file is read.
pub fn stamp(path: &Path) -> Stamp {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len(), about.ino()))
}

/// Serves the file anew whenever it changes and is valid; never ends. `read` is its state when it was
/// read.
pub async fn watch(path: PathBuf, read: Stamp, desk: Arc<EvalsResponder>) {
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
            Ok((Some(suite), problems)) => desk.replace(suite, problems),
            Ok((None, problems)) => (desk.tell)(&ServeNotice::Kept(problems)),
            // It panicked, or everything ends.
            Err(_) => {}
        }
    }
}

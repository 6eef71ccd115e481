//! What can go wrong with a record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a record could not be written or read.
///
/// It can be cloned: after the first failed write, every later one fails with the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordError {
    /// The system refused.
    #[error("could not {doing} `{}`", path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// The folder has no `run.jsonl`, or one that does not start as a run does.
    #[error("`{}` is not a run: {reason}", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The run does not say which trials were meant.
    #[error("`{}` has no plan, so there is nothing to sum up", path.display())]
    NoPlan {
        /// The folder.
        path: PathBuf,
    },
    /// There is a run in the folder already.
    #[error("`{}` already holds a run", path.display())]
    HoldsARun {
        /// The folder.
        path: PathBuf,
    },
    /// Another writer is at work.
    #[error("`{}` is being written by another process", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// There is a record of this trial and attempt already.
    #[error("`{}` is there already: this attempt at the trial was recorded before", path.display())]
    TrialExists {
        /// The file.
        path: PathBuf,
    },
    /// A newer Proctor wrote it.
    #[error(
        "`{}` has record version {found}, and this program reads up to {known}: use a newer Proctor",
        path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version that can be read.
        known: u32,
    },
    /// A line in the middle of a file is not an event.
    #[error("line {line} of `{}` is not an event of a record: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: u64,
        /// What the parser said.
        reason: String,
    },
    /// A body is not what its name says.
    #[error("the blob `{}` is damaged: {reason}", path.display())]
    DamagedBlob {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A trial said more than a record takes.
    #[error("`{}` would grow beyond {limit} bytes", path.display())]
    TrialTooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The thread that writes the record ended before its time.
    #[error("the thread that writes the record is gone")]
    WriterGone,
    /// One event is longer than a line may be.
    #[error("an event of {bytes} bytes is too long for a line of `{}`", path.display())]
    EventTooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
}

impl RecordError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }
}

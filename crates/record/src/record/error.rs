//! Errors of reading and writing a record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a record could not be written or read.
///
/// Clonable, since every write after the first failed one fails with the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordError {
    #[error("could not {doing} `{}`", path.display())]
    Io {
        /// The failed operation, as a verb.
        doing: &'static str,
        path: PathBuf,
        source: Arc<io::Error>,
    },
    /// The folder has no valid `run.jsonl`.
    #[error("`{}` is not a run: {reason}", path.display())]
    NotARun { path: PathBuf, reason: String },
    /// The run has no plan, as a single call.
    #[error("`{}` has no plan: nothing to report", path.display())]
    NoPlan { path: PathBuf },
    #[error("`{}` already holds a run", path.display())]
    HoldsARun { path: PathBuf },
    #[error("another process is writing to `{}`", path.display())]
    Locked { path: PathBuf },
    #[error("`{}` already exists: this attempt is already recorded", path.display())]
    TrialExists { path: PathBuf },
    #[error(
        "`{}` has record version {found}, but this Proctor supports only versions up to {known}: use a newer Proctor",
        path.display()
    )]
    NewerVersion {
        path: PathBuf,
        found: u64,
        /// The newest supported version.
        known: u32,
    },
    /// A line in the middle of a file is not a valid event.
    #[error("line {line} of `{}` is not a valid event: {reason}", path.display())]
    Corrupt {
        path: PathBuf,
        /// The line, from one.
        line: u64,
        reason: String,
    },
    /// A blob does not match its name.
    #[error("the blob `{}` is damaged: {reason}", path.display())]
    DamagedBlob { path: PathBuf, reason: String },
    #[error("`{}` would exceed {limit} bytes", path.display())]
    TrialTooLarge { path: PathBuf, limit: u64 },
    #[error("the thread that writes the record has stopped")]
    WriterGone,
    #[error("an event of {bytes} bytes is too long for a line of `{}`", path.display())]
    EventTooLarge { path: PathBuf, bytes: usize },
}

impl RecordError {
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }
}

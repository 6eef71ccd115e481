//! The record: the folder of a run. It can be read during the run and afterwards.
//!
//! | file | holds |
//! |---|---|
//! | `run.jsonl` | the run's own events |
//! | `trials/<trial>.<attempt>.jsonl` | a trial's events; `….jsonl.part` until the trial has ended |
//! | `blobs/<sha256>` | bodies that are too large for a line |
//! | `index.jsonl` | a line for each trial that began, and one for each that ended; derived, may be deleted |
//! | `summary.json` | the results of the run, in short; derived, may be deleted |
//! | `grades/<name>.jsonl` | the results of a regrade; written afterwards, beside the record |
//! | `lock` | locked by the only writer |
//!
//! Main types: [`RunWriter`], [`TrialWriter`], [`RunReader`]. All events are redacted before they
//! are written. A trial has ended once its file is renamed, and only then.

mod blobs;
mod error;
mod events;
mod index;
mod lines;
mod log;
mod name;
mod queue;
mod reader;
mod references;
mod state;
mod sync;
#[cfg(test)]
mod tests;
mod trial_writer;
mod unused;
mod writer;
mod written;

pub use self::blobs::Blobs;
pub use self::error::RecordError;
pub use self::events::open_file;
pub use self::events::{EventReader, FileDigest, Position, TornLine};
pub use self::index::TrialBegan;
pub use self::log::{private, sync_folder};
pub use self::name::{trial_name, trial_stem};
pub use self::reader::{RunReader, TrialFile};
pub use self::references::{blobs_of, last_event};
pub use self::state::{lock, make_folder};
pub use self::trial_writer::{
    Bodies, EndedTrial, QueueCapacity, RedactedEvent, TrialStarter, TrialWriter,
};
pub use self::unused::is_unused;
pub use self::writer::{RecordOptions, RunWriter};
pub use self::written::{EventsSince, WrittenEvents, WrittenSince};

/// A longer body is stored as a blob.
pub const MAX_INLINE: usize = 32 * 1024;

/// Of a longer body, only the length and the hash are stored.
pub const MAX_FRAME: usize = 32 * 1024 * 1024;

/// The maximum length of a trial's record, including its blobs. The end of the trial is always
/// written.
pub const MAX_TRIAL: u64 = 1024 * 1024 * 1024;

/// The maximum length of a line.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

pub const RUN: &str = "run.jsonl";
pub const TRIALS: &str = "trials";
pub const BLOBS: &str = "blobs";
pub const INDEX: &str = "index.jsonl";
pub const SUMMARY: &str = "summary.json";
pub const GRADES: &str = "grades";
const LOCK: &str = "lock";
pub const ENDED: &str = ".jsonl";
pub const PART: &str = ".jsonl.part";

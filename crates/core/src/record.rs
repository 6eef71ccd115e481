//! The record: a run's folder, written while the run goes on and read ever after.
//!
//! | file | holds |
//! |---|---|
//! | `run.jsonl` | the run's own events |
//! | `trials/<trial>.<attempt>.jsonl` | a trial's events; `….jsonl.part` until the trial has ended |
//! | `blobs/<sha256>` | bodies that are too large for a line |
//! | `index.jsonl` | a line for each trial that began, and one for each that ended; derived, may be deleted |
//! | `summary.json` | what the run came to, in short; derived, may be deleted |
//! | `lock` | held by the one writer |
//!
//! Main types: [`RunWriter`], [`TrialWriter`], [`RunReader`]. Whatever is written is redacted first.
//! The rename of a trial's file is its end: no other thing makes a trial look ended.

mod blobs;
mod error;
mod events;
mod index;
mod lines;
mod log;
mod name;
mod queue;
mod reader;
mod shared;
mod sync;
#[cfg(test)]
mod tests;
mod unused;
mod writer;

pub use self::blobs::Blobs;
pub use self::error::RecordError;
pub use self::events::{EventReader, FileDigest, Position, TornLine};
pub use self::index::TrialBegan;
pub use self::name::trial_stem;
pub use self::reader::{RunReader, TrialFile};
pub use self::unused::is_unused;
pub use self::writer::{
    Bodies, EndedTrial, QueueCapacity, RecordOptions, RedactedEvent, RunWriter, TrialWriter,
    WrittenEvents,
};

/// A body longer than this is a file of its own.
pub const MAX_INLINE: usize = 32 * 1024;

/// A body longer than this is not kept, only its length and hash.
pub const MAX_FRAME: usize = 32 * 1024 * 1024;

/// A trial's record, with the blobs it refers to, is at most this long; its end is written in any case.
pub const MAX_TRIAL: u64 = 1024 * 1024 * 1024;

/// A line of a record is at most this long.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

pub(crate) const RUN: &str = "run.jsonl";
const TRIALS: &str = "trials";
const BLOBS: &str = "blobs";
pub(crate) const INDEX: &str = "index.jsonl";
pub(crate) const SUMMARY: &str = "summary.json";
const LOCK: &str = "lock";
const ENDED: &str = ".jsonl";
pub(crate) const PART: &str = ".jsonl.part";

//! Shards: the parts into which a run is split, so that several machines can execute it.
//!
//! The main type is [`Shard`]. A trial belongs to a shard by a hash of its case, agent and repeat, so adding a case
//! moves no other trial. [`plan_hash`](plan::plan_hash) tells whether two shards belong to the same plan.

mod engines;
pub mod plan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use proctor_record::event::PlannedShard;

pub use self::engines::{DetectError, RUN_ID_VARIABLES, detect, run_id};

/// The largest number of shards.
const MAX_COUNT: u32 = 100_000;

/// The length of a run id, in characters.
const MAX_RUN_ID: usize = 128;

/// One of the parts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Why a text is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    #[error("invalid shard `{0}`: write `INDEX/COUNT`, such as `3/16`, or `auto`")]
    Malformed(String),
    #[error("shard {index} of {count} does not exist: shards are numbered from 1 to {count}")]
    OutOfRange { index: u32, count: u32 },
    #[error("a run has at most {MAX_COUNT} shards, not {0}")]
    TooMany(u32),
}

impl Shard {
    /// The shard with this number, from one.
    pub fn new(index: u32, count: u32) -> Result<Self, ShardError> {
        if count > MAX_COUNT {
            return Err(ShardError::TooMany(count));
        }
        if index == 0 || index > count {
            return Err(ShardError::OutOfRange { index, count });
        }
        Ok(Self { index, count })
    }

    /// The shard that a plan records; `None` for a merged run.
    pub fn of_plan(planned: &PlannedShard) -> Option<Self> {
        Self::new(planned.index?, planned.count).ok()
    }

    /// Its number, from one.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The number of shards.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Whether a trial belongs to this shard.
    pub fn holds(self, case: &str, agent: &str, repeat: u32) -> bool {
        shard_of(case, agent, repeat, self.count) == self.index
    }

    /// The share of a budget of the whole run for this many of its trials.
    #[expect(
        clippy::cast_precision_loss,
        reason = "runs have fewer than 2^52 trials"
    )]
    pub fn share(own: usize, all: usize) -> f64 {
        if all == 0 {
            return 0.0;
        }
        own as f64 / all as f64
    }
}

/// The number of the shard that a trial belongs to, from one.
///
/// The first eight bytes of the SHA-256 of `CASE`, a zero byte, `AGENT`, a zero byte and `REPEAT` in decimal, as a
/// big-endian number, modulo the number of shards, plus one. The formula is part of the interface and never changes:
/// shards of different versions of Proctor must agree.
pub fn shard_of(case: &str, agent: &str, repeat: u32, count: u32) -> u32 {
    let digest = Sha256::digest(format!("{case}\0{agent}\0{repeat}"));
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    let place = u64::from_be_bytes(first) % u64::from(count.max(1));
    u32::try_from(place).unwrap_or(u32::MAX - 1) + 1
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let malformed = || ShardError::Malformed(text.to_owned());
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let (index, count) = text.trim().split_once('/').ok_or_else(malformed)?;
        let index = number(index).ok_or_else(malformed)?;
        Self::new(index, number(count).ok_or_else(malformed)?)
    }
}

/// Whether a text can name a run: it becomes part of paths and URLs.
pub fn is_run_id(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && text.len() <= MAX_RUN_ID && text.chars().all(is_allowed)
}

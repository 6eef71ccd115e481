//! Keeps equal results of trials in memory once.
//!
//! The main type is [`SharedResults`]. It knows only some results at a time, so its own size is bounded.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;

use proctor_record::event::TrialStarted;
use proctor_record::index::Attempt;
use proctor_record::record::PART;

use super::trial::{AttemptEnd, TrialFileName, TrialResult, TrialSpending};

/// How many different values are known at a time.
const MOST: usize = 1024;

/// Makes results that share what is equal.
#[derive(Debug, Default)]
pub(super) struct SharedResults {
    hasher: RandomState,
    spent: HashMap<u64, Arc<TrialSpending>>,
    ends: HashMap<u64, Arc<AttemptEnd>>,
    /// The latest `case:agent`: files are read by name, so that of the next file is often the same.
    trial: Option<Arc<str>>,
}

impl SharedResults {
    /// The result of an attempt in a file; `None` if it has not ended. `trial` and `agent` identify the trial.
    pub(super) fn result(
        &mut self,
        (file, number): (&str, u32),
        (trial, agent): (&TrialStarted, &str),
        attempt: &Attempt,
    ) -> Option<TrialResult> {
        // The rename ends a trial: the outcome in a `.part` file does not count.
        if file.ends_with(PART) {
            return None;
        }
        let name = self.trial(&trial.case, agent);
        let file = TrialFileName::new(file, &name, trial.repeat, number);
        let end = AttemptEnd::of(file, number, attempt)?;
        let spent = TrialSpending::of(attempt);
        let (spent_hash, end_hash) = (spent.hash(&self.hasher), end.hash(&self.hasher));
        Some(TrialResult::new(
            attempt.duration,
            shared(&mut self.spent, spent_hash, spent),
            shared(&mut self.ends, end_hash, end),
        ))
    }

    fn trial(&mut self, case: &str, agent: &str) -> Arc<str> {
        let is_same = |known: &&Arc<str>| {
            let rest = known.strip_prefix(case).and_then(|r| r.strip_prefix(':'));
            rest == Some(agent)
        };
        match self.trial.as_ref().filter(is_same) {
            Some(known) => known.clone(),
            None => self.trial.insert(format!("{case}:{agent}").into()).clone(),
        }
    }
}

/// The known value that is equal, or else this one.
fn shared<T: PartialEq>(known: &mut HashMap<u64, Arc<T>>, hash: u64, value: T) -> Arc<T> {
    if let Some(known) = known.get(&hash).filter(|known| ***known == value) {
        return known.clone();
    }
    if known.len() >= MOST {
        known.clear();
    }
    let value = Arc::new(value);
    known.insert(hash, value.clone());
    value
}

//! Counts the assertions of a run, for outputs that other tools read.
//!
//! Its main type is [`AssertionCounter`]. Gates fold the trials instead.

use std::collections::HashMap;

use super::Summary;
use crate::event::CheckId;
use crate::index::IndexEntry;
use crate::verdict::Verdict;

/// The assertions that were evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AssertionCount {
    pub passed: u64,
    pub total: u64,
}

/// The assertions of each attempt, by its file.
#[derive(Debug, Default)]
pub struct AssertionCounter(HashMap<String, AssertionCount>);

impl AssertionCounter {
    pub fn add(&mut self, entry: &IndexEntry) {
        let count = self.0.entry(entry.file.clone()).or_default();
        for check in &entry.attempt.checks {
            if matches!(check.id, Some(CheckId::Assertion(_))) {
                count.total += 1;
                count.passed += u64::from(check.verdict == Verdict::Pass);
            }
        }
    }

    /// The assertions of the attempts that count. Those of earlier attempts don't.
    pub fn finish(&self, summary: &Summary) -> AssertionCount {
        let results = summary.trials().filter_map(|(_, _, t)| t.result.as_ref());
        let counts = results.filter_map(|result| self.0.get(&result.file));
        counts.fold(AssertionCount::default(), |sum, count| AssertionCount {
            passed: sum.passed + count.passed,
            total: sum.total + count.total,
        })
    }
}

//! Counts the assertions of a run, for outputs that other tools read.
//!
//! Its main type is [`AssertionCounter`]. Gates fold the trials instead.

use std::collections::HashMap;

use proctor_record::event::CheckId;
use proctor_record::index::IndexEntry;
use proctor_record::verdict::Verdict;

use super::Summary;

/// The assertions that were evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AssertionCount {
    pub passed: u64,
    pub total: u64,
}

/// The assertions of one attempt.
#[derive(Debug, Clone, Default)]
pub struct AttemptAssertions {
    pub count: AssertionCount,
    /// The assertions that did not pass, as `toolsUsed: reason`.
    pub failed: Vec<String>,
}

/// The assertions of each attempt, by its file.
#[derive(Debug, Default)]
pub struct AssertionCounter(HashMap<String, AttemptAssertions>);

impl AssertionCounter {
    pub fn add(&mut self, entry: &IndexEntry) {
        let found = self.0.entry(entry.file.clone()).or_default();
        for check in &entry.attempt.checks {
            if !matches!(check.id, Some(CheckId::Assertion(_))) {
                continue;
            }
            found.count.total += 1;
            match &check.verdict {
                Verdict::Pass => found.count.passed += 1,
                Verdict::Fail { reason } | Verdict::Unknown { reason } => {
                    found.failed.push(format!("{}: {reason}", check.check));
                }
            }
        }
    }

    /// The assertions of the attempt in a file.
    pub fn of(&self, file: &str) -> Option<&AttemptAssertions> {
        self.0.get(file)
    }

    /// The assertions of the attempts that count. Those of earlier attempts don't.
    pub fn finish(&self, summary: &Summary) -> AssertionCount {
        let files = summary.trials().filter_map(|(_, _, t)| t.file());
        let counts = files.filter_map(|file| self.0.get(&file));
        counts.fold(AssertionCount::default(), |sum, found| AssertionCount {
            passed: sum.passed + found.count.passed,
            total: sum.total + found.count.total,
        })
    }
}

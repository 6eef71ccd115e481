//! Whether the record of a run has the outcomes that this process saw.
//!
//! The main function is [`changed`]. An agent runs as the user, so it may have changed the record.

use std::collections::{BTreeSet, HashMap};

use proctor_core::summary::{Summary, TrialSummary};
use proctor_record::event::Outcome;
use proctor_record::record::{RunReader, TrialFile, trial_name, trial_stem};

use crate::runner::{TrialList, TrialOutcomes, TrialSpec, TrialStems};

/// The trials that this process ran to their ends, in the order of the plan.
pub(super) struct SeenTrials<'a> {
    trials: Box<dyn Iterator<Item = (TrialSpec, Outcome)> + 'a>,
    stems: &'a TrialStems,
    next: Option<SeenTrial>,
}

/// A trial by the stem of its files, with its latest attempt.
pub(super) struct SeenTrial {
    stem: String,
    result: (u32, Outcome),
}

impl<'a> SeenTrials<'a> {
    /// `ended` has the outcomes by the trials' positions.
    pub(super) fn new(
        trials: &'a TrialList,
        stems: &'a TrialStems,
        ended: &'a [Option<Outcome>],
    ) -> Self {
        let trials = trials.iter().zip(ended);
        let trials = trials.filter_map(|(spec, outcome)| Some((spec, (*outcome)?)));
        let mut seen = Self {
            trials: Box::new(trials),
            stems,
            next: None,
        };
        seen.advance();
        seen
    }

    fn advance(&mut self) {
        self.next = self.trials.next().map(|(spec, outcome)| SeenTrial {
            stem: self.stems.stem(&spec),
            result: (spec.attempt, outcome),
        });
    }

    /// The next trial, if it is this one.
    fn next_if(&mut self, stem: &str) -> Option<(u32, Outcome)> {
        let result = self.next.as_ref().filter(|next| next.stem == stem)?.result;
        self.advance();
        Some(result)
    }
}

impl Iterator for SeenTrials<'_> {
    type Item = SeenTrial;

    fn next(&mut self) -> Option<SeenTrial> {
        let next = self.next.take();
        self.advance();
        next
    }
}

/// The trials whose outcome in the record differs from the outcome that this process saw, or that it read before it
/// resumed the run.
///
/// The record has the trials in the order of the plan too, so only those that don't match are in memory.
pub(super) fn changed(
    mut seen: SeenTrials<'_>,
    mut before: TrialOutcomes,
    summary: &Summary,
    record: &RunReader,
) -> BTreeSet<String> {
    let mut changed = BTreeSet::new();
    let mut unmatched: HashMap<String, (u32, Outcome)> = HashMap::new();
    for (_, _, trial) in summary.trials() {
        let Some((file, outcome)) = outcome_of(trial, record) else {
            continue;
        };
        let earlier = before.remove(&file.stem);
        let recorded = (file.attempt, outcome);
        match seen.next_if(&file.stem) {
            Some(result) if result == recorded => {}
            Some(_) => drop(changed.insert(file.stem)),
            None if earlier == Some(recorded) => {}
            None => drop(unmatched.insert(file.stem, recorded)),
        }
    }
    for SeenTrial { stem, result } in seen {
        before.remove(&stem);
        if unmatched.remove(&stem) != Some(result) {
            changed.insert(stem);
        }
    }
    changed.extend(unmatched.into_keys());
    changed.extend(missing(before, summary));
    changed
}

/// The outcomes of all trials, as the record has them.
pub(super) fn outcomes(summary: &Summary, record: &RunReader) -> TrialOutcomes {
    let mut all = TrialOutcomes::default();
    for (_, _, trial) in summary.trials() {
        if let Some((file, outcome)) = outcome_of(trial, record) {
            all.insert(&file.stem, file.attempt, outcome);
        }
    }
    all
}

/// The file and the outcome of a trial, as the record has them.
fn outcome_of(trial: &TrialSummary, record: &RunReader) -> Option<(TrialFile, Outcome)> {
    let file = record.trial_file(&trial.file()?)?;
    Some((file, trial.outcome()?))
}

/// The names of trials that ended before the run was resumed, and that the record no longer has.
fn missing(mut before: TrialOutcomes, summary: &Summary) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    if before.is_empty() {
        return missing;
    }
    for (case, cell, trial) in summary.trials() {
        let stem = trial_stem(&trial_name(&case.case.id, &cell.agent, trial.repeat));
        if before.remove(&stem).is_some() {
            missing.insert(stem);
        }
    }
    // The plan in the record was changed too, or the name contains a secret.
    if !before.is_empty() {
        missing.insert("unknown".to_owned());
    }
    missing
}

#[cfg(test)]
mod tests;

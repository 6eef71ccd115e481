//! The order in which the details of trials go into a file of limited size.

use std::borrow::Cow;

use proctor_core::summary::Summary;
use proctor_record::event::{Outcome, PlannedCase};

use crate::page::TrialFacts;

/// The trials with a record, most important first.
pub(super) struct DetailOrder<'a> {
    pub(super) trials: Vec<RecordedTrial<'a>>,
    /// For each planned trial, its position in `trials`.
    pub(super) positions: Vec<Option<usize>>,
}

/// A trial and the file of its record.
pub(super) struct RecordedTrial<'a> {
    pub(super) case: &'a PlannedCase,
    pub(super) file: Cow<'a, str>,
}

/// The trials that did not pass; then the first passed trial of each case and agent; then the rest.
pub(super) fn detail_order<'a>(summary: &'a Summary, facts: &'a TrialFacts) -> DetailOrder<'a> {
    let mut ranked: Vec<(u8, usize, RecordedTrial<'a>)> = Vec::new();
    let mut number = 0;
    for case in &summary.cases {
        for trials in &case.agents {
            let mut has_passed = false;
            for trial in &trials.trials {
                let unfinished = || facts.unfinished(&case.case.id, &trials.agent, trial.repeat);
                let file = trial.file().map(Cow::Owned);
                let file = file.or_else(|| unfinished().map(Cow::Borrowed));
                let rank = match trial.outcome() {
                    Some(Outcome::Passed) if has_passed => 2,
                    Some(Outcome::Passed) => {
                        has_passed = true;
                        1
                    }
                    Some(
                        Outcome::Failed | Outcome::TimedOut | Outcome::Errored | Outcome::Cancelled,
                    )
                    | None => 0,
                };
                let case = &case.case;
                ranked.extend(file.map(|file| (rank, number, RecordedTrial { case, file })));
                number += 1;
            }
        }
    }
    ranked.sort_by_key(|(rank, number, _)| (*rank, *number));
    let mut positions = vec![None; number];
    for (position, (_, number, _)) in ranked.iter().enumerate() {
        positions[*number] = Some(position);
    }
    let trials = ranked.into_iter().map(|(_, _, trial)| trial);
    DetailOrder {
        trials: trials.collect(),
        positions,
    }
}

//! The outcomes of a case as a strip with a mark for each trial.
//!
//! No mark needs its colour: passed is low, failed is high, timed out is broken, errored is hollow.

use proctor_core::summary::{AgentTrials, TrialSummary};
use proctor_record::event::Outcome;

/// The longest strip. The marks of more trials would not be counted by eye.
const LONGEST: usize = 20;

/// The strip of a case; `None` for a single trial, whose outcome the label says, and for too many trials.
pub(super) fn strip(trials: &AgentTrials, utf8: bool) -> Option<String> {
    let is_short = (2..=LONGEST).contains(&trials.trials.len());
    is_short.then(|| marks(trials, utf8))
}

/// A mark for each trial.
pub(super) fn marks(trials: &AgentTrials, utf8: bool) -> String {
    let outcomes = trials.trials.iter().map(TrialSummary::outcome);
    outcomes.map(|outcome| mark(outcome, utf8)).collect()
}

fn mark(outcome: Option<Outcome>, utf8: bool) -> char {
    let (block, letter) = match outcome {
        Some(Outcome::Passed) => ('▖', '.'),
        Some(Outcome::Failed) => ('▌', 'F'),
        Some(Outcome::TimedOut) => ('¦', 'T'),
        Some(Outcome::Errored) => ('▯', 'E'),
        Some(Outcome::Cancelled) => ('·', 'C'),
        None => ('·', '-'),
    };
    if utf8 { block } else { letter }
}

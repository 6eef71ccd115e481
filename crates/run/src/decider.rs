//! Decides which trials of a run can still change the answer of its gate (`--stop-when-decided`).
//!
//! Its main type is [`Decider`]. It asks the same functions as the gate of the record, so that a run never stops
//! with an answer that its record does not give.

use std::collections::HashMap;
use std::path::Path;

use proctor_core::gate::{CaseVerdict, Gate};
use proctor_core::summary::{Summary, TrialResult};
use proctor_record::event::{Outcome, RunEnded, TrialEnded};
use proctor_record::record::{RecordError, RunReader};

/// The outcomes so far, and what they decide.
pub(crate) struct Decider {
    summary: Summary,
    /// Whether a gate on rates replaces the rule that every case meets its pass rule. It needs the trials of all
    /// cases until it is decided.
    by_rate: bool,
    is_decided: bool,
    /// A result for each outcome, which all trials share.
    results: HashMap<Outcome, TrialResult>,
}

impl Decider {
    /// Reads the plan of a run, and the outcomes from before an interruption.
    pub(crate) fn open(folder: &Path) -> Result<Self, RecordError> {
        let mut summary = Summary::of_run(&RunReader::open(folder)?)?;
        // The question is what the gate would say if the run ended now.
        summary.ended = Some(RunEnded::default());
        let gates = summary.plan.gates.as_ref();
        let mut this = Self {
            by_rate: gates.is_some_and(|gates| gates.replaces_default()),
            is_decided: false,
            results: HashMap::new(),
            summary,
        };
        this.decide();
        Ok(this)
    }

    /// Notes the outcome of a trial.
    pub(crate) fn take(&mut self, case: &str, agent: &str, repeat: u32, outcome: Outcome) {
        let result = self.results.entry(outcome).or_insert_with(|| {
            let ended = TrialEnded {
                outcome,
                reason: None,
                blame: None,
            };
            TrialResult::of_end(&ended, String::new(), None)
        });
        self.summary.note(case, agent, repeat, result.clone());
        self.decide();
    }

    /// Whether another trial of a case can change the answer.
    pub(crate) fn is_needed(&self, case: &str, agent: &str) -> bool {
        let mut cells = self.summary.cells();
        let cell = cells.find(|(known, cell)| known.case.id == case && cell.agent == agent);
        let Some((case, cell)) = cell else {
            return true;
        };
        // Any trial of a known failure may pass, which misses the gate.
        if cell.known_failure.is_some() {
            return true;
        }
        if self.by_rate {
            return !self.is_decided;
        }
        cell.verdict(&case.case) == CaseVerdict::Open
    }

    fn decide(&mut self) {
        self.is_decided = self.by_rate && !matches!(Gate::of(&self.summary), Gate::Open { .. });
    }
}

#[cfg(test)]
mod tests;

//! The pass rates of a run, and which of its trials are a fair sample.

use proctor_record::event::PlannedCase;

use super::{AgentTrials, Summary, TrialSummary};
use crate::pass_rule::TrialCounts;
use crate::statistics::{PassCount, Rate};

impl Summary {
    /// Whether trials were not started because the answer of the gate was decided without them. Then the
    /// trials that ran are not a fair sample, and their share is not a rate.
    pub fn is_curtailed(&self) -> bool {
        let is_missing = |trial: &TrialSummary| trial.result.is_none();
        self.plan.stop_when_decided && self.trials().any(|(_, _, trial)| is_missing(trial))
    }

    /// How many trials of each complete round passed and did not pass. A round is the trials with the same
    /// number of all cases and agents; it is complete if all of them have a verdict. Known failures are left out.
    pub fn rounds(&self) -> Vec<(u32, u32)> {
        let cells = || {
            let cells = self.cells().map(|(_, cell)| cell);
            cells.filter(|cell| cell.known_failure.is_none())
        };
        let fewest = cells().map(|cell| cell.trials.len()).min();
        let round = |index: usize| {
            let trials = cells().map(|cell| cell.trials[index].outcome());
            let counts = TrialCounts::of(trials);
            (counts.open == 0).then_some((counts.passed, counts.not_passed))
        };
        (0..fewest.unwrap_or(0)).map_while(round).collect()
    }

    /// The pass rate of one agent or of all; `None` if no trial counts, or if the run was curtailed.
    pub fn rate(&self, agent: Option<&str>) -> Option<Rate> {
        self.rate_of(agent, |_| true)
    }

    /// The pass rate of some cases.
    pub(crate) fn rate_of(
        &self,
        agent: Option<&str>,
        counts: impl Fn(&PlannedCase) -> bool,
    ) -> Option<Rate> {
        if self.is_curtailed() {
            return None;
        }
        let tallies: Vec<PassCount> = self
            .cases
            .iter()
            .filter(|case| counts(&case.case))
            .map(|case| {
                let mut tally = PassCount::default();
                let wanted = |trials: &&AgentTrials| agent.is_none_or(|name| trials.agent == name);
                for trials in case.agents.iter().filter(wanted) {
                    let standing = trials.standing();
                    tally.passed += standing.passed;
                    tally.counted += standing.passed + standing.not_passed;
                }
                tally
            })
            .collect();
        Rate::of(&tallies)
    }
}

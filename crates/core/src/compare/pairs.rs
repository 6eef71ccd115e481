//! Pairs the cases of two runs by id and content, and their agents by name.

use std::collections::HashMap;

use proctor_record::event::{CaseTally, RunTally};

use crate::pass_rule::TrialCounts;
use crate::statistics::CaseTest;

/// The cases of two runs, paired.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairing {
    /// The paired cases by each paired agent, in the order of the new run.
    pub cells: Vec<CellPair>,
    /// The number of paired cases.
    pub cases: usize,
    /// The cases that only the new run has.
    pub added: Vec<UnpairedCase>,
    /// The cases that only the base has.
    pub removed: Vec<UnpairedCase>,
    /// The cases with other content in the new run. They are not compared.
    pub changed: Vec<UnpairedCase>,
    /// The known failures of the new run. They are not compared.
    pub known_failures: Vec<UnpairedCase>,
    /// The agents that only the new run has.
    pub added_agents: Vec<String>,
    /// The agents that only the base has.
    pub removed_agents: Vec<String>,
    /// The paired agents, by their names in the base and in the new run.
    pub agents: Vec<(String, String)>,
}

/// One case by one agent in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPair {
    /// The number of the case among the paired ones.
    pub case: usize,
    pub id: String,
    pub name: String,
    /// The agent's name in the new run.
    pub agent: String,
    pub base: TrialCounts,
    pub new: TrialCounts,
    /// The test of this pair alone; `None` if a run has fewer than two verdicts.
    pub test: Option<CaseTest>,
}

/// A case that is not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpairedCase {
    pub id: String,
    pub name: String,
}

impl CellPair {
    /// Whether both runs have a trial with a verdict.
    pub fn is_compared(&self) -> bool {
        self.base.counted() > 0 && self.new.counted() > 0
    }

    /// Whether the case passed every time, three times or more, and now never.
    pub(super) fn has_collapsed(&self) -> bool {
        let (base, new) = (self.base, self.new);
        base.passed >= 3 && base.passed == base.counted() && new.counted() > 0 && new.passed == 0
    }

    /// The change of the pass rate, new minus base; 0 if a run has no verdict.
    pub fn change(&self) -> f64 {
        let rate = |counts: TrialCounts| {
            let counted = counts.counted();
            (counted > 0).then(|| f64::from(counts.passed) / f64::from(counted))
        };
        match (rate(self.base), rate(self.new)) {
            (Some(base), Some(new)) => new - base,
            (None, _) | (_, None) => 0.0,
        }
    }
}

impl Pairing {
    pub fn of(base: &RunTally, new: &RunTally) -> Self {
        let mut pairing = Self::default();
        let agents = pairing.pair_agents(base, new);
        let mut of_base: HashMap<&str, &CaseTally> = base
            .cases
            .iter()
            .map(|case| (case.id.as_str(), case))
            .collect();
        for case in &new.cases {
            match of_base.remove(case.id.as_str()) {
                None => pairing.added.push(unpaired(case)),
                Some(before) if before.hash != case.hash => pairing.changed.push(unpaired(case)),
                Some(before) => {
                    let number = pairing.cases;
                    let is_known = |now: &usize| {
                        let agent = new.agents.get(*now);
                        agent.is_some_and(|agent| case.known_failures.contains(agent))
                    };
                    let cells = agents.iter().filter(|(_, now)| !is_known(now));
                    let cells = cells.filter_map(|(old, now)| {
                        Some(CellPair {
                            case: number,
                            id: case.id.clone(),
                            name: case.name.clone(),
                            agent: new.agents.get(*now)?.clone(),
                            base: counts(before.trials.get(*old)?),
                            new: counts(case.trials.get(*now)?),
                            test: None,
                        })
                    });
                    pairing.cells.extend(cells);
                    pairing.cases += 1;
                    if agents.iter().any(|(_, now)| is_known(now)) {
                        pairing.known_failures.push(unpaired(case));
                    }
                }
            }
        }
        let is_left = |case: &&CaseTally| of_base.contains_key(case.id.as_str());
        pairing.removed = base.cases.iter().filter(is_left).map(unpaired).collect();
        pairing
    }

    /// The indexes of the agents of both runs that are compared: those of the same name, or the only
    /// agent of each run.
    fn pair_agents(&mut self, base: &RunTally, new: &RunTally) -> Vec<(usize, usize)> {
        if let ([before], [now]) = (&base.agents[..], &new.agents[..]) {
            self.agents.push((before.clone(), now.clone()));
            return vec![(0, 0)];
        }
        let mut pairs = Vec::new();
        for (index, agent) in new.agents.iter().enumerate() {
            match base.agents.iter().position(|before| before == agent) {
                Some(before) => {
                    pairs.push((before, index));
                    self.agents.push((agent.clone(), agent.clone()));
                }
                None => self.added_agents.push(agent.clone()),
            }
        }
        let is_gone = |agent: &&String| !new.agents.contains(agent);
        self.removed_agents = base.agents.iter().filter(is_gone).cloned().collect();
        pairs
    }
}

fn unpaired(case: &CaseTally) -> UnpairedCase {
    UnpairedCase {
        id: case.id.clone(),
        name: case.name.clone(),
    }
}

fn counts([passed, not_passed, open]: &[u32; 3]) -> TrialCounts {
    TrialCounts {
        passed: *passed,
        not_passed: *not_passed,
        open: *open,
    }
}

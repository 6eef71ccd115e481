//! The results of each agent of a run, for comparison.
//!
//! The main type is [`AgentSummary`].

use std::time::Duration;

use proctor_record::model::Usage;

use super::{Counts, Summary, TrialResult};
use crate::pass_rule::CaseVerdict;
use crate::statistics::Rate;

/// The results of one agent of a run. A trial with several attempts counts once.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSummary<'a> {
    pub name: &'a str,
    pub counts: Counts,
    /// The pass rate; `None` if no trial counts.
    pub rate: Option<Rate>,
    /// The number of model replies.
    pub turns: u32,
    /// The token usage of its trials, as far as known.
    pub usage: Usage,
    /// The number of replies, or external agents, that did not report their token usage.
    pub unmetered: u32,
    /// The cost in US dollars; `None` if any price is unknown.
    pub cost_usd: Option<f64>,
    /// The median duration of the trials that count.
    pub median: Option<Duration>,
    /// The cases whose pass rule only this agent meets.
    pub alone: Vec<&'a str>,
    /// The cases whose pass rule only this agent misses.
    pub missed_alone: Vec<&'a str>,
}

impl Summary {
    /// All agents, in the order of the plan.
    pub fn by_agent(&self) -> Vec<AgentSummary<'_>> {
        let agents = self.plan.agents.iter();
        agents.map(|agent| self.of_agent(&agent.name)).collect()
    }

    fn of_agent<'a>(&'a self, name: &'a str) -> AgentSummary<'a> {
        let mut of = AgentSummary {
            name,
            counts: Counts::default(),
            rate: self.rate(Some(name)),
            turns: 0,
            usage: Usage::default(),
            unmetered: 0,
            cost_usd: Some(0.0),
            median: None,
            alone: self.apart(name, CaseVerdict::Met, CaseVerdict::Missed),
            missed_alone: self.apart(name, CaseVerdict::Missed, CaseVerdict::Met),
        };
        // Numbers, which need half the memory of durations.
        let mut times: Vec<u64> = Vec::new();
        for (_, agent, trial) in self.trials() {
            if agent.agent != name {
                continue;
            }
            of.counts.add(trial.outcome());
            if let Some(result) = &trial.result {
                of.take(result);
                times.push(result.micros());
            }
        }
        times.sort_unstable();
        of.median = median(&times);
        of
    }

    /// The cases with one verdict for this agent and the opposite one for all others.
    fn apart(&self, name: &str, own: CaseVerdict, others: CaseVerdict) -> Vec<&str> {
        let is_apart = |case: &&super::CaseSummary| {
            case.agents.len() > 1
                && case.agents.iter().all(|trials| {
                    let expected = if trials.agent == name { own } else { others };
                    trials.rule_verdict(&case.case) == expected
                })
        };
        let cases = self.cases.iter().filter(is_apart);
        cases.map(|case| case.case.name.as_str()).collect()
    }
}

impl AgentSummary<'_> {
    fn take(&mut self, result: &TrialResult) {
        let spent = result.agent();
        self.turns += spent.turns;
        self.usage.add(&spent.usage);
        self.unmetered += spent.unmetered;
        self.cost_usd = self.cost_usd.zip(spent.cost_usd).map(|(a, b)| a + b);
    }
}

/// The middle value, or the mean of the two middle values. The values are microseconds.
pub(crate) fn median(sorted: &[u64]) -> Option<Duration> {
    let (high, low) = (sorted.len() / 2, sorted.len().saturating_sub(1) / 2);
    let time = |index: usize| sorted.get(index).copied().map(Duration::from_micros);
    Some((time(low)? + time(high)?) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let check = |micros: &[u64], nanos: Option<u64>| {
            assert_eq!(median(micros), nanos.map(Duration::from_nanos));
        };
        check(&[], None);
        check(&[4], Some(4_000));
        check(&[4, 8], Some(6_000));
        check(&[4, 7], Some(5_500));
        check(&[4, 8, 100], Some(8_000));
    }
}

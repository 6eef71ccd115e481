//! What each agent of a run came to, beside the others.
//!
//! Its main type is [`AgentSummary`].

use std::time::Duration;

use super::{Counts, Summary, TrialResult};
use crate::model::Usage;
use crate::pass_rule::CaseVerdict;
use crate::statistics::Rate;

/// What one agent of a run came to. Of a trial with several attempts, the one that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSummary<'a> {
    /// Its name.
    pub name: &'a str,
    /// How its trials ended.
    pub counts: Counts,
    /// Its pass rate; `None` if no trial counts.
    pub rate: Option<Rate>,
    /// How often its model replied.
    pub turns: u32,
    /// How many tokens its trials took, as far as they tell.
    pub usage: Usage,
    /// How many replies, or agents, do not tell.
    pub unmetered: u32,
    /// What they cost in US dollars; `None` if the price of any is unknown.
    pub cost_usd: Option<f64>,
    /// The median of how long its trials took, those that count.
    pub median: Option<Duration>,
    /// The cases whose rule it alone keeps.
    pub alone: Vec<&'a str>,
    /// The cases whose rule it alone misses.
    pub missed_alone: Vec<&'a str>,
}

impl Summary {
    /// Every agent of the plan, in its order.
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
        let mut times = Vec::new();
        for (_, agent, trial) in self.trials() {
            if agent.agent != name {
                continue;
            }
            of.counts.add(trial.outcome());
            if let Some(result) = &trial.result {
                of.take(result);
                times.push(result.duration);
            }
        }
        times.sort_unstable();
        of.median = median(&times);
        of
    }

    /// The cases of which one agent came to one verdict, and all the others to the opposite.
    fn apart(&self, name: &str, own: CaseVerdict, others: CaseVerdict) -> Vec<&str> {
        let is_apart = |case: &&super::CaseSummary| {
            case.agents.len() > 1
                && case.agents.iter().all(|trials| {
                    let expected = if trials.agent == name { own } else { others };
                    trials.verdict(&case.case) == expected
                })
        };
        let cases = self.cases.iter().filter(is_apart);
        cases.map(|case| case.case.name.as_str()).collect()
    }
}

impl AgentSummary<'_> {
    fn take(&mut self, result: &TrialResult) {
        let spent = &result.agent;
        self.turns += spent.turns;
        self.usage.add(&spent.usage);
        self.unmetered += spent.unmetered;
        self.cost_usd = self.cost_usd.zip(spent.cost_usd).map(|(a, b)| a + b);
    }
}

/// The middle of what is sorted, or the mean of the two in the middle.
fn median(sorted: &[Duration]) -> Option<Duration> {
    let (high, low) = (sorted.len() / 2, sorted.len().saturating_sub(1) / 2);
    Some((*sorted.get(low)? + *sorted.get(high)?) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let check = |micros: &[u64], expected: Option<u64>| {
            let times: Vec<Duration> = micros.iter().copied().map(Duration::from_micros).collect();
            assert_eq!(median(&times), expected.map(Duration::from_micros));
        };
        check(&[], None);
        check(&[4], Some(4));
        check(&[4, 8], Some(6));
        check(&[4, 8, 100], Some(8));
    }
}

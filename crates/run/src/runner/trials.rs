//! The trials of a run, in little memory: a run may have a hundred thousand.
//!
//! Main types: [`TrialList`], which holds the trials of a case and agent as one range of numbers, [`TrialStems`], which
//! names their files, and [`TrialOutcomes`], which knows trials by a hash of these names.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use proctor_core::suite::{Limits, Suite};
use proctor_record::event::Outcome;
use proctor_record::record::{trial_name, trial_stem};
use proctor_record::redact::Redactor;

use super::TrialSpec;

/// Trials in the order of the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrialList {
    ranges: Vec<TrialRange>,
    /// What trials have in common.
    terms: Vec<TrialTerms>,
    len: u32,
}

/// Trials of a case and an agent whose numbers follow one another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TrialRange {
    /// The position of the first trial.
    start: u32,
    case: u32,
    agent: u32,
    /// The number of the first trial.
    repeat: u32,
    attempt: u32,
    /// The position of the terms.
    terms: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct TrialTerms {
    limits: Limits,
    parallel: bool,
    known_failure: bool,
}

impl TrialList {
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The trial at a position.
    pub fn get(&self, position: usize) -> Option<TrialSpec> {
        let position = u32::try_from(position).ok().filter(|at| *at < self.len)?;
        let after = self.ranges.partition_point(|range| range.start <= position);
        Some(self.spec(&self.ranges[after.checked_sub(1)?], position))
    }

    pub fn iter(&self) -> impl Iterator<Item = TrialSpec> {
        let ends = self.ranges.iter().skip(1).map(|range| range.start);
        let ends = ends.chain(std::iter::once(self.len));
        let ranges = self.ranges.iter().zip(ends);
        ranges.flat_map(|(range, end)| (range.start..end).map(|at| self.spec(range, at)))
    }

    fn spec(&self, range: &TrialRange, position: u32) -> TrialSpec {
        let TrialTerms {
            limits,
            parallel,
            known_failure,
        } = self.terms[range.terms as usize];
        TrialSpec {
            case: range.case as usize,
            agent: range.agent as usize,
            repeat: range.repeat + (position - range.start),
            attempt: range.attempt,
            limits,
            parallel,
            known_failure,
        }
    }

    fn push(&mut self, spec: &TrialSpec) {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let terms = TrialTerms {
            limits: spec.limits,
            parallel: spec.parallel,
            known_failure: spec.known_failure,
        };
        if self.terms.last() != Some(&terms) {
            self.terms.push(terms);
        }
        let range = TrialRange {
            start: self.len,
            case: short(spec.case),
            agent: short(spec.agent),
            repeat: spec.repeat,
            attempt: spec.attempt,
            terms: short(self.terms.len() - 1),
        };
        let continues = |last: &TrialRange| {
            let next = TrialRange {
                start: range.start,
                repeat: last.repeat + (range.start - last.start),
                ..*last
            };
            next == range
        };
        if !self.ranges.last().is_some_and(continues) {
            self.ranges.push(range);
        }
        self.len += 1;
    }
}

impl Extend<TrialSpec> for TrialList {
    fn extend<T: IntoIterator<Item = TrialSpec>>(&mut self, trials: T) {
        trials.into_iter().for_each(|spec| self.push(&spec));
    }
}

impl FromIterator<TrialSpec> for TrialList {
    fn from_iter<T: IntoIterator<Item = TrialSpec>>(trials: T) -> Self {
        let mut list = Self::default();
        list.extend(trials);
        list
    }
}

/// The names of the files of trials, without attempt and extension.
#[derive(Debug)]
pub struct TrialStems {
    cases: Vec<String>,
    agents: Vec<String>,
    redactor: Redactor,
}

impl TrialStems {
    pub fn new(suite: &Suite, redactor: &Redactor) -> Self {
        Self {
            cases: suite.cases.iter().map(|case| case.id.0.clone()).collect(),
            agents: suite
                .agents
                .iter()
                .map(|agent| agent.name.clone())
                .collect(),
            redactor: redactor.clone(),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_names(cases: &[&str], agents: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            cases: owned(cases),
            agents: owned(agents),
            redactor: Redactor::default(),
        }
    }

    pub fn stem(&self, spec: &TrialSpec) -> String {
        let name = trial_name(
            &self.cases[spec.case],
            &self.agents[spec.agent],
            spec.repeat,
        );
        trial_stem(&self.redactor.text(&name))
    }
}

/// The latest attempt and its outcome for each trial, by the stem of the trial's files. The stems themselves would need
/// more memory than everything else that is known of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialOutcomes(HashMap<u64, (u32, Outcome)>);

impl TrialOutcomes {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, stem: &str, attempt: u32, outcome: Outcome) {
        self.0.insert(hash(stem), (attempt, outcome));
    }

    pub fn outcome(&self, stem: &str) -> Option<Outcome> {
        self.0.get(&hash(stem)).map(|(_, outcome)| *outcome)
    }

    /// The latest attempt of a trial and its outcome, which are then forgotten.
    pub fn remove(&mut self, stem: &str) -> Option<(u32, Outcome)> {
        self.0.remove(&hash(stem))
    }
}

fn hash(stem: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    stem.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(case: usize, agent: usize, repeat: u32, attempt: u32) -> TrialSpec {
        TrialSpec {
            case,
            agent,
            repeat,
            attempt,
            limits: Limits {
                max_turns: u32::try_from(case).ok(),
                ..Limits::default()
            },
            parallel: case == 1,
            known_failure: agent == 1,
        }
    }

    #[test]
    fn a_list_holds_the_trials_in_order() {
        let check = |specs: &[TrialSpec], ranges: usize| {
            let list: TrialList = specs.iter().cloned().collect();
            assert_eq!(
                (list.len(), list.is_empty()),
                (specs.len(), specs.is_empty())
            );
            assert_eq!(list.iter().collect::<Vec<_>>(), specs);
            let by_position: Vec<_> = (0..specs.len()).filter_map(|at| list.get(at)).collect();
            assert_eq!(by_position, specs);
            assert_eq!(list.get(specs.len()), None);
            assert_eq!(list.ranges.len(), ranges, "{specs:?}");
        };
        check(&[], 0);
        let cells = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let all = cells
            .iter()
            .flat_map(|(case, agent)| (1..=9).map(|n| spec(*case, *agent, n, 1)));
        check(&all.collect::<Vec<_>>(), 4);
        // What is left of a run: some trials have ended, others have an attempt.
        let left = [(1, 1), (2, 1), (4, 1), (5, 2), (6, 2), (7, 1), (3, 1)];
        check(
            &left.map(|(repeat, attempt)| spec(0, 0, repeat, attempt)),
            5,
        );
    }

    #[test]
    fn a_later_outcome_replaces_an_earlier_one() {
        let mut all = TrialOutcomes::default();
        all.insert("a", 1, Outcome::Errored);
        all.insert("b", 1, Outcome::Passed);
        all.insert("a", 2, Outcome::Passed);
        assert_eq!(all.outcome("a"), Some(Outcome::Passed));
        assert_eq!(all.outcome("c"), None);
        assert_eq!(all.remove("a"), Some((2, Outcome::Passed)));
        assert_eq!(all.remove("a"), None);
        assert!(!all.is_empty());
        assert_eq!(all.remove("b"), Some((1, Outcome::Passed)));
        assert!(all.is_empty());
    }
}

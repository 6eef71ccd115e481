//! The plan of a run: which cases run, how often, and within which limits.
//!
//! Its main type is [`Plan`].

mod suggestions;

use std::collections::{BTreeMap, BTreeSet};

use crate::pattern::Pattern;
use crate::suite::{Case, LimitFlags, Limits, Suite};

pub use self::suggestions::similar;

/// The options of the command line for a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    pub selection: Selection,
    /// The number of runs, which overrides the cases' own.
    pub runs: Option<u32>,
    pub limits: LimitFlags,
}

/// The cases to run.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub labels: LabelSelector,
    pub name: Option<Pattern>,
    /// Only the cases with these ids, if set.
    pub ids: Option<BTreeSet<String>>,
}

/// Labels that a case must have: one of the values of every key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(BTreeMap<String, Vec<String>>);

/// Why a text is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid label `{0}`: write `key=value`, and separate several with commas")]
pub struct LabelSelectorError(String);

impl LabelSelector {
    /// Reads `k=v,k=w,j=x`: the same key means either value, different keys mean both.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut selector = Self::default();
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()))
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| LabelSelectorError(pair.to_owned()))?;
            let values = selector.0.entry(key.to_owned()).or_default();
            values.push(value.to_owned());
        }
        Ok(selector)
    }

    /// Whether it selects every case.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels match. An absent label does not match.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0
            .iter()
            .all(|(key, values)| labels.get(key).is_some_and(|value| values.contains(value)))
    }
}

impl Selection {
    /// Whether a case is meant.
    pub fn matches(&self, case: &Case) -> bool {
        self.labels.matches(&case.labels)
            && self
                .name
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(&case.name))
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&case.id.0))
    }
}

#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The cases, in order.
    pub cases: Vec<CasePlan<'a>>,
    /// The number of agents that run each case.
    pub agents: usize,
}

/// A case, and how it is run.
#[derive(Debug, Clone)]
pub struct CasePlan<'a> {
    pub case: &'a Case,
    /// The number of runs per agent.
    pub runs: u32,
    pub limits: Limits,
}

impl<'a> Plan<'a> {
    pub fn new(suite: &'a Suite, options: &PlanOptions) -> Self {
        let selected = suite
            .cases
            .iter()
            .filter(|case| options.selection.matches(case));
        Self {
            cases: selected
                .map(|case| CasePlan {
                    case,
                    runs: options.runs.or(case.runs).unwrap_or(1),
                    limits: Limits::settle(&options.limits, &case.limits, &suite.default_limits),
                })
                .collect(),
            agents: suite.agents.len(),
        }
    }

    /// The total number of trials.
    pub fn trials(&self) -> u64 {
        let runs: u64 = self.cases.iter().map(|case| u64::from(case.runs)).sum();
        runs * self.agents as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_means_either_and_different_keys_mean_both() {
        let labels = |text: &str| -> BTreeMap<String, String> {
            let pairs = text.split_whitespace().filter_map(|p| p.split_once('='));
            pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
        };
        let check = |selector: &str, case: &str, expected: bool| {
            let selector = LabelSelector::parse(selector).unwrap();
            assert_eq!(
                selector.matches(&labels(case)),
                expected,
                "{selector:?} on {case}"
            );
        };
        check("", "", true);
        check("a=1", "a=1", true);
        check("a=1", "a=2", false);
        check("a=1", "", false);
        check("a=1,a=2", "a=2", true);
        check("a=1,b=2", "a=1", false);
        check("a=1,b=2", "a=1 b=2", true);
        check("a=1,a=3,b=2", "a=3 b=2 c=4", true);
        check(" a = 1 , ", "a=1", true);
        check("a=", "a=1", false);
    }

    #[test]
    fn invalid_labels_are_refused() {
        for text in ["a", "a=1,b", "=1"] {
            let wrong = text.rsplit(',').next().unwrap();
            assert_eq!(
                LabelSelector::parse(text),
                Err(LabelSelectorError(wrong.to_owned()))
            );
        }
    }
}

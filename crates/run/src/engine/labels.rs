//! The names of trials that the progress of a run shows.
//!
//! The main type is [`TrialLabels`]. A name is made when it is shown, so that those of a large run are never all in memory.

use std::collections::HashMap;
use std::sync::Arc;

use proctor_core::suite::Suite;
use proctor_record::redact::Redactor;

use crate::runner::TrialList;

/// A display name for each trial, redacted.
#[derive(Debug, Default)]
pub struct TrialLabels {
    suites: Vec<SuiteLabels>,
}

/// The names of the trials of one suite.
#[derive(Debug)]
struct SuiteLabels {
    /// The suite, if there are several.
    prefix: String,
    trials: Arc<TrialList>,
    cases: Vec<String>,
    agents: Vec<String>,
    /// The number of trials by case and agent.
    counts: HashMap<(usize, usize), usize>,
    redactor: Redactor,
}

impl TrialLabels {
    pub(super) fn new(suite: &Suite, trials: Arc<TrialList>, redactor: Redactor) -> Self {
        let mut counts: HashMap<(usize, usize), usize> = HashMap::new();
        for spec in trials.iter() {
            *counts.entry((spec.case, spec.agent)).or_default() += 1;
        }
        let labels = SuiteLabels {
            prefix: String::new(),
            trials,
            cases: suite.cases.iter().map(|case| case.name.clone()).collect(),
            agents: suite
                .agents
                .iter()
                .map(|agent| agent.name.clone())
                .collect(),
            counts,
            redactor,
        };
        Self {
            suites: vec![labels],
        }
    }

    /// Adds the trials of another suite, by its name.
    pub(super) fn add_suite(&mut self, name: &str, labels: Self) {
        let named = labels.suites.into_iter().map(|labels| SuiteLabels {
            prefix: format!("{name}: "),
            ..labels
        });
        self.suites.extend(named);
    }

    /// The number of trials.
    pub fn count(&self) -> usize {
        self.suites.iter().map(|suite| suite.trials.len()).sum()
    }

    /// The name of a trial by its position; empty if there is no such trial.
    pub fn label(&self, mut trial: usize) -> String {
        for suite in &self.suites {
            if let Some(label) = suite.label(trial) {
                return label;
            }
            trial -= suite.trials.len();
        }
        String::new()
    }
}

impl SuiteLabels {
    fn label(&self, trial: usize) -> Option<String> {
        let spec = self.trials.get(trial)?;
        let mut name = self.cases[spec.case].clone();
        if spec.repeat > 1 || self.counts[&(spec.case, spec.agent)] > 1 {
            name.push_str(&format!(" #{}", spec.repeat));
        }
        if self.agents.len() > 1 {
            name.push_str(&format!(" by {}", self.agents[spec.agent]));
        }
        Some(format!("{}{}", self.prefix, self.redactor.text(&name)))
    }
}

//! Part of a run: the trials that a filter selects.
//!
//! The main type is [`TrialFilter`]. Totals of a part are those of its trials. Whether a case meets its pass rule still
//! depends on all its trials: five failures of a thousand trials are not a case that always fails.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new outcome must not be left out by default"
)]

use std::collections::BTreeMap;

use proctor_record::event::{Outcome, PlannedCase, TrialStarted};
use proctor_record::fold::ModelActivity;
use proctor_record::index::{self, IndexScrutiny};
use proctor_record::record::{RecordError, RunReader};

use super::{AgentTrials, CaseSummary, Slots, Summary, TrialSummary};
use crate::pass_rule::TrialCounts;
use crate::pattern::Pattern;
use crate::plan::LabelSelector;

/// The trials to show. Without any condition, all of them.
#[derive(Debug, Clone, Default)]
pub struct TrialFilter {
    /// Only trials that failed, timed out or errored.
    pub failed: bool,
    /// Only cases whose name matches.
    pub case: Option<Pattern>,
    /// Only these agents, by their names with or without the model; all if empty.
    pub agents: Vec<String>,
    /// Only cases with these labels.
    pub labels: Option<LabelSelector>,
}

impl TrialFilter {
    pub fn is_empty(&self) -> bool {
        !self.failed && self.case.is_none() && self.agents.is_empty() && self.labels.is_none()
    }

    /// Whether a text names an agent, with or without the model: `codex (openai:gpt-5)`, `codex`.
    pub fn names_agent(text: &str, agent: &str) -> bool {
        text == agent || agent.split(" (").next() == Some(text)
    }

    fn selects_case(&self, case: &PlannedCase) -> bool {
        let name = self.case.as_ref();
        let labels = self.labels.as_ref();
        name.is_none_or(|pattern| pattern.is_match(&case.name))
            && labels.is_none_or(|labels| labels.matches(&case.labels))
    }

    fn selects_agent(&self, agent: &str) -> bool {
        let mut names = self.agents.iter();
        self.agents.is_empty() || names.any(|name| Self::names_agent(name, agent))
    }

    fn selects_outcome(&self, outcome: Option<Outcome>) -> bool {
        if !self.failed {
            return true;
        }
        match outcome {
            Some(Outcome::Failed | Outcome::TimedOut | Outcome::Errored) => true,
            Some(Outcome::Passed | Outcome::Cancelled) | None => false,
        }
    }
}

impl Summary {
    /// The part of this run that a filter selects; `None` if it selects no trial.
    ///
    /// Results are those of this summary. The index is read again for the totals only, so an index that this summary
    /// did not trust can't change an outcome.
    pub fn part(&self, run: &RunReader, filter: &TrialFilter) -> Result<Option<Self>, RecordError> {
        let mut part = self.without_trials();
        part.plan.not_run.clear();
        part.plan
            .agents
            .retain(|agent| filter.selects_agent(&agent.name));
        for case in self
            .cases
            .iter()
            .filter(|case| filter.selects_case(&case.case))
        {
            let agents = case
                .agents
                .iter()
                .filter(|t| filter.selects_agent(&t.agent));
            let agents: Vec<AgentTrials> = agents.map(|trials| selected(trials, filter)).collect();
            if agents.iter().any(|trials| !trials.trials.is_empty()) {
                part.cases.push(CaseSummary {
                    case: case.case.clone(),
                    agents,
                });
            }
        }
        if part.cases.is_empty() {
            return Ok(None);
        }
        let slots = part.slots();
        index::each(run, IndexScrutiny::Length, |_, entry| {
            let trial = entry.attempt.trial.as_ref();
            if trial.is_some_and(|trial| self.is_in(&part, trial, &slots)) {
                part.add_totals(&entry.attempt);
            }
        })?;
        Ok(Some(part))
    }

    fn without_trials(&self) -> Self {
        Self {
            started: self.started.clone(),
            plan: self.plan.clone(),
            cases: Vec::new(),
            servers: self.servers.clone(),
            steps: self.steps.clone(),
            transports: BTreeMap::new(),
            findings: BTreeMap::new(),
            agent: ModelActivity::default(),
            judge: ModelActivity::default(),
            unplanned: 0,
            unknown_events: 0,
            ended: self.ended.clone(),
            changed_trials: self.changed_trials.clone(),
            duration: self.duration,
        }
    }

    /// Whether a trial of this run is in a part of it.
    fn is_in(&self, part: &Self, trial: &TrialStarted, slots: &Slots) -> bool {
        let agent = self.agent_of(trial.agent.clone());
        let slot = slots.get(&(trial.case.clone(), agent));
        slot.is_some_and(|(case, agent)| {
            let trials = &part.cases[*case].agents[*agent].trials;
            trials.iter().any(|shown| shown.repeat == trial.repeat)
        })
    }
}

/// The selected trials of a cell, and the number of the others.
fn selected(trials: &AgentTrials, filter: &TrialFilter) -> AgentTrials {
    let (selected, others): (Vec<&TrialSummary>, Vec<_>) = trials
        .trials
        .iter()
        .partition(|trial| filter.selects_outcome(trial.outcome()));
    AgentTrials {
        agent: trials.agent.clone(),
        trials: selected.into_iter().cloned().collect(),
        left_out: TrialCounts::of(others.into_iter().map(TrialSummary::outcome)),
        known_failure: trials.known_failure.clone(),
    }
}

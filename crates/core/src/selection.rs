//! The results of selection rows: how often each tool was chosen when it was expected, and what was
//! chosen in its place.
//!
//! Its main type is [`SelectionReport`], a function of a [`Summary`]. It
//! counts trials that have a verdict. A tool is correct if it was expected, whatever its arguments.

use std::collections::{BTreeMap, BTreeSet};

use proctor_record::event::{Outcome, ToolName};

use crate::statistics::Rate;
use crate::summary::Summary;
pub use proctor_record::tool_choice::ToolChoice;

/// What a model chose, or should have chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    Tool(ToolName),
    /// A tool that no server offers.
    Invented,
    /// An answer without a call.
    NoCall,
}

/// The selection results of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionReport {
    pub agent: String,
    /// The number of trials with a verdict.
    pub trials: u32,
    /// The pass rate of the rows, with its interval.
    pub rate: Option<Rate>,
    /// The tools that were expected or chosen, in alphabetical order.
    pub tools: Vec<ToolScore>,
    /// How often each choice was made (second) where another, or the same, was expected (first).
    pub confusion: BTreeMap<(Choice, Choice), u32>,
    /// The cases in which a call was expected and the model answered without one, with their number
    /// of trials.
    pub unanswered: BTreeMap<String, u32>,
    /// The names that the model invented, with their number of trials.
    pub invented: BTreeMap<String, u32>,
    /// The trials in which the tool is right and the check failed, because of its arguments.
    pub wrong_arguments: u32,
}

/// How well one tool was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolScore {
    pub choice: Choice,
    /// Trials in which it was expected and chosen.
    pub hits: u32,
    /// Trials in which it was chosen and not expected.
    pub false_hits: u32,
    /// Trials in which it was expected and no expected tool was chosen.
    pub misses: u32,
    /// What was chosen in its place, most frequent first.
    pub stolen_by: Vec<(Choice, u32)>,
}

impl ToolScore {
    /// The share of its choices that were right; `None` if it was never chosen.
    pub fn precision(&self) -> Option<f64> {
        share(self.hits, self.false_hits)
    }

    /// The share of its trials in which it was chosen; `None` if it was never expected.
    pub fn recall(&self) -> Option<f64> {
        share(self.hits, self.misses)
    }
}

fn share(part: u32, rest: u32) -> Option<f64> {
    let all = part + rest;
    (all > 0).then(|| f64::from(part) / f64::from(all))
}

impl SelectionReport {
    /// The results of each agent that did selection rows, in the order of the plan.
    pub fn of(summary: &Summary) -> Vec<Self> {
        let agents = summary.plan.agents.iter();
        agents
            .filter_map(|agent| Self::of_agent(summary, &agent.name))
            .collect()
    }

    fn of_agent(summary: &Summary, agent: &str) -> Option<Self> {
        let mut counts = Tally::default();
        for (case, trials, trial) in summary.trials() {
            if trials.agent != agent {
                continue;
            }
            let Some(result) = &trial.result else {
                continue;
            };
            let passed = match result.outcome {
                Outcome::Passed => true,
                Outcome::Failed => false,
                // Without a verdict, a choice says nothing.
                Outcome::TimedOut | Outcome::Errored | Outcome::Cancelled => continue,
            };
            if let Some(choice) = &result.selection {
                counts.add(&case.case.name, choice, passed);
            }
        }
        (counts.trials > 0).then(|| counts.report(agent, summary))
    }
}

/// The counts of one agent.
#[derive(Default)]
struct Tally {
    trials: u32,
    confusion: BTreeMap<(Choice, Choice), u32>,
    misses: BTreeMap<Choice, u32>,
    unanswered: BTreeMap<String, u32>,
    invented: BTreeMap<String, u32>,
    wrong_arguments: u32,
    cases: BTreeSet<String>,
}

impl Tally {
    fn add(&mut self, case: &str, choice: &ToolChoice, passed: bool) {
        self.trials += 1;
        self.cases.insert(case.to_owned());
        let chosen = choices(choice);
        let expected: Vec<Choice> = if choice.expected.is_empty() {
            vec![Choice::NoCall]
        } else {
            choice.expected.iter().cloned().map(Choice::Tool).collect()
        };
        let hits: Vec<&Choice> = chosen.iter().filter(|c| expected.contains(c)).collect();
        // A miss belongs to the expected tool that was chosen besides, or to the first one.
        let Some(meant) = hits.first().copied().or(expected.first()).cloned() else {
            return;
        };
        for one in &chosen {
            let is_hit = expected.contains(one);
            if is_hit {
                *self
                    .confusion
                    .entry((one.clone(), one.clone()))
                    .or_default() += 1;
            } else if hits.is_empty() || !(choice.others_allowed && passed) {
                *self
                    .confusion
                    .entry((meant.clone(), one.clone()))
                    .or_default() += 1;
            }
        }
        if hits.is_empty() {
            *self.misses.entry(meant).or_default() += 1;
        } else if !passed && hits.len() == chosen.len() && !choice.expected.is_empty() {
            self.wrong_arguments += 1;
        }
        if chosen == [Choice::NoCall] && !choice.expected.is_empty() {
            *self.unanswered.entry(case.to_owned()).or_default() += 1;
        }
        for name in &choice.invented {
            *self.invented.entry(name.clone()).or_default() += 1;
        }
    }

    fn report(self, agent: &str, summary: &Summary) -> SelectionReport {
        let named: BTreeSet<&Choice> = self
            .confusion
            .keys()
            .flat_map(|(expected, chosen)| [expected, chosen])
            .collect();
        let tools = named
            .into_iter()
            .filter(|choice| **choice != Choice::Invented)
            .map(|choice| self.score(choice))
            .collect();
        SelectionReport {
            agent: agent.to_owned(),
            trials: self.trials,
            rate: summary.rate_of(Some(agent), |case| self.cases.contains(&case.name)),
            tools,
            confusion: self.confusion,
            unanswered: self.unanswered,
            invented: self.invented,
            wrong_arguments: self.wrong_arguments,
        }
    }

    fn score(&self, tool: &Choice) -> ToolScore {
        let mut score = ToolScore {
            choice: tool.clone(),
            hits: 0,
            false_hits: 0,
            misses: self.misses.get(tool).copied().unwrap_or(0),
            stolen_by: Vec::new(),
        };
        for ((expected, chosen), count) in &self.confusion {
            match (expected == tool, chosen == tool) {
                (true, true) => score.hits += count,
                (true, false) => score.stolen_by.push((chosen.clone(), *count)),
                (false, true) => score.false_hits += count,
                (false, false) => {}
            }
        }
        // Stable, so that equal counts stay in alphabetical order.
        score
            .stolen_by
            .sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        score
    }
}

fn choices(choice: &ToolChoice) -> Vec<Choice> {
    let mut chosen: Vec<Choice> = choice.chosen.iter().cloned().map(Choice::Tool).collect();
    if !choice.invented.is_empty() {
        chosen.push(Choice::Invented);
    }
    if chosen.is_empty() {
        chosen.push(Choice::NoCall);
    }
    chosen
}

#[cfg(test)]
mod tests;

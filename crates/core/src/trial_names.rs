//! The trials of a run by the names that reports print: `case`, `case 4`, `agent/case 4`.
//!
//! Main functions: [`load`] and [`select`]. Names come from the index, so no trial is opened for its name.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{CheckPlace, EventKind, PlannedCase, TrialStarted};
use crate::hint::nearest;
use crate::index;
use crate::record::{RecordError, RunReader, TrialFile};

/// One attempt at a trial, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTrial {
    pub file: TrialFile,
    /// The case, as reports name it.
    pub case: String,
    /// The case, as the plan identifies it.
    pub case_id: String,
    pub agent: Option<String>,
    pub repeat: u32,
    /// The number of trials that were planned for the case and the agent.
    pub runs: u32,
    /// Where the checks of the case are written. All trials of a case share the list.
    pub places: Arc<[CheckPlace]>,
}

/// A planned case, and where its checks are written.
type CasePlan = (PlannedCase, Arc<[CheckPlace]>);

impl NamedTrial {
    fn new(
        file: TrialFile,
        started: Option<TrialStarted>,
        plan: &HashMap<String, CasePlan>,
    ) -> Self {
        let Some(started) = started else {
            return Self {
                case: file.stem.clone(),
                case_id: file.stem.clone(),
                file,
                agent: None,
                repeat: 1,
                runs: 1,
                places: Arc::default(),
            };
        };
        let planned = plan.get(&started.case);
        Self {
            file,
            case: planned
                .map_or(&started.case, |(case, _)| &case.name)
                .clone(),
            case_id: started.case,
            agent: started.agent,
            repeat: started.repeat,
            runs: planned.map_or(1, |(case, _)| case.runs),
            places: planned
                .map(|(_, places)| Arc::clone(places))
                .unwrap_or_default(),
        }
    }

    /// The names that mean this trial alone, or all trials of its case.
    fn labels(&self) -> Vec<String> {
        let mut cases = Vec::new();
        // Reports show `llm-agent (openai:gpt-5)`; the part before the model is enough.
        let agent = self.agent.as_deref().unwrap_or_default();
        let short = agent.split(" (").next().unwrap_or(agent);
        for case in [&self.case, &self.case_id] {
            cases.extend([
                case.clone(),
                format!("{agent}/{case}"),
                format!("{short}/{case}"),
            ]);
        }
        let numbered: Vec<String> = cases
            .iter()
            .map(|case| format!("{case} {}", self.repeat))
            .collect();
        cases.extend(numbered);
        cases
    }

    /// Whether the text is in the name of the trial's file or case.
    pub fn contains(&self, text: &str) -> bool {
        self.file.stem.contains(text) || self.case_id.contains(text) || self.case.contains(text)
    }
}

/// All trials of a run, in natural order: `case 2` comes before `case 10`.
pub fn load(run: &RunReader) -> Result<Vec<NamedTrial>, RecordError> {
    let mut plan = HashMap::new();
    for event in run.events()? {
        if let EventKind::RunPlanned(planned) = event?.event {
            plan.extend(planned.cases.into_iter().map(|case| {
                let places = Arc::from(case.places.clone());
                (case.id.clone(), (case, places))
            }));
        }
    }
    let mut trials = Vec::new();
    for (file, started) in index::identities(run)? {
        trials.push(NamedTrial::new(file, started, &plan));
    }
    trials.sort_by(|a, b| {
        natural(&a.case, &b.case)
            .then_with(|| a.case_id.cmp(&b.case_id))
            .then_with(|| a.agent.cmp(&b.agent))
            .then_with(|| (a.repeat, a.file.attempt).cmp(&(b.repeat, b.file.attempt)))
    });
    Ok(trials)
}

/// The trials that a text names: by a whole name, or else by part of one.
pub fn select(trials: Vec<NamedTrial>, text: &str) -> Result<Vec<NamedTrial>, TrialNameError> {
    let is_named = |trial: &NamedTrial| trial.labels().iter().any(|label| label == text);
    let is_whole = trials.iter().any(is_named);
    let mut labels: Vec<String> = trials.iter().flat_map(NamedTrial::labels).collect();
    let is_meant = |trial: &NamedTrial| {
        if is_whole {
            is_named(trial)
        } else {
            trial.contains(text)
        }
    };
    let selected: Vec<NamedTrial> = trials.into_iter().filter(is_meant).collect();
    if !selected.is_empty() {
        return Ok(selected);
    }
    labels.dedup();
    Err(TrialNameError {
        text: text.to_owned(),
        nearest: nearest(text, labels.iter().map(String::as_str)).map(str::to_owned),
    })
}

/// No trial of the run has the name.
#[derive(Debug, thiserror::Error)]
#[error("trial `{text}` not found in the run{}", nearest.as_ref().map_or(String::new(), |name| format!("; did you mean `{name}`?")))]
pub struct TrialNameError {
    pub text: String,
    /// The most similar name.
    pub nearest: Option<String>,
}

/// Compares texts with their numbers taken as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (left, right) = (chunk(a), chunk(b));
        if left.is_empty() || right.is_empty() {
            return left.len().cmp(&right.len());
        }
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = if is_number(left) && is_number(right) {
            let (l, r) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
            l.len()
                .cmp(&r.len())
                .then_with(|| l.cmp(r))
                .then_with(|| left.cmp(right))
        } else {
            left.cmp(right)
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (&a[left.len()..], &b[right.len()..]);
    }
}

/// The digits, or the other characters, that a text begins with.
fn chunk(text: &str) -> &str {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != is_digit);
    &text[..end.unwrap_or(text.len())]
}

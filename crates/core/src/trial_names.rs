//! The trials of a run by the names that reports print: `case`, `case 4`, `agent/case 4`.
//!
//! Main functions: [`load`], [`containing`] and [`find`]. Names come from the index, so no trial is opened for its name.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use proctor_record::event::{CheckPlace, EventKind, PlannedCase, TrialStarted};
use proctor_record::hint::nearest;
use proctor_record::index;
use proctor_record::record::{RecordError, RunReader, TrialFile};

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
    fn labels(&self) -> impl Iterator<Item = String> {
        let (agent, short) = self.agent_names();
        let cases = [&self.case, &self.case_id].map(|case| {
            [
                case.clone(),
                format!("{agent}/{case}"),
                format!("{short}/{case}"),
            ]
        });
        let cases = cases.concat();
        let numbered: Vec<String> = cases
            .iter()
            .map(|case| format!("{case} {}", self.repeat))
            .collect();
        cases.into_iter().chain(numbered)
    }

    /// Whether the text is one of its labels.
    fn is_named(&self, text: &str) -> bool {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let numbered = text.rsplit_once(' ').filter(|(_, end)| number(end));
        let repeat =
            |(case, end): (&str, &str)| end == self.repeat.to_string() && self.is_case(case);
        self.is_case(text) || numbered.is_some_and(repeat)
    }

    /// Whether the text names all trials of its case.
    fn is_case(&self, text: &str) -> bool {
        let (agent, short) = self.agent_names();
        [&self.case, &self.case_id].iter().any(|case| {
            let before = text.strip_suffix(case.as_str());
            before.is_some_and(|before| match before.strip_suffix('/') {
                Some(named) => named == agent || named == short,
                None => before.is_empty(),
            })
        })
    }

    /// The agent with and without its model: reports show `llm-agent (openai:gpt-5)`, and the part before the model is enough.
    fn agent_names(&self) -> (&str, &str) {
        let agent = self.agent.as_deref().unwrap_or_default();
        (agent, agent.split(" (").next().unwrap_or(agent))
    }

    /// Whether the text is in the name of the trial's file or case, in upper or lower case.
    pub fn contains(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let names = [&self.file.stem, &self.case_id, &self.case];
        names.iter().any(|name| name.to_lowercase().contains(&text))
    }
}

/// All trials of a run, in natural order: `case 2` comes before `case 10`.
pub fn load(run: &RunReader) -> Result<Vec<NamedTrial>, RecordError> {
    containing(run, "")
}

/// The trials of a run with a text in the name of their file or case, in natural order. Only those are in memory.
pub fn containing(run: &RunReader, text: &str) -> Result<Vec<NamedTrial>, RecordError> {
    let mut trials = Vec::new();
    each(run, |trial| {
        trials.extend(Some(trial).filter(|trial| trial.contains(text)));
    })?;
    sort(&mut trials);
    Ok(trials)
}

/// The trials of a run that a text names: by a whole name, or else by part of one. Only those are in memory.
pub fn find(
    run: &RunReader,
    text: &str,
) -> Result<Result<Vec<NamedTrial>, TrialNameError>, RecordError> {
    let mut selection = Selection::new(text);
    each(run, |trial| selection.add(trial))?;
    let mut selected = selection.finish();
    if selected.is_empty() {
        return Ok(Err(TrialNameError::new(&load(run)?, text)));
    }
    sort(&mut selected);
    Ok(Ok(selected))
}

/// Like [`find`], from trials in memory.
pub fn select(trials: Vec<NamedTrial>, text: &str) -> Result<Vec<NamedTrial>, TrialNameError> {
    if !trials
        .iter()
        .any(|trial| trial.is_named(text) || trial.contains(text))
    {
        return Err(TrialNameError::new(&trials, text));
    }
    let mut selection = Selection::new(text);
    for trial in trials {
        selection.add(trial);
    }
    Ok(selection.finish())
}

/// The trials that a text names, as far as they are known.
struct Selection<'a> {
    text: &'a str,
    /// The trials that have the text as a name.
    named: Vec<NamedTrial>,
    /// The trials with the text in their name, as long as none is named.
    containing: Vec<NamedTrial>,
}

impl<'a> Selection<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            named: Vec::new(),
            containing: Vec::new(),
        }
    }

    fn add(&mut self, trial: NamedTrial) {
        if trial.is_named(self.text) {
            self.containing.clear();
            self.named.push(trial);
        } else if self.named.is_empty() && trial.contains(self.text) {
            self.containing.push(trial);
        }
    }

    fn finish(self) -> Vec<NamedTrial> {
        if self.named.is_empty() {
            self.containing
        } else {
            self.named
        }
    }
}

/// Calls `take` with each trial of a run, by file name.
fn each(run: &RunReader, mut take: impl FnMut(NamedTrial)) -> Result<(), RecordError> {
    let mut plan = HashMap::new();
    for event in run.events()? {
        if let EventKind::RunPlanned(planned) = event?.event {
            plan.extend(planned.cases.into_iter().map(|case| {
                let places = Arc::from(case.places.clone());
                (case.id.clone(), (case, places))
            }));
        }
    }
    index::each_identity(run, |file, started| {
        take(NamedTrial::new(file, started, &plan));
    })
}

fn sort(trials: &mut [NamedTrial]) {
    trials.sort_by(|a, b| {
        natural(&a.case, &b.case)
            .then_with(|| a.case_id.cmp(&b.case_id))
            .then_with(|| a.agent.cmp(&b.agent))
            .then_with(|| (a.repeat, a.file.attempt).cmp(&(b.repeat, b.file.attempt)))
    });
}

/// No trial of the run has the name.
#[derive(Debug, thiserror::Error)]
#[error("trial `{text}` not found in the run{}", nearest.as_ref().map_or(String::new(), |name| format!("; did you mean `{name}`?")))]
pub struct TrialNameError {
    pub text: String,
    /// The most similar name.
    pub nearest: Option<String>,
}

impl TrialNameError {
    fn new(trials: &[NamedTrial], text: &str) -> Self {
        Self {
            text: text.to_owned(),
            nearest: nearest(text, trials.iter().flat_map(NamedTrial::labels)),
        }
    }
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

//! The runs of a folder over time: how their pass rates developed, which cases are flaky, and what changed between
//! runs.
//!
//! The main types are [`RunRow`], one run in a list, and [`History`]. Of a run that has ended, only its first line and
//! `summary.json` are read, so hundreds of runs are hundreds of small reads.

mod cases;
mod marks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use proctor_record::event::SourceContext;
use proctor_record::record::{RecordError, RunReader};
use serde::Serialize;

use crate::overview::{AgentOverview, Answer, Overview, RateOverview};
use crate::runs::RunEntry;
use crate::summary::Counts;

pub use self::cases::{CaseLine, CasePoint, Flakiness, Slowdown};
pub use self::marks::{Mark, MarkKind};

/// One run in a list.
#[derive(Debug, Serialize)]
pub struct RunRow {
    pub name: String,
    pub folder: String,
    #[serde(flatten)]
    pub content: RunContent,
}

/// What the folder of a run holds.
#[derive(Debug, Serialize)]
#[serde(
    tag = "state",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum RunContent {
    /// The run has ended.
    Ended(RunResultRow),
    /// The run has no end: it is still running, or was killed.
    Unfinished(RunResultRow),
    /// A record without a plan.
    Recording {
        started: String,
        suite: String,
    },
    Unreadable {
        reason: String,
    },
}

/// The results of a run in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResultRow {
    pub started: String,
    pub suite: String,
    pub gate: Answer,
    pub rate: Option<RateOverview>,
    pub trials: Counts,
    pub agents: Vec<AgentRow>,
}

#[derive(Debug, Serialize)]
pub struct AgentRow {
    /// The name without the model.
    pub name: String,
    pub model: Option<String>,
}

/// The runs of a folder over time, suite by suite. The suite with the newest run comes first.
#[derive(Debug, Default, Serialize)]
pub struct History {
    pub suites: Vec<SuiteHistory>,
}

/// The runs of one suite.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteHistory {
    pub suite: String,
    /// Oldest first.
    pub runs: Vec<RunPoint>,
    /// A line for each case, content and agent: flaky ones first, then those that missed their pass rule last.
    pub cases: Vec<CaseLine>,
    /// The number of lines that are left out.
    pub more_cases: usize,
}

/// A run of a suite.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPoint {
    pub name: String,
    pub started: String,
    pub has_ended: bool,
    /// The exit code of the run; absent if it did not end.
    pub exit: Option<u8>,
    pub gate: Answer,
    pub trials: Counts,
    pub rate: Option<RateOverview>,
    /// The duration in microseconds.
    pub duration: u64,
    pub agents: Vec<AgentOverview>,
    pub context: Option<SourceContext>,
    /// What changed since the run before.
    pub marks: Vec<Mark>,
}

/// A run with its results, or the reason why it has none.
struct LoadedRun {
    name: String,
    folder: String,
    content: Result<LoadedContent, String>,
}

enum LoadedContent {
    Results(Box<Overview>),
    Recording { started: String, suite: String },
}

/// The rows of all runs, in the order of the entries.
pub fn rows(entries: Vec<RunEntry>) -> Vec<RunRow> {
    entries.into_iter().map(|entry| load(entry).row()).collect()
}

/// The rows of all runs, and their history. Each run is read once.
pub fn load_all(entries: Vec<RunEntry>) -> (Vec<RunRow>, History) {
    let mut rows = Vec::new();
    let mut suites: Vec<(String, Vec<(String, Overview)>)> = Vec::new();
    // Newest first, so suites are in the order of their newest runs.
    for entry in entries {
        let loaded = load(entry);
        rows.push(loaded.row());
        let Ok(LoadedContent::Results(overview)) = loaded.content else {
            continue;
        };
        let run = (loaded.name, *overview);
        match suites
            .iter_mut()
            .find(|(name, _)| *name == run.1.started.name)
        {
            Some((_, runs)) => runs.push(run),
            None => suites.push((run.1.started.name.clone(), vec![run])),
        }
    }
    let suites = suites.into_iter().map(|(suite, mut runs)| {
        runs.reverse();
        SuiteHistory::of(suite, &runs)
    });
    let suites = suites.collect();
    (rows, History { suites })
}

impl SuiteHistory {
    /// The history of runs, oldest first.
    fn of(suite: String, runs: &[(String, Overview)]) -> Self {
        let marks = marks::between(runs);
        let (cases, more_cases) = cases::lines(runs, &marks);
        let points = runs.iter().zip(marks);
        let points = points.map(|((name, run), marks)| RunPoint::of(name, run, marks));
        Self {
            suite,
            runs: points.collect(),
            cases,
            more_cases,
        }
    }
}

impl RunPoint {
    fn of(name: &str, run: &Overview, marks: Vec<Mark>) -> Self {
        Self {
            name: name.to_owned(),
            started: run.started.started.clone(),
            has_ended: run.ended.is_some(),
            exit: run.ended.as_ref().map(|ended| ended.exit),
            gate: run.gate,
            trials: run.trials,
            rate: run.rate,
            duration: u64::try_from(run.duration.as_micros()).unwrap_or(u64::MAX),
            agents: run.agents.clone(),
            context: run.started.context.clone(),
            marks,
        }
    }
}

fn load(entry: RunEntry) -> LoadedRun {
    let RunEntry { name, folder, run } = entry;
    LoadedRun {
        name,
        folder: folder.display().to_string(),
        content: run.and_then(|run| content(&run)).map_err(|e| reason(&e)),
    }
}

fn content(run: &RunReader) -> Result<LoadedContent, RecordError> {
    match Overview::load(run) {
        Ok(overview) => Ok(LoadedContent::Results(Box::new(overview))),
        Err(RecordError::NoPlan { .. }) => Ok(LoadedContent::Recording {
            started: run.started().started.clone(),
            suite: run.started().name.clone(),
        }),
        Err(error) => Err(error),
    }
}

impl LoadedRun {
    fn row(&self) -> RunRow {
        RunRow {
            name: self.name.clone(),
            folder: self.folder.clone(),
            content: match &self.content {
                Ok(LoadedContent::Results(overview)) => result_row(overview),
                Ok(LoadedContent::Recording { started, suite }) => RunContent::Recording {
                    started: started.clone(),
                    suite: suite.clone(),
                },
                Err(reason) => RunContent::Unreadable {
                    reason: reason.clone(),
                },
            },
        }
    }
}

fn result_row(overview: &Overview) -> RunContent {
    let row = RunResultRow {
        started: overview.started.started.clone(),
        suite: overview.started.name.clone(),
        gate: overview.gate,
        rate: overview.rate,
        trials: overview.trials,
        agents: overview.agents.iter().map(agent).collect(),
    };
    if overview.ended.is_some() {
        RunContent::Ended(row)
    } else {
        RunContent::Unfinished(row)
    }
}

fn agent(agent: &AgentOverview) -> AgentRow {
    AgentRow {
        name: short_name(agent).to_owned(),
        model: agent.model.clone(),
    }
}

/// The name of an agent without its model.
fn short_name(agent: &AgentOverview) -> &str {
    let suffix = agent.model.as_ref().map(|model| format!(" ({model})"));
    let short = suffix.and_then(|suffix| agent.name.strip_suffix(&suffix));
    short.unwrap_or(&agent.name)
}

/// The hash of each case of a run, by its id.
fn hashes(run: &Overview) -> BTreeMap<&str, &str> {
    let cases = run.cases.iter();
    cases.map(|case| (&*case.id, &*case.hash)).collect()
}

/// The error with its cause.
fn reason(error: &RecordError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

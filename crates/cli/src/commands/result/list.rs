//! `proctor result list`: the runs here, newest first.
//!
//! Its main type is [`RunRow`]. Of a run that has ended, only its first line and `summary.json` are read.

mod table;

use std::path::Path;

use proctor_core::event::RunStarted;
use proctor_core::overview::{AgentOverview, Answer, Overview, RateOverview};
use proctor_core::record::{RecordError, RunReader};
use proctor_core::runs::{self, RunEntry};
use proctor_core::summary::Counts;
use proctor_run::engine::runs::RUNS;
use serde::Serialize;

use crate::args::{OutputFormat, RunsArgs};
use crate::exit::Exit;
use crate::output;

/// One run.
#[derive(Debug, Serialize)]
struct RunRow {
    name: String,
    folder: String,
    #[serde(flatten)]
    content: RunContent,
}

/// What a folder of a run holds.
#[derive(Debug, Serialize)]
#[serde(
    tag = "state",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
enum RunContent {
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

/// What a run came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunResultRow {
    started: String,
    suite: String,
    gate: Answer,
    rate: Option<RateOverview>,
    trials: Counts,
    agents: Vec<AgentRow>,
}

#[derive(Debug, Serialize)]
struct AgentRow {
    name: String,
    model: Option<String>,
}

#[derive(Serialize)]
struct RunsDocument {
    folder: &'static str,
    runs: Vec<RunRow>,
}

pub(crate) fn run(args: &RunsArgs) -> anyhow::Result<Exit> {
    let entries = runs::list(Path::new(RUNS))?;
    let runs: Vec<RunRow> = entries.into_iter().map(row).collect();
    match args.output.output {
        OutputFormat::Json => output::json(&RunsDocument { folder: RUNS, runs })?,
        OutputFormat::Text if runs.is_empty() => {
            output::message(&format!(
                "`{RUNS}` contains no runs; `proctor check` creates one\n"
            ))?;
        }
        OutputFormat::Text => output::report(&table::render(&runs, jiff::Timestamp::now()))?,
    }
    Ok(Exit::Ok)
}

fn row(entry: RunEntry) -> RunRow {
    let RunEntry { name, folder, run } = entry;
    RunRow {
        name,
        folder: folder.display().to_string(),
        content: run
            .and_then(|run| content(&run))
            .unwrap_or_else(|error| RunContent::Unreadable {
                reason: reason(&error),
            }),
    }
}

fn content(run: &RunReader) -> Result<RunContent, RecordError> {
    let overview = match Overview::load(run) {
        Ok(overview) => overview,
        Err(RecordError::NoPlan { .. }) => {
            let RunStarted { started, name, .. } = run.started().clone();
            return Ok(RunContent::Recording {
                started,
                suite: name,
            });
        }
        Err(error) => return Err(error),
    };
    let has_ended = overview.ended.is_some();
    let row = RunResultRow {
        started: overview.started.started,
        suite: overview.started.name,
        gate: overview.gate,
        rate: overview.rate,
        trials: overview.trials,
        agents: overview.agents.into_iter().map(agent).collect(),
    };
    Ok(if has_ended {
        RunContent::Ended(row)
    } else {
        RunContent::Unfinished(row)
    })
}

/// An agent, by its name without the model that has a column of its own.
fn agent(agent: AgentOverview) -> AgentRow {
    let AgentOverview { name, model, .. } = agent;
    let suffix = model.as_ref().map(|model| format!(" ({model})"));
    let short = suffix.and_then(|suffix| name.strip_suffix(&suffix).map(str::to_owned));
    AgentRow {
        name: short.unwrap_or(name),
        model,
    }
}

/// The error with its cause.
fn reason(error: &RecordError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

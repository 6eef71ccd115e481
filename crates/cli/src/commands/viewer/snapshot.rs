//! What the pages of a run show at one moment.
//!
//! The main type is [`Snapshot`]. It is computed as `result show` computes its report, from the record alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use proctor_core::gate::Gate;
use proctor_core::summary::Summary;
use proctor_record::index;
use proctor_record::record::{RecordError, RunReader};
use proctor_report::Report;
use proctor_report::page::{Overview, TrialFacts};
use proctor_wire::site::Chunk;
use serde::Serialize;

/// A run with a longer index is first shown without comparing its trials with the index.
const QUICK_INDEX: u64 = 8 * 1024 * 1024;

/// So is a run with larger trials.
const QUICK_TRIALS: u64 = 64 * 1024 * 1024;

/// The largest run that a page can hold.
const MOST_TRIALS: usize = 250_000;

/// The files that grow while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    run: Option<u64>,
    index: Option<u64>,
}

impl Fingerprint {
    pub(super) fn of(folder: &Path) -> Self {
        let length = |name: &str| Some(fs::metadata(folder.join(name)).ok()?.len());
        Self {
            run: length("run.jsonl"),
            index: length("index.jsonl"),
        }
    }
}

/// How carefully a run is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Every trial is compared with the index, unless that would take long.
    Quick,
    /// Every trial is compared with the index.
    Checked,
}

/// Why a run can't be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(
        "the run has {planned} trials, and pages show at most {MOST_TRIALS}; use `proctor result show {}`",
        shown.display()
    )]
    TooLarge { planned: usize, shown: PathBuf },
}

/// A run at one moment.
pub(super) struct Snapshot {
    /// A number that no other snapshot of this process has, and that later ones exceed.
    pub(super) revision: u64,
    /// The first revision with the same plan.
    pub(super) planned: u64,
    /// How long reading the run took.
    pub(super) cost: Duration,
    pub(super) status: RunStatus,
    pub(super) overview: Overview,
    /// The revision in which each row changed last.
    pub(super) changed: Vec<u64>,
    /// The file of each trial that has begun.
    pub(super) files: Vec<Option<Box<str>>>,
    json: OnceLock<Chunk>,
}

/// What a page needs to know besides the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunStatus {
    /// Whether a process writes the run now.
    pub(super) is_active: bool,
    /// Whether every trial was compared with the index, as `result show` does.
    pub(super) is_checked: bool,
    pub(super) running: Vec<RunningTrial>,
}

/// A trial that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RunningTrial {
    /// The position of the trial.
    pub(super) row: usize,
    /// When it began, in microseconds since the run started.
    pub(super) at: u64,
}

impl Snapshot {
    /// Reads a run. `shown` is the path that pages show. The snapshot is not numbered yet.
    pub(super) fn take(
        folder: &Path,
        shown: &Path,
        reading: Reading,
    ) -> Result<Self, SnapshotError> {
        let began = Instant::now();
        let run = RunReader::open(folder)?;
        let planned = Summary::planned(&run)?.trials().count();
        if planned > MOST_TRIALS {
            return Err(SnapshotError::TooLarge {
                planned,
                shown: shown.to_owned(),
            });
        }
        let is_checked = reading == Reading::Checked || is_quick(&run);
        let (summary, mut facts) = read(&run, is_checked)?;
        let gate = Gate::of(&summary);
        let report = Report {
            folder: shown,
            ..Report::new(&run, &summary, &gate)
        };
        let coverage = facts.take_coverage(&run, &summary.servers)?;
        let overview = Overview::of(&report, &facts, &coverage)?;
        let is_active = run.is_active();
        let files = files(&summary, &facts);
        let running = if is_active {
            running(&run, &summary)
        } else {
            Vec::new()
        };
        Ok(Self {
            revision: 0,
            planned: 0,
            cost: began.elapsed(),
            status: RunStatus {
                is_active,
                is_checked,
                running,
            },
            changed: vec![0; overview.trials.case.len()],
            overview,
            files,
            json: OnceLock::new(),
        })
    }

    /// The whole snapshot as JSON, rendered once for all clients.
    pub(super) fn json(&self) -> Chunk {
        let render = || {
            #[derive(Serialize)]
            struct Document<'a> {
                revision: u64,
                status: &'a RunStatus,
                overview: &'a Overview,
            }
            let document = Document {
                revision: self.revision,
                status: &self.status,
                overview: &self.overview,
            };
            // Page data holds texts and numbers, which always serialize.
            Chunk::from(serde_json::to_vec(&document).unwrap_or_default())
        };
        self.json.get_or_init(render).clone()
    }
}

/// Whether comparing every trial with the index takes no time.
fn is_quick(run: &RunReader) -> bool {
    let index = Fingerprint::of(run.folder()).index;
    index.is_none_or(|bytes| bytes < QUICK_INDEX) && run.bytes() < QUICK_TRIALS
}

fn read(run: &RunReader, is_checked: bool) -> Result<(Summary, TrialFacts), RecordError> {
    if is_checked {
        let summary = Summary::checked(run)?;
        return Ok((summary, TrialFacts::load(run)?));
    }
    let mut facts = TrialFacts::default();
    let summary = Summary::observed(run, |entry| facts.add(entry))?;
    Ok((summary, facts))
}

/// The file of each planned trial, in the order of the plan.
fn files(summary: &Summary, facts: &TrialFacts) -> Vec<Option<Box<str>>> {
    let cells = summary.cases.iter().flat_map(|case| {
        let agents = case.agents.iter();
        agents.flat_map(move |cell| cell.trials.iter().map(move |trial| (case, cell, trial)))
    });
    let file = cells.map(|(case, cell, trial)| {
        let unfinished = || facts.unfinished(&case.case.id, &cell.agent, trial.repeat);
        let file = trial.file().map(String::into_boxed_str);
        file.or_else(|| unfinished().map(Box::from))
    });
    file.collect()
}

/// The trials that have begun and not ended, by their position.
fn running(run: &RunReader, summary: &Summary) -> Vec<RunningTrial> {
    let began = index::under_way(run);
    let mut rows = Vec::new();
    let mut row = 0;
    for case in &summary.cases {
        for cell in &case.agents {
            for trial in &cell.trials {
                let is_this = |began: &&proctor_record::record::TrialBegan| {
                    let this = &began.trial;
                    let agent = this.agent.as_deref();
                    this.case == case.case.id
                        && this.repeat == trial.repeat
                        && agent.is_none_or(|agent| agent == cell.agent)
                };
                if let Some(began) = began.iter().rfind(is_this) {
                    rows.push(RunningTrial { row, at: began.at });
                }
                row += 1;
            }
        }
    }
    rows
}

//! Renders the report of a run: for a terminal, as HTML, as JSON, as JUnit XML and as Markdown.
//!
//! Its main type is [`Report`], the input of every renderer. Renderers read the folder of the run, one
//! trial at a time.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

pub mod annotations;
pub mod calibration;
pub mod compare;
pub mod contract;
pub mod conversation;
pub mod coverage;
pub mod csv;
pub mod evals;
mod evidence;
pub mod html;
pub mod json;
pub mod junit;
pub mod lint;
pub mod markdown;
pub mod mcpchecker;
pub mod otlp;
pub mod page;
pub mod regrade;
mod selection;
mod sentences;
pub mod sheet;
pub mod suites;
pub mod summary;
pub mod terminal;
mod words;

use std::io;
use std::path::Path;

use proctor_core::gate::Gate;
use proctor_core::summary::{Summary, TrialSummary};
use proctor_record::event::RunKind;
use proctor_record::event::SkippedEval;
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::record::{RecordError, RunReader, TrialFile};

/// A run with its summary and gate, for the renderers.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    pub run: &'a RunReader,
    /// The path of the run's folder, as the report shows it.
    pub folder: &'a Path,
    /// The outcomes of all cases and trials.
    pub summary: &'a Summary,
    /// Whether every case met its pass rule.
    pub gate: &'a Gate,
    /// The exit code of the program.
    pub exit: u8,
    /// The reason if the exit code is not that of the gate, such as `interrupted`.
    pub note: Option<&'a str>,
    /// Whether `proctor check --resume` can resume the run.
    pub resumable: bool,
    /// Whether the text report skips evidence that it would have to read from the trials. Set when a
    /// large run was interrupted.
    pub brief: bool,
    /// The shipped evals that were listed but not run.
    pub listed: &'a [SkippedEval],
    /// The filter, if the summary is only a part of the run. The gate and the exit code are still those of the
    /// whole run, so a renderer must not show them as results of the part.
    pub part: Option<ReportPart<'a>>,
}

/// The part of a run that a report shows.
#[derive(Debug, Clone, Copy)]
pub struct ReportPart<'a> {
    /// The options that select it, as written.
    pub filter: &'a str,
    /// The number of trials in the whole run.
    pub trials: usize,
    /// Whether trials are selected by their outcome. Then a pass rate says nothing.
    pub by_outcome: bool,
}

/// Whether a run is put together from shards, which can be resumed instead.
fn is_merged(summary: &Summary) -> bool {
    let shard = summary.plan.shard.as_ref();
    shard.is_some_and(|shard| shard.index.is_none())
}

/// An error while a report was written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl<'a> Report<'a> {
    /// The report of a recorded run. An unfinished run has the exit code of its gate.
    pub fn new(run: &'a RunReader, summary: &'a Summary, gate: &'a Gate) -> Self {
        Self {
            run,
            folder: run.folder(),
            summary,
            gate,
            exit: summary
                .ended
                .as_ref()
                .map_or(gate.exit(), |ended| ended.exit),
            note: summary
                .ended
                .as_ref()
                .and_then(|ended| ended.reason.as_deref()),
            // Without a suite file, there is nothing to load the evals from.
            resumable: summary.plan.kind == RunKind::Suite && !is_merged(summary),
            brief: false,
            listed: &summary.plan.not_run,
            part: None,
        }
    }

    /// Reads a trial from the record, with the details that the summary lacks.
    fn fold(&self, trial: &TrialSummary) -> Result<Option<FoldedTrial>, RecordError> {
        let options = FoldOptions {
            payload_bytes: 8 * 1024 * 1024,
            ..FoldOptions::default()
        };
        let file = self.trial_file(trial);
        file.map(|file| fold_trial(self.run, &file, &options))
            .transpose()
    }

    /// The file of a trial's result; `None` if it has not ended.
    fn trial_file(&self, trial: &TrialSummary) -> Option<TrialFile> {
        self.run.trial_file(&trial.file()?)
    }
}

//! A run, rendered: for a terminal, as JSON, as JUnit.
//!
//! Its main type is [`Report`]: what every renderer is given. Renderers read the run's folder one
//! trial at a time, and know nothing of how it came about.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

pub mod conversation;
pub mod evals;
mod evidence;
pub mod json;
pub mod junit;
pub mod terminal;
mod words;

use std::io;
use std::path::Path;

use proctor_core::event::RunKind;
use proctor_core::event::SkippedEval;
use proctor_core::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_core::gate::Gate;
use proctor_core::record::{RecordError, RunReader};
use proctor_core::summary::{Summary, TrialResult};

/// What is rendered.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The run.
    pub run: &'a RunReader,
    /// Its folder, as people should be shown it.
    pub folder: &'a Path,
    /// What it came to.
    pub summary: &'a Summary,
    /// Whether its gate is met.
    pub gate: &'a Gate,
    /// The exit code that the program will end with.
    pub exit: u8,
    /// Why that is not what the gate says, if it is not: `interrupted`.
    pub note: Option<&'a str>,
    /// Whether the run can be gone on with.
    pub resumable: bool,
    /// Whether the text leaves out the evidence for which trials would have to be read again: somebody
    /// waits for the end of a large run.
    pub brief: bool,
    /// Of servers' own evals: those that are listed and not run.
    pub listed: &'a [SkippedEval],
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The report could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl<'a> Report<'a> {
    /// A run as its record tells it. One without an end has the exit code of its gate.
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
            // No file says what servers ship.
            resumable: summary.plan.kind == RunKind::Suite,
            brief: false,
            listed: &summary.plan.not_run,
        }
    }

    /// Reads a trial again, with everything that the summary did not keep.
    fn fold(&self, result: &TrialResult) -> Result<Option<FoldedTrial>, RecordError> {
        let options = FoldOptions {
            payload_bytes: 8 * 1024 * 1024,
            ..FoldOptions::default()
        };
        let file = self.run.trial_file(&result.file);
        file.map(|file| fold_trial(self.run, &file, &options))
            .transpose()
    }
}

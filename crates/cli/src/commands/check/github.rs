//! What GitHub Actions shows of a run: annotations at the lines of checks, and the job summary.
//!
//! Its main type is [`GitHubJob`]. It adds to the report and never changes the exit code: nobody asked for
//! these files, so a full disk is a warning.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proctor_report::{Report, annotations, markdown};

use crate::output;

/// The size that GitHub takes for the summary of a step.
const LIMIT: u64 = 1024 * 1024;

/// The smallest room that a summary is worth.
const LEAST: usize = 8 * 1024;

/// The job that this process runs in.
pub(super) struct GitHubJob {
    /// The folder of the repository.
    workspace: Option<PathBuf>,
    /// The file of the job summary.
    summary: Option<PathBuf>,
}

impl GitHubJob {
    /// The job, if GitHub's variables name one.
    pub(super) fn of_environment() -> Option<Self> {
        let path = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let is_job = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
        is_job.then(|| Self {
            workspace: path("GITHUB_WORKSPACE"),
            summary: path("GITHUB_STEP_SUMMARY"),
        })
    }

    /// Shows the result of a run.
    pub(super) fn show(&self, report: &Report<'_>) {
        output::ci_commands(&annotations::render(report, self.workspace.as_deref()));
        let Some(path) = &self.summary else {
            return;
        };
        if let Err(error) = summarize(path, report) {
            // If stderr is closed, there is no other place to report it.
            let _ = output::message(&format!("warning: no job summary: {error:#}\n"));
        }
    }
}

/// Adds the report to the summary of the step, which may hold that of another run already.
fn summarize(path: &Path, report: &Report<'_>) -> anyhow::Result<()> {
    let failed = || format!("can't write `{}`", path.display());
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .with_context(failed)?;
    let taken = file.metadata().with_context(failed)?.len();
    let room = usize::try_from(LIMIT.saturating_sub(taken)).unwrap_or(0);
    let room = room.saturating_sub(LEAST / 2).min(markdown::JOB_SUMMARY);
    anyhow::ensure!(
        room >= LEAST,
        "the summary of this step has {taken} bytes already, and GitHub drops one of more than 1 MiB"
    );
    let text = markdown::render(report, room);
    file.write_all(format!("{text}\n").as_bytes())
        .with_context(failed)
}

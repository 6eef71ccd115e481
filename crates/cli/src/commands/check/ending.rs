//! The end of a run: it writes the result files, shows the report, and gives the exit code.

use anyhow::Context;
use proctor_record::redact::Redactor;
use proctor_report::Report;
use proctor_run::engine::{RunCompletion, RunInProgress, RunResult, RunStopCause};

use super::github::GitHubJob;
use super::screen::RunScreen;
use super::signals::{RunSignals, RunStage};
use crate::args::{ReportFormat, RunArgs};
use crate::commands::shown;
use crate::commands::store::ShardUploads;
use crate::commands::target::Targets;
use crate::exit::Exit;
use crate::output;

/// Above this size in bytes, the report of an interrupted run does not read the trials again.
const LARGE: u64 = 64 << 20;

/// Why a shard whose trials have verdicts is inconclusive.
const NOT_UPLOADED: &str = "the store lacks a file of this shard, or the verdict of a trial";

/// Everything that the end of a run needs.
pub(super) struct RunFinisher<'a> {
    pub(super) flags: &'a RunArgs,
    pub(super) targets: Targets,
    pub(super) redactor: &'a Redactor,
    pub(super) signals: RunSignals,
    pub(super) screen: RunScreen,
    /// The uploads of a shard with a store.
    pub(super) uploads: Option<ShardUploads>,
    /// The job on GitHub Actions, unless `--no-github` is given.
    pub(super) job: Option<GitHubJob>,
}

impl RunFinisher<'_> {
    /// Ends the run, shows its report, and gives the exit code.
    ///
    /// Writes the record first, then the store, the files and the report: a blocked or closed stdout can't change the
    /// result of the run.
    pub(super) fn conclude(self, run: RunInProgress, over: RunCompletion) -> Exit {
        let mut result = run.end(over);
        self.screen.finish();
        if let Some(uploads) = self.uploads {
            // The record is complete, so a signal may end the process.
            self.signals.come_to(RunStage::Showing);
            let is_uploaded = uploads.finish();
            self.signals.come_to(RunStage::Ending);
            if let Ok(result) = &mut result
                && !is_uploaded
                && result.exit == Exit::Ok.code()
            {
                // The merged run would lack what is not in the store.
                result.exit = Exit::Inconclusive.code();
                result.note = Some(NOT_UPLOADED.to_owned());
            }
        }
        let mut errors = match &result {
            Ok(result) => shown::write_files(&self.targets, &report(result)),
            Err(_) => Vec::new(),
        };
        self.signals.come_to(RunStage::Showing);
        if let Ok(result) = &result
            && let Err(error) = show(self.flags, result)
            // The reader closed the pipe.
            && !output::is_broken_pipe(&error)
        {
            errors.push(error);
        }
        if let (Ok(result), Some(job)) = (&result, &self.job) {
            job.show(&report(result));
        }
        let mut is_known = false;
        if let Ok(result) = &result {
            is_known = matches!(result.stopped, Some(RunStopCause::Broken(_)));
            tell(result.stopped.as_ref());
        }
        for error in &errors {
            output::error(error, self.redactor);
        }
        let kept = result.context("can't read the run").and_then(|result| {
            result.kept.context("the record is incomplete")?;
            Ok(Exit::from_code(result.exit))
        });
        match kept {
            // A requested file is missing, so the command did not succeed.
            Ok(Exit::Ok) if !errors.is_empty() => Exit::Inconclusive,
            Ok(exit) => exit,
            // Without a complete record, the result is inconclusive.
            Err(_) if is_known => Exit::Inconclusive,
            Err(error) => {
                output::error(&error, self.redactor);
                Exit::Inconclusive
            }
        }
    }
}

/// The result as a report, even if its end could not be written.
pub(super) fn report(result: &RunResult) -> Report<'_> {
    Report {
        exit: result.exit,
        note: result.note.as_deref(),
        brief: result.stopped == Some(RunStopCause::Interrupted) && result.record.bytes() > LARGE,
        ..Report::new(&result.record, &result.summary, &result.gate)
    }
}

/// Prints why the run stopped early.
pub(super) fn tell(stopped: Option<&RunStopCause>) {
    let text = match stopped {
        None | Some(RunStopCause::Interrupted) => return,
        Some(RunStopCause::NotStarted(reason) | RunStopCause::ContractBroken(reason)) => {
            output::printable_lines(&format!("error: {reason}\n"))
        }
        Some(RunStopCause::Broken(causes)) => {
            let mut lines = causes.iter();
            let mut text = format!("error: {}\n", lines.next().map_or("", String::as_str));
            for cause in lines {
                text.push_str(&format!("  caused by: {cause}\n"));
            }
            output::printable_lines(&text)
        }
    };
    // If stderr is closed, there is no other place to report it.
    let _ = output::message(&text);
}

/// Writes the report to stdout. A run that did not start has no text report.
fn show(flags: &RunArgs, result: &RunResult) -> anyhow::Result<()> {
    let format = flags.output.output;
    let is_started = !matches!(
        result.stopped,
        Some(RunStopCause::NotStarted(_) | RunStopCause::ContractBroken(_))
    );
    if is_started || format != ReportFormat::Text {
        shown::show(&report(result), format)?;
    }
    Ok(())
}

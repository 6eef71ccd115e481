//! What a run came to: its end in the record, what is shown, and the exit code.

use std::error::Error;
use std::io::{self, BufWriter, Write};

use anyhow::Context;
use proctor_core::event::RunEnded;
use proctor_core::gate::Gate;
use proctor_core::record::{RecordError, RunReader};
use proctor_core::redact::Redactor;
use proctor_core::summary::Summary;
use proctor_report::evals::{self, NotRun, NotRunOutcome};
use proctor_report::terminal::{self, Look};
use proctor_report::{Report, ReportError, json, junit};
use proctor_run::runner::{Finished, RunError};

use super::Shape;
use super::folder::Run;
use super::screen::Screen;
use super::signals::{Signals, Stage};
use super::target::Targets;
use crate::args::{Format, RunArgs};
use crate::exit::Exit;
use crate::output;

/// How wide a report is where nobody says.
const WIDTH: usize = 100;

/// Above this many bytes of trials, whoever interrupts a run does not wait until they are read again.
const LARGE: u64 = 64 << 20;

/// How a run was over.
pub(super) enum Over {
    /// It ran, to its end or until it was stopped.
    Finished(Finished),
    /// It was stopped before its first trial.
    Interrupted,
    /// A server was not fit for it.
    NotStarted(String),
    /// It could not go on.
    Broken(RunError),
}

impl Over {
    /// The exit code, and why it is not what the gate says.
    fn exit(&self, gate: &Gate) -> (Exit, Option<String>) {
        match self {
            Self::Finished(finished) if finished.interrupted => {
                (Exit::Interrupted, Some("interrupted".to_owned()))
            }
            Self::Finished(finished) => (Exit::of(gate), finished.stopped.clone()),
            Self::Interrupted => (Exit::Interrupted, Some("interrupted".to_owned())),
            Self::NotStarted(reason) => (Exit::Inconclusive, Some(reason.clone())),
            Self::Broken(error) => (Exit::Inconclusive, Some(chain(error))),
        }
    }

    /// Says why there is less to be shown than was asked for.
    fn tell(self, redactor: &Redactor) {
        match self {
            Self::Finished(_) | Self::Interrupted => {}
            Self::NotStarted(reason) => {
                let reason = output::printable_lines(&redactor.text(&reason));
                // There is nowhere left to say that this failed.
                let _ = output::message(&format!("error: {reason}\n"));
            }
            Self::Broken(error) => output::error(&error.into(), redactor),
        }
    }
}

/// What is needed to end a run.
pub(super) struct Ending<'a> {
    pub(super) flags: &'a RunArgs,
    pub(super) targets: Targets,
    pub(super) over: Over,
    pub(super) redactor: &'a Redactor,
    pub(super) signals: Signals,
    pub(super) screen: Screen,
    /// Of servers' own evals: those that are listed and not run.
    pub(super) not_run: Vec<NotRun>,
    pub(super) shape: Shape,
}

impl Ending<'_> {
    /// Ends the run, shows what it came to, and gives the exit code.
    ///
    /// The record comes first, then files, then what somebody may read: nobody has to, and whoever
    /// does not read can't change what came of the run.
    pub(super) fn conclude(self, run: Run) -> Exit {
        let (listed, shape) = (&self.not_run[..], self.shape);
        let recorded = Recorded::end(&self.over, run, self.redactor, listed);
        let written = recorded
            .as_ref()
            .map(|recorded| write_files(&self.targets, &recorded.report(listed, shape), shape));
        let mut errors = written.unwrap_or_default();
        self.signals.come_to(Stage::Showing);
        self.screen.finish();
        if let Ok(recorded) = &recorded
            && let Err(error) = show(self.flags, &self.over, &recorded.report(listed, shape), shape)
            // Whoever reads has seen enough.
            && !output::is_broken_pipe(&error)
        {
            errors.push(error);
        }
        let is_known = matches!(self.over, Over::Broken(_));
        self.over.tell(self.redactor);
        for error in &errors {
            output::error(error, self.redactor);
        }
        let kept = recorded.and_then(|recorded| {
            recorded.kept.context("the record is not complete")?;
            Ok(recorded.exit)
        });
        match kept {
            // What somebody asked for is not there, so all is not well; worse stays worse.
            Ok(Exit::Ok) if !errors.is_empty() => Exit::Inconclusive,
            Ok(exit) => exit,
            // Whatever was found out, there is no record to show for it.
            Err(_) if is_known => Exit::Inconclusive,
            Err(error) => {
                output::error(&error, self.redactor);
                Exit::Inconclusive
            }
        }
    }
}

/// What a run came to, with its end in the record.
struct Recorded {
    reader: RunReader,
    summary: Summary,
    gate: Gate,
    exit: Exit,
    reason: Option<String>,
    kept: Result<(), RecordError>,
}

impl Recorded {
    /// Sums the run up, and ends it.
    fn end(
        over: &Over,
        mut run: Run,
        redactor: &Redactor,
        listed: &[NotRun],
    ) -> anyhow::Result<Self> {
        // What a summary needs is in the record, and it takes the place of this.
        run.trials = Vec::new();
        let at = run.at();
        let summed = RunReader::open(run.writer.folder())
            .and_then(|reader| Ok((Summary::of_run(&reader)?, reader)));
        let (mut summary, reader) = match summed {
            Ok(summed) => summed,
            Err(error) => {
                let reason = Some(redactor.text(&chain(&error)).into_owned());
                let exit = Exit::Inconclusive.code();
                // What can't be read is news enough.
                let _ = run.writer.end(at, RunEnded { exit, reason });
                return Err(error).context("the run can't be read");
            }
        };
        let gate = Gate::of(&summary);
        let (exit, reason) = with_invalid(over.exit(&gate), listed);
        let reason = reason.map(|reason| redactor.text(&reason).into_owned());
        let ended = RunEnded {
            exit: exit.code(),
            reason: reason.clone(),
        };
        let kept = run.writer.end(at, ended.clone());
        summary.ended = kept.is_ok().then_some(ended);
        Ok(Self {
            reader,
            summary,
            gate,
            exit,
            reason,
            kept,
        })
    }

    fn report<'a>(&'a self, listed: &'a [NotRun], shape: Shape) -> Report<'a> {
        Report {
            listed,
            // There is no file that says what servers ship.
            resumable: shape == Shape::Suite,
            brief: self.exit == Exit::Interrupted && self.reader.bytes() > LARGE,
            exit: self.exit.code(),
            note: self.reason.as_deref(),
            ..Report::new(&self.reader, &self.summary, &self.gate)
        }
    }
}

/// An eval that is invalid fails the run, whatever came of the others.
fn with_invalid(
    (exit, reason): (Exit, Option<String>),
    listed: &[NotRun],
) -> (Exit, Option<String>) {
    let mut all = listed.iter();
    let is_invalid = all.any(|not_run| not_run.outcome == NotRunOutcome::Invalid);
    match exit {
        Exit::Ok | Exit::Inconclusive if is_invalid => {
            let told = "there are invalid evals".to_owned();
            (Exit::Failed, reason.or(Some(told)))
        }
        exit => (exit, reason),
    }
}

/// Writes the result as one JSON document.
fn write_json(report: &Report<'_>, shape: Shape, out: &mut dyn Write) -> Result<(), ReportError> {
    if shape == Shape::Evals {
        evals::write(report, out)
    } else {
        json::write(report, out)
    }
}

/// Writes the report to stdout.
fn show(flags: &RunArgs, over: &Over, report: &Report<'_>, shape: Shape) -> anyhow::Result<()> {
    match flags.output.output {
        Format::Json => {
            let mut out = BufWriter::new(io::stdout().lock());
            write_json(report, shape, &mut out).map_err(flattened)?;
            out.flush()?;
        }
        // There is nothing to be shown of a run that did not start, but why.
        Format::Text if matches!(over, Over::NotStarted(_)) => {}
        Format::Text => {
            let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
            let look = Look {
                width,
                colour: true,
            };
            output::result(&terminal::render(report, look)?)?;
        }
    }
    Ok(())
}

/// Writes the files that were asked for; gives what went wrong.
fn write_files(targets: &Targets, report: &Report<'_>, shape: Shape) -> Vec<anyhow::Error> {
    let out = targets.out.as_ref();
    let out = out.map(|target| target.write(|out| write_json(report, shape, out)));
    let junit = targets.junit.as_ref();
    let junit = junit.map(|target| target.write(|out| junit::write(report, out)));
    [out, junit]
        .into_iter()
        .flatten()
        .filter_map(Result::err)
        .collect()
}

/// An error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// An error of writing as such, so that a reader who has gone is known for one.
fn flattened(error: ReportError) -> anyhow::Error {
    match error {
        ReportError::Write(error) => error.into(),
        ReportError::Record(error) => error.into(),
    }
}

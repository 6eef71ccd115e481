//! `proctor judge calibrate`: how far a judge agrees with people.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail};
use proctor_core::calibration::{self, Calibration, JudgedLabel, Label, LabelError};
use proctor_report::calibration::{CalibrationReport, text, value};
use proctor_run::engine::calibrate::CalibrateOptions;

use super::attended::InteractiveHost;
use super::stops::StopSignals;
use super::{counted, engine};
use crate::args::{CalibrateArgs, OutputFormat};
use crate::exit::Exit;
use crate::{output, threads};

/// How many wrong lines an error names.
const NAMED: usize = 20;

pub(crate) fn calibrate(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let shown = args.labels.display();
    let content =
        fs::read_to_string(&args.labels).with_context(|| format!("can't read `{shown}`"))?;
    let labels = match calibration::parse(&content) {
        Ok(labels) if labels.is_empty() => bail!("`{shown}` has no labels"),
        Ok(labels) => labels,
        Err(errors) => {
            let text = format!("error: `{shown}` has {}\n", wrong_lines(&errors));
            output::message(&output::printable_lines(&text))?;
            return Ok(Exit::Usage);
        }
    };
    let is_asked = args.judge.is_some() || args.with.is_some();
    if !is_asked && args.votes.is_some() {
        bail!("`--votes` needs a judge: name one with `--judge MODEL` or `--with FILE`");
    }
    let (judged, judge) = if is_asked {
        match ask(args, labels)? {
            Asked::Done(judged, name, votes) => (judged, Some((name, votes))),
            Asked::Ended(exit) => return Ok(exit),
        }
    } else {
        (recorded(labels)?, None)
    };
    let found = Calibration::of(judged);
    let report = CalibrationReport {
        calibration: &found,
        file: &args.labels,
        judge: judge.as_ref().map(|(name, votes)| (name.as_str(), *votes)),
    };
    let rendered = match args.output.output {
        OutputFormat::Text => text(&report, output::width()),
        OutputFormat::Json => format!("{:#}\n", value(&report)),
    };
    output::result(&rendered)?;
    Ok(match found.shortage() {
        Some(_) => Exit::Inconclusive,
        None => Exit::Ok,
    })
}

/// The first wrong lines, and the number of the others.
fn wrong_lines(errors: &[LabelError]) -> String {
    let mut text = counted(errors.len(), "wrong line");
    for error in errors.iter().take(NAMED) {
        text.push_str(&format!("\n  {error}"));
    }
    if errors.len() > NAMED {
        text.push_str(&format!("\n  … and {} more", errors.len() - NAMED));
    }
    text
}

/// The labels with the verdicts that the file holds.
fn recorded(labels: Vec<Label>) -> anyhow::Result<Vec<JudgedLabel>> {
    let judged = labels.into_iter().map(|label| {
        let Some(judge) = label.recorded.clone() else {
            bail!(
                "line {} has no verdict of a judge: add `judge`, or name a judge with `--judge MODEL` or \
                 `--with FILE`",
                label.line
            );
        };
        Ok(JudgedLabel { label, judge })
    });
    judged.collect()
}

/// What asking the judge came to.
enum Asked {
    /// The labels with their verdicts, the judge's name and its number of votes.
    Done(Vec<JudgedLabel>, String, u32),
    Ended(Exit),
}

fn ask(args: &CalibrateArgs, labels: Vec<Label>) -> anyhow::Result<Asked> {
    let options = CalibrateOptions {
        with: args.with.clone(),
        judge: args.judge.clone(),
        votes: args.votes,
    };
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let runtime = threads::one_worker()?;
    let done = runtime.block_on(async {
        let mut stops = StopSignals::listen().context("can't listen for signals")?;
        tokio::select! {
            done = engine.judge_labels(&options, labels, &host) => anyhow::Ok(Some(done)),
            () = stops.next() => Ok(None),
        }
    });
    // Guards end a judge that is a program; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(Duration::from_secs(5));
    match done? {
        None => Ok(Asked::Ended(Exit::Interrupted)),
        Some(Ok(judged)) => Ok(Asked::Done(judged.labels, judged.judge, judged.votes)),
        Some(Err(error)) => host
            .refuse(error, Some(args.output.output))
            .map(Asked::Ended),
    }
}

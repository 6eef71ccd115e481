//! `proctor result merge`: the shards of a run, put together.

use std::path::PathBuf;

use proctor_core::merge::{MergeReport, MergedRun};
use proctor_record::hint::counted;
use proctor_report::Report;

use super::super::target::Targets;
use super::super::{engine, known_secrets};
use super::super::{shown, store};
use crate::args::MergeArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<Exit> {
    let (out, junit) = (args.out.as_deref(), args.junit.as_deref());
    let targets = Targets::resolve(out, junit, args.report.as_deref())?;
    let merged = engine()?.merge(&folders(&args.shards)?, args.into.as_deref())?;
    let MergedRun {
        record,
        summary,
        gate,
        exit,
        report,
    } = &merged;
    for line in notes(report) {
        output::message(&output::printable_lines(&format!("{line}\n")))?;
    }
    let shown = Report {
        exit: *exit,
        ..Report::new(record, summary, gate)
    };
    let errors = shown::write_files(&targets, &shown);
    shown::show(&shown, args.output.output)?;
    for error in &errors {
        output::error(error, &known_secrets());
    }
    match Exit::from_code(*exit) {
        // A requested file is missing, so the command did not succeed.
        Exit::Ok if !errors.is_empty() => Ok(Exit::Inconclusive),
        exit => Ok(exit),
    }
}

/// The folders of all shards; those of a run in a store are fetched.
fn folders(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in named {
        match store::url(path) {
            Some(url) => all.extend(store::fetch(url)?),
            None => all.push(path.clone()),
        }
    }
    Ok(all)
}

/// What the merge found besides the results.
fn notes(report: &MergeReport) -> Vec<String> {
    let trials = counted(report.trials, "trial");
    let mut lines = vec![format!("merged {trials} of {} shards", report.shards)];
    lines.extend(report.missing.iter().map(|text| format!("warning: {text}")));
    if report.doubled > 0 {
        let names = report.doubled_trials.join(", ");
        let more = if report.doubled > report.doubled_trials.len() {
            ", …"
        } else {
            ""
        };
        let doubled = counted(report.doubled, "trial");
        lines.push(format!(
            "warning: {doubled} executed more than once, counted once: {names}{more}"
        ));
    }
    if report.unfinished > 0 {
        let attempts = counted(report.unfinished, "attempt");
        lines.push(format!("note: {attempts} never ended and left out"));
    }
    lines
}

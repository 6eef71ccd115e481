//! `proctor result summary`: what needs attention in a run, from its index.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;

use proctor_core::coverage::CoverageCounter;
use proctor_core::gate::Gate;
use proctor_core::summary::{AssertionCounter, Summary};
use proctor_report::summary::{
    RunSummary, SummaryOptions, SummaryTable, document, github_output, render,
};
use proctor_report::{Report, annotations, markdown};

use super::super::show::filter::Filter;
use super::{sheet_style, source};
use crate::args::{SummaryArgs, SummaryFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &SummaryArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let run = source.run();
    let filter = args.task.as_deref().map(Filter::of_task).transpose()?;
    let selected = filter
        .as_ref()
        .map(|filter| filter.cases(run))
        .transpose()?;
    let mut counter = CoverageCounter::default();
    let mut assertions = AssertionCounter::default();
    let whole = Summary::observed(run, |entry| {
        let case = entry.attempt.trial.as_ref().map(|trial| &trial.case);
        let is_selected = |cases: &BTreeSet<String>| case.is_some_and(|case| cases.contains(case));
        if !selected.as_ref().is_none_or(is_selected) {
            return;
        }
        counter.add(entry);
        if args.github_output || args.output == SummaryFormat::Json {
            assertions.add(entry);
        }
    })?;
    let gate = Gate::of(&whole);
    let part = match &filter {
        None => None,
        Some(filter) => match whole.part(run, &filter.trials)? {
            None => {
                output::message(&filter.nothing_selected(&whole))?;
                return Ok(Exit::NothingSelected);
            }
            part => part,
        },
    };
    let summary = part.as_ref().unwrap_or(&whole);
    let shown = RunSummary {
        folder: source.shown(),
        name: &source.name(),
        summary,
        gate: &gate,
        coverage: &counter.finish(run, &whole.servers)?,
        assertions: &assertions,
        part: filter.as_ref().map(|filter| filter.part(&whole)),
    };
    let report = Report {
        part: shown.part,
        ..source.report(summary, &gate)
    };
    show(args, &shown, &report)
}

fn show(args: &SummaryArgs, shown: &RunSummary<'_>, report: &Report<'_>) -> anyhow::Result<Exit> {
    if args.github_output {
        output::result(&github_output(shown))?;
        return Ok(Exit::Ok);
    }
    match args.output {
        SummaryFormat::Json => output::json(&document(shown))?,
        SummaryFormat::Text => {
            let tables = tables(args);
            let options = SummaryOptions {
                all: args.all,
                tables: &tables,
            };
            output::result(&render(shown, sheet_style(), options))?;
        }
        SummaryFormat::Markdown => output::result(&markdown::render(report, markdown::COMMENT))?,
        SummaryFormat::Github => {
            let root = env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
            output::ci_result(&annotations::render(report, root.as_deref()))?;
        }
    }
    Ok(Exit::Ok)
}

/// The tables that the flags ask for.
fn tables(args: &SummaryArgs) -> Vec<SummaryTable> {
    let tables = [
        (args.failures, SummaryTable::Failures),
        (args.cases, SummaryTable::Cases),
        (args.agents, SummaryTable::Agents),
    ];
    let wanted = tables.into_iter().filter(|(is_wanted, _)| *is_wanted);
    wanted.map(|(_, table)| table).collect()
}

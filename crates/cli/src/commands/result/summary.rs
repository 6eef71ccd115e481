//! `proctor result summary`: what needs attention in a run, from its index.

use std::env;
use std::path::PathBuf;

use proctor_core::coverage::CoverageCounter;
use proctor_core::gate::Gate;
use proctor_core::summary::{AssertionCounter, Summary};
use proctor_report::summary::{
    RunSummary, SummaryOptions, SummaryTable, document, github_output, render,
};
use proctor_report::{annotations, markdown};

use super::{sheet_style, source};
use crate::args::{SummaryArgs, SummaryFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &SummaryArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let run = source.run();
    let mut counter = CoverageCounter::default();
    let mut assertions = AssertionCounter::default();
    let summary = Summary::observed(run, |entry| {
        counter.add(entry);
        if args.github_output {
            assertions.add(entry);
        }
    })?;
    let coverage = counter.finish(run, &summary.servers)?;
    let gate = Gate::of(&summary);
    let shown = RunSummary {
        folder: source.shown(),
        name: &source.name(),
        summary: &summary,
        gate: &gate,
        coverage: &coverage,
    };
    if args.github_output {
        output::result(&github_output(&shown, assertions.finish(&summary)))?;
        return Ok(Exit::Ok);
    }
    let report = source.report(&summary, &gate);
    match args.output {
        SummaryFormat::Json => output::json(&document(&shown))?,
        SummaryFormat::Text => {
            let tables = tables(args);
            let options = SummaryOptions {
                all: args.all,
                tables: &tables,
            };
            output::result(&render(&shown, sheet_style(), options))?;
        }
        SummaryFormat::Markdown => output::result(&markdown::render(&report, markdown::COMMENT))?,
        SummaryFormat::Github => {
            let root = env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
            output::ci_result(&annotations::render(&report, root.as_deref()))?;
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

//! `proctor result show`: shows the report of a run again, or of a part of it, from its record.

pub(super) mod filter;

use proctor_core::gate::Gate;
use proctor_core::summary::Summary;
use proctor_report::Report;

use self::filter::Filter;
use super::result::source;
use super::shown;
use super::target::Targets;
use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let targets = Targets::resolve(args.out.as_deref(), args.junit.as_deref(), None)?;
    let filter = Filter::resolve(&args.filter)?;
    let source = source::open(&args.run)?;
    let record = source.run();
    // Scripts may act on this report, so the index must match the trial files.
    let whole = Summary::checked(record)?;
    let gate = Gate::of(&whole);
    let Some(filter) = filter else {
        return show(args, &targets, &source.report(&whole, &gate));
    };
    let Some(part) = whole.part(record, &filter.trials)? else {
        output::message(&filter.nothing_selected(&whole))?;
        return Ok(Exit::NothingSelected);
    };
    let report = Report {
        part: Some(filter.part(&whole)),
        ..source.report(&part, &gate)
    };
    show(args, &targets, &report)
}

fn show(args: &ShowArgs, targets: &Targets, report: &Report<'_>) -> anyhow::Result<Exit> {
    if let Some(error) = shown::write_files(targets, report).into_iter().next() {
        return Err(error);
    }
    shown::show(report, args.output.output)?;
    Ok(Exit::Ok)
}

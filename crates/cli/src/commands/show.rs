//! `proctor result show`: shows the report of a run again, from its record.

use proctor_core::gate::Gate;
use proctor_core::summary::Summary;

use super::result::source;
use super::shown;
use super::target::Targets;
use crate::args::ShowArgs;
use crate::exit::Exit;

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let targets = Targets::resolve(args.out.as_deref(), args.junit.as_deref())?;
    let source = source::open(&args.run)?;
    let record = source.run();
    // Scripts may act on this report, so the index must match the trial files.
    let summary = Summary::checked(record)?;
    let gate = Gate::of(&summary);
    let report = source.report(&summary, &gate);
    if let Some(error) = shown::write_files(&targets, &report).into_iter().next() {
        return Err(error);
    }
    shown::show(&report, args.output.output)?;
    Ok(Exit::Ok)
}

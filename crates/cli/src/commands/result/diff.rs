//! `proctor result diff`: whether one run is worse than another.

mod suites;

use anyhow::{Context, bail};
use proctor_core::compare::{Comparison, RunFacts};
use proctor_core::runs;
use proctor_report::compare::{CompareReport, json, markdown, text};

use super::{sheet_style, source};
use crate::args::{DiffArgs, DiffFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    let base = args.base.as_ref().or(args.base_file.as_ref());
    let new = args.new.as_ref().or(args.current.as_ref());
    let (base, new) = base.zip(new).context("name the runs: BASE and NEW")?;
    match (runs::is_store(base), runs::is_store(new)) {
        (true, true) => return suites::run(base, new, args.output),
        (false, false) => {}
        (true, false) | (false, true) => {
            bail!("name two runs, or two folders that hold the runs of several suites")
        }
    }
    let (base, new) = (source::open(base)?, source::open(new)?);
    // A run is never worse than itself, so a slip of the pen would always be green.
    if base.is_same(&new) {
        bail!("BASE and NEW are the same run: `{}`", new.shown().display());
    }
    let suite = new.run().started().name.clone();
    // One after the other: only what is compared stays in memory.
    let base = RunFacts::load(base.run())?;
    let new = RunFacts::load(new.run())?;
    let comparison = Comparison::of(&base.tally, &new.tally);
    let report = CompareReport::new(&comparison, &suite, &base, &new);
    let rendered = match args.output {
        DiffFormat::Text => text::render(&report, sheet_style()),
        DiffFormat::Markdown => markdown::render(&report),
        DiffFormat::Json => format!("{:#}\n", json::value(&report)),
    };
    output::result(&rendered)?;
    Ok(Exit::from_code(comparison.exit()))
}

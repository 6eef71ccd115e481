//! `proctor result diff` with two folders of runs: the runs of each suite are compared.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use proctor_core::compare::{Comparison, ComparisonAnswer, RunFacts};
use proctor_core::runs;
use proctor_core::statistics::{ALPHA, holm};
use proctor_report::compare::CompareReport;
use proctor_report::compare::suites::{ComparedSuite, SuitesComparison};
use proctor_run::engine::suites::worst;

use super::super::{sheet_style, source};
use crate::args::DiffFormat;
use crate::exit::Exit;
use crate::output;

/// The exit code of a suite that nothing is known of.
const INCONCLUSIVE: u8 = 3;

/// A suite that both folders hold.
struct Pair {
    suite: String,
    base: RunFacts,
    new: RunFacts,
    comparison: Comparison,
}

pub(super) fn run(base: &Path, new: &Path, format: DiffFormat) -> anyhow::Result<Exit> {
    let (bases, mut news) = (by_suite(base)?, by_suite(new)?);
    let (mut pairs, mut missing) = (Vec::new(), Vec::new());
    for (suite, base) in bases {
        match news.remove(&suite) {
            Some(new) => pairs.push(pair(suite, &base, &new)?),
            None => missing.push(suite),
        }
    }
    if pairs.is_empty() {
        let (base, new) = (base.display(), new.display());
        bail!("`{base}` and `{new}` have no suite in common");
    }
    let regressed = regressed(&pairs);
    let suites = pairs.iter().zip(&regressed).map(|(pair, is_regressed)| {
        let is_regression = pair.comparison.answer == ComparisonAnswer::Regression;
        ComparedSuite {
            report: CompareReport::new(&pair.comparison, &pair.suite, &pair.base, &pair.new),
            is_corrected: is_regression && !is_regressed,
        }
    });
    let suites: Vec<ComparedSuite<'_>> = suites.collect();
    let codes = suites.iter().map(|suite| {
        if suite.is_corrected {
            0
        } else {
            suite.report.comparison.exit()
        }
    });
    let codes = codes.chain(missing.iter().map(|_| INCONCLUSIVE));
    let report = SuitesComparison {
        exit: worst(codes),
        suites,
        missing,
        added: news.into_keys().collect(),
    };
    output::result(&match format {
        DiffFormat::Text => report.text(sheet_style()),
        DiffFormat::Markdown => report.markdown(),
        DiffFormat::Json => format!("{:#}\n", report.json()),
    })?;
    Ok(Exit::from_code(report.exit))
}

/// The run of each suite in a folder, by the suite's name.
fn by_suite(folder: &Path) -> anyhow::Result<BTreeMap<String, source::RunSource>> {
    let mut found: BTreeMap<String, source::RunSource> = BTreeMap::new();
    for entry in runs::list(folder)? {
        if !runs::is_run(&entry.folder) {
            continue;
        }
        let run = source::open(&entry.folder)?;
        let suite = run.run().started().name.clone();
        if let Some(other) = found.get(&suite) {
            let (one, other) = (run.shown().display(), other.shown().display());
            bail!(
                "two runs of the suite `{suite}`: `{one}` and `{other}`; name the runs to compare"
            );
        }
        found.insert(suite, run);
    }
    Ok(found)
}

fn pair(suite: String, base: &source::RunSource, new: &source::RunSource) -> anyhow::Result<Pair> {
    if base.is_same(new) {
        bail!("BASE and NEW are the same run: `{}`", new.shown().display());
    }
    let (base, new) = (RunFacts::load(base.run())?, RunFacts::load(new.run())?);
    let comparison = Comparison::of(&base.tally, &new.tally);
    Ok(Pair {
        suite,
        base,
        new,
        comparison,
    })
}

/// Whether each regression stays one after Holm's correction over all suites, as with `check --no-regression`.
fn regressed(pairs: &[Pair]) -> Vec<bool> {
    let ps: Vec<f64> = pairs
        .iter()
        .map(|pair| pair.comparison.regression_p())
        .collect();
    let is_regression = |pair: &Pair| pair.comparison.answer == ComparisonAnswer::Regression;
    match pairs {
        // Alone, its own answer counts.
        [only] => vec![is_regression(only)],
        _ => holm(&ps).into_iter().map(|p| p <= ALPHA).collect(),
    }
}

//! Compares two runs: is the new one worse?
//!
//! The main type is [`Comparison`]. It pairs cases by id and content, so that only equal work is
//! compared, and gives one of three answers. Trials without a verdict never make it greener: they
//! count as passed and as failed, whichever is worse for the answer.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod facts;
mod pairs;
pub mod sentence;
#[cfg(test)]
mod tests;
mod tools;

use proctor_record::event::RunTally;

use crate::statistics::{
    Difference, PassCount, RegressionTest, Stratum, TARGET_DROP, cases_for_drop, runs_for_drop,
};

pub use self::facts::{Change, RunFacts, SpendingChange, tally};
pub use self::pairs::{CellPair, Pairing, UnpairedCase};
pub use self::tools::{ToolChange, ToolChangeKind, ToolWeight, ToolsChange};

/// Whether the new run is worse than the base.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparisonAnswer {
    Regression,
    NoRegressionShown,
    Inconclusive {
        cause: InconclusiveCause,
        more: Option<MoreData>,
    },
}

/// Why a comparison is inconclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InconclusiveCause {
    /// A run was stopped when its gate was decided, so its trials are not a fair sample.
    Curtailed { run: String },
    /// A run has no end, lacks trials, or is only a shard.
    Unfinished { run: String },
    /// A record was changed after its trials ended.
    ChangedRecord { run: String, trials: Vec<String> },
    /// No case has the same id and content in both runs, with an agent of both.
    NothingPaired,
    /// No paired case has trials with a verdict in both runs.
    NoVerdicts,
    /// Trials without a verdict could change the answer.
    OpenTrials { base: u32, new: u32 },
    /// Even a total failure of the new run would not be a regression.
    TooFewTrials,
    /// A case that always passed never passes any more, in too few trials to show more than chance.
    Collapsed {
        case: String,
        base: (u32, u32),
        new: (u32, u32),
    },
}

/// How much more data would show a drop of 10 points four times in five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoreData {
    /// More cases with single trials; `None` if cases have repeats.
    pub cases: Option<u32>,
    /// Runs of each case, in both runs; `None` if no number helps.
    pub runs: Option<u32>,
}

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub base: String,
    pub new: String,
    pub pairing: Pairing,
    /// The tests of the pairs with verdicts in both runs; `None` if there are none.
    pub test: Option<RegressionTest>,
    pub difference: Option<Difference>,
    pub answer: ComparisonAnswer,
}

/// How trials without a verdict are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenTrials {
    LeftOut,
    /// As passed in the new run and failed in the base.
    BestForNew,
    /// As failed in the new run and passed in the base.
    WorstForNew,
}

impl Comparison {
    pub fn of(base: &RunTally, new: &RunTally) -> Self {
        let mut pairing = Pairing::of(base, new);
        let (strata, cells) = strata(&pairing, OpenTrials::LeftOut);
        let (mut test, mut difference) = (None, None);
        let is_sample = !base.curtailed && !new.curtailed;
        if !strata.is_empty() && is_sample {
            let found = RegressionTest::of(&strata);
            for (cell, case) in cells.iter().zip(&found.cases) {
                pairing.cells[*cell].test = *case;
            }
            let case_of: Vec<usize> = cells.iter().map(|at| pairing.cells[*at].case).collect();
            difference = Difference::of(&strata, &case_of);
            test = Some(found);
        }
        let answer = answer([base, new], &pairing, &strata, test.as_ref());
        Self {
            base: base.run.clone(),
            new: new.run.clone(),
            pairing,
            test,
            difference,
            answer,
        }
    }

    /// The exit code: 1 for a regression, 3 if inconclusive.
    pub fn exit(&self) -> u8 {
        match self.answer {
            ComparisonAnswer::NoRegressionShown => 0,
            ComparisonAnswer::Regression => 1,
            ComparisonAnswer::Inconclusive { .. } => 3,
        }
    }

    /// The p-value of a regression, with which several suites are corrected. Trials without a verdict count
    /// as the best for the new run; 1 if the answer is not a regression.
    pub fn regression_p(&self) -> f64 {
        match self.answer {
            ComparisonAnswer::Regression => {
                let (strata, _) = strata(&self.pairing, OpenTrials::BestForNew);
                RegressionTest::of(&strata).overall_p()
            }
            ComparisonAnswer::NoRegressionShown | ComparisonAnswer::Inconclusive { .. } => 1.0,
        }
    }

    /// Whether every compared pair has one trial in each run.
    pub fn is_single(&self) -> bool {
        let mut compared = self.compared();
        compared.all(|cell| cell.base.counted() == 1 && cell.new.counted() == 1)
    }

    /// The pairs with verdicts in both runs.
    pub fn compared(&self) -> impl Iterator<Item = &CellPair> {
        self.pairing.cells.iter().filter(|cell| cell.is_compared())
    }

    /// Whether a pair got worse on its own, by the rule for cases.
    pub fn is_regressed(&self, cell: &CellPair) -> bool {
        let alpha = crate::statistics::ALPHA / 2.0;
        cell.test
            .is_some_and(|test| test.is_worse && test.adjusted <= alpha)
    }

    /// The pairs whose pass rate fell, the surest regressions first.
    pub fn worse(&self) -> Vec<&CellPair> {
        let mut worse: Vec<&CellPair> =
            self.compared().filter(|cell| cell.change() < 0.0).collect();
        let p = |cell: &CellPair| cell.test.map_or(1.0, |test| test.adjusted);
        worse.sort_by(|a, b| {
            let by_p = p(a).total_cmp(&p(b));
            by_p.then(a.change().total_cmp(&b.change()))
        });
        worse
    }

    /// The pairs whose pass rate rose.
    pub fn better(&self) -> Vec<&CellPair> {
        self.compared().filter(|cell| cell.change() > 0.0).collect()
    }
}

/// The strata of pairs with verdicts in both runs, and the indexes of these pairs.
fn strata(pairing: &Pairing, open: OpenTrials) -> (Vec<Stratum>, Vec<usize>) {
    let side = |passed: u32, not_passed: u32, open: u32, open_passes: Option<bool>| PassCount {
        passed: passed + if open_passes == Some(true) { open } else { 0 },
        counted: passed + not_passed + if open_passes.is_some() { open } else { 0 },
    };
    let (base_passes, new_passes) = match open {
        OpenTrials::LeftOut => (None, None),
        OpenTrials::BestForNew => (Some(false), Some(true)),
        OpenTrials::WorstForNew => (Some(true), Some(false)),
    };
    let cells = pairing.cells.iter().enumerate();
    cells
        .map(|(index, cell)| {
            let (base, new) = (cell.base, cell.new);
            let stratum = Stratum {
                base: side(base.passed, base.not_passed, base.open, base_passes),
                new: side(new.passed, new.not_passed, new.open, new_passes),
            };
            (stratum, index)
        })
        .filter(|(stratum, _)| stratum.base.counted > 0 && stratum.new.counted > 0)
        .unzip()
}

fn answer(
    runs: [&RunTally; 2],
    pairing: &Pairing,
    strata_found: &[Stratum],
    test: Option<&RegressionTest>,
) -> ComparisonAnswer {
    let inconclusive = |cause, more| ComparisonAnswer::Inconclusive { cause, more };
    if let Some(run) = runs.iter().find(|run| !run.changed_trials.is_empty()) {
        let cause = InconclusiveCause::ChangedRecord {
            run: run.run.clone(),
            trials: run.changed_trials.clone(),
        };
        return inconclusive(cause, None);
    }
    if let Some(run) = runs.iter().find(|run| run.curtailed) {
        let run = run.run.clone();
        return inconclusive(InconclusiveCause::Curtailed { run }, None);
    }
    if pairing.cells.is_empty() {
        return inconclusive(InconclusiveCause::NothingPaired, None);
    }
    let Some(test) = test else {
        return inconclusive(InconclusiveCause::NoVerdicts, None);
    };
    let open = |side: fn(&CellPair) -> u32| pairing.cells.iter().map(side).sum::<u32>();
    let (base, new) = (open(|cell| cell.base.open), open(|cell| cell.new.open));
    let (mut at_best, mut at_worst) = (test.is_regression(), test.is_regression());
    if base + new > 0 {
        let is_regression = |open| RegressionTest::of(&strata(pairing, open).0).is_regression();
        at_best = is_regression(OpenTrials::BestForNew);
        at_worst |= is_regression(OpenTrials::WorstForNew);
    }
    if at_best {
        return ComparisonAnswer::Regression;
    }
    if let Some(run) = runs.iter().find(|run| run.unfinished) {
        let run = run.run.clone();
        return inconclusive(InconclusiveCause::Unfinished { run }, None);
    }
    if at_worst {
        return inconclusive(InconclusiveCause::OpenTrials { base, new }, None);
    }
    let is_worse = pairing
        .cells
        .iter()
        .any(|cell| cell.is_compared() && cell.change() < 0.0);
    // A base that rarely passes can't get much worse; that matters only if it got worse.
    let can_show = RegressionTest::can_show(strata_found)
        && (!is_worse || RegressionTest::base_allows(strata_found));
    if !can_show {
        return inconclusive(InconclusiveCause::TooFewTrials, Some(more(strata_found)));
    }
    match pairing.cells.iter().find(|cell| cell.has_collapsed()) {
        Some(cell) => inconclusive(
            InconclusiveCause::Collapsed {
                case: cell.name.clone(),
                base: (cell.base.passed, cell.base.counted()),
                new: (cell.new.passed, cell.new.counted()),
            },
            None,
        ),
        None => ComparisonAnswer::NoRegressionShown,
    }
}

/// How much more data would show a drop of [`TARGET_DROP`].
fn more(strata: &[Stratum]) -> MoreData {
    let is_single = |stratum: &Stratum| stratum.base.counted == 1 && stratum.new.counted == 1;
    let runs = runs_for_drop(strata, TARGET_DROP);
    // A base that passes too rarely can't drop so far, with any number of cases.
    let cases = (runs.is_some() && strata.iter().all(is_single)).then(|| {
        let count = |is_meant: fn(&Stratum) -> bool| strata.iter().filter(|s| is_meant(s)).count();
        let worse = count(|stratum| stratum.new.passed < stratum.base.passed);
        let better = count(|stratum| stratum.new.passed > stratum.base.passed);
        // Outcomes that change both ways are noise, which comes on top of a drop.
        #[expect(clippy::cast_precision_loss, reason = "far fewer cases than 2^52")]
        let noise = (2 * worse.min(better)) as f64 / strata.len() as f64;
        let needed = cases_for_drop((TARGET_DROP + noise).min(1.0), TARGET_DROP)?;
        let there = u32::try_from(strata.len()).ok()?;
        Some(needed.saturating_sub(there).max(1))
    });
    MoreData {
        cases: cases.flatten(),
        runs,
    }
}

//! The rule for a regression between two runs.
//!
//! The main type is [`RegressionTest`]. Its error rate of 5 % is split between the test of the whole
//! suite and the tests of single cases, so that neither many small drops nor the collapse of one case
//! stays hidden.

use super::exact::{ExactTest, Stratum, fisher, holm, stratified};
use super::rate::PassCount;

/// The error rate of the whole rule: how often it may call equal runs a regression.
pub const ALPHA: f64 = 0.05;

/// The fewest trials in each run for a test of a single case.
const REPEATS: u32 = 2;

/// The test of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseTest {
    /// The two-sided p-value of Fisher's exact test.
    pub p: f64,
    /// The p-value after Holm's correction over all tested cases.
    pub adjusted: f64,
    /// Whether the difference points towards worse.
    pub is_worse: bool,
}

/// The tests of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionTest {
    pub suite: ExactTest,
    /// One entry per case, in order; `None` if a run has fewer than two trials of it.
    pub cases: Vec<Option<CaseTest>>,
}

impl RegressionTest {
    pub fn of(strata: &[Stratum]) -> Self {
        let is_tested = |s: &Stratum| s.base.counted >= REPEATS && s.new.counted >= REPEATS;
        let tests = strata.iter().map(|s| is_tested(s).then(|| fisher(s)));
        let tests: Vec<Option<ExactTest>> = tests.collect();
        let p_values: Vec<f64> = tests.iter().flatten().map(|test| test.two_sided).collect();
        let mut adjusted = holm(&p_values).into_iter();
        let cases = tests.into_iter().map(|test| {
            let test = test?;
            Some(CaseTest {
                p: test.two_sided,
                adjusted: adjusted.next()?,
                is_worse: test.is_worse(),
            })
        });
        Self {
            suite: stratified(strata),
            cases: cases.collect(),
        }
    }

    /// The error rate of the test of the suite: all of it if no case can be tested alone.
    pub fn suite_alpha(&self) -> f64 {
        if self.cases.iter().flatten().next().is_some() {
            ALPHA / 2.0
        } else {
            ALPHA
        }
    }

    /// Whether the suite as a whole got worse.
    pub fn suite_is_worse(&self) -> bool {
        self.suite.is_worse() && self.suite.two_sided <= self.suite_alpha()
    }

    /// The cases that got worse on their own, by their index.
    pub fn worse_cases(&self) -> impl Iterator<Item = (usize, &CaseTest)> {
        let tested = self.cases.iter().enumerate();
        let tested = tested.filter_map(|(index, test)| Some((index, test.as_ref()?)));
        tested.filter(|(_, test)| test.is_worse && test.adjusted <= ALPHA / 2.0)
    }

    pub fn is_regression(&self) -> bool {
        self.suite_is_worse() || self.worse_cases().next().is_some()
    }

    /// One p-value for the whole rule: it is a regression if this is at most [`ALPHA`]. Several suites are
    /// corrected with it.
    pub fn overall_p(&self) -> f64 {
        let share = self.suite_alpha() / ALPHA;
        let suite = self
            .suite
            .is_worse()
            .then_some(self.suite.two_sided / share);
        let cases = self.cases.iter().flatten().filter(|test| test.is_worse);
        let cases = cases.map(|test| test.adjusted / (1.0 - share));
        suite.into_iter().chain(cases).fold(1.0, f64::min)
    }

    /// Whether as many trials could show a regression at all: if every trial of the base passed, and
    /// every new one failed.
    pub fn can_show(strata: &[Stratum]) -> bool {
        let collapse = strata.iter().map(|stratum| Stratum {
            base: PassCount {
                passed: stratum.base.counted,
                ..stratum.base
            },
            new: PassCount {
                passed: 0,
                ..stratum.new
            },
        });
        Self::of(&collapse.collect::<Vec<_>>()).is_regression()
    }

    /// Whether the base as it is leaves room for a regression: if every new trial failed.
    pub fn base_allows(strata: &[Stratum]) -> bool {
        let collapse = strata.iter().map(|stratum| Stratum {
            new: PassCount {
                passed: 0,
                ..stratum.new
            },
            ..*stratum
        });
        Self::of(&collapse.collect::<Vec<_>>()).is_regression()
    }
}

//! The pass rate of a suite.
//!
//! The main type is [`Rate`]. Intervals are Wilson's at 95 %. If a case has several trials, the
//! rate is the mean of the cases' rates, and the interval accounts for trials of one case being
//! correlated.

use super::interval::{Interval, clopper_pearson_lower, wilson, wilson_lower};

/// The passed trials of a case, among those that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassCount {
    pub passed: u32,
    pub counted: u32,
}

/// The pass rate of a suite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The passed trials and all trials that count, over all cases.
    pub tally: PassCount,
    /// The mean of the cases' rates.
    pub mean: f64,
    /// The confidence interval of the rate.
    pub interval: Interval,
    /// The design effect: how many times more trials are needed than if each trial were of another
    /// case. At least 1.
    pub design_effect: f64,
    /// Whether any case has several trials that count.
    pub is_clustered: bool,
}

impl Rate {
    /// The rate over cases; `None` if no trial counts.
    pub fn of(cases: &[PassCount]) -> Option<Self> {
        let cases: Vec<PassCount> = cases.iter().copied().filter(|c| c.counted > 0).collect();
        if cases.is_empty() {
            return None;
        }
        let mut tally = PassCount::default();
        for case in &cases {
            tally.passed += case.passed;
            tally.counted += case.counted;
        }
        let trials = f64::from(tally.counted);
        let (mean, clustered) = clustered(&cases, |_| 1.0);
        let plain = plain_error(mean, trials);
        let design_effect = if plain > 0.0 {
            (clustered / plain).powi(2).max(1.0)
        } else {
            1.0
        };
        Some(Self {
            tally,
            mean,
            interval: wilson(mean, trials / design_effect),
            design_effect,
            is_clustered: cases.iter().any(|case| case.counted > 1),
        })
    }

    /// The one-sided 95 % lower bound of the rate, for claims: Clopper and Pearson's with single
    /// trials, clustered Wilson with repeats.
    pub fn lower_bound(&self) -> f64 {
        if self.is_clustered {
            wilson_lower(self.mean, self.effective_trials())
        } else {
            clopper_pearson_lower(self.tally.passed, self.tally.counted, 0.05)
        }
    }

    /// The number of independent trials that would say as much.
    pub fn effective_trials(&self) -> f64 {
        f64::from(self.tally.counted) / self.design_effect
    }
}

/// The weighted mean of the cases' rates, and its standard error for trials clustered by case.
pub(super) fn clustered(cases: &[PassCount], weight: impl Fn(&PassCount) -> f64) -> (f64, f64) {
    let rate = |case: &PassCount| f64::from(case.passed) / f64::from(case.counted);
    let weights: f64 = cases.iter().map(&weight).sum();
    // Divides last, so that the mean is exactly 1 if every trial passed.
    let sum: f64 = cases.iter().map(|case| weight(case) * rate(case)).sum();
    let mean = sum / weights;
    let variance: f64 = cases
        .iter()
        .map(|case| (weight(case) / weights * (rate(case) - mean)).powi(2))
        .sum();
    (mean, variance.sqrt())
}

/// The standard error of a mean of independent trials.
pub(super) fn plain_error(mean: f64, trials: f64) -> f64 {
    if trials < 2.0 {
        return 0.0;
    }
    (mean * (1.0 - mean) / (trials - 1.0)).max(0.0).sqrt()
}

//! Confidence intervals of pass rates.
//!
//! The main type is [`Rate`]. Intervals are Wilson's at 95 %. If a case has several trials, the
//! rate is the mean of the cases' rates, and the interval accounts for trials of one case being
//! correlated.

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

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
}

/// Wilson's interval for a rate in this number of trials.
pub fn wilson(rate: f64, trials: f64) -> Interval {
    let z2 = Z * Z;
    let denominator = 1.0 + z2 / trials;
    let centre = (rate + z2 / (2.0 * trials)) / denominator;
    let half =
        Z / denominator * (rate * (1.0 - rate) / trials + z2 / (4.0 * trials * trials)).sqrt();
    // Corrects rounding errors at both ends.
    let low = if rate <= 0.0 { 0.0 } else { centre - half };
    let high = if rate >= 1.0 { 1.0 } else { centre + half };
    Interval {
        low: low.max(0.0),
        high: high.min(1.0),
    }
}

/// The highest failure rate that so many passes without a failure leave possible, with 95 % confidence (one-sided,
/// Clopper–Pearson).
pub fn failures_allowed(passes: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(passes))
}

/// The weighted mean of the cases' rates, and its standard error for trials clustered by case.
fn clustered(cases: &[PassCount], weight: impl Fn(&PassCount) -> f64) -> (f64, f64) {
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
fn plain_error(mean: f64, trials: f64) -> f64 {
    if trials < 2.0 {
        return 0.0;
    }
    (mean * (1.0 - mean) / (trials - 1.0)).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Computed with scipy and statsmodels.
    fn golden() -> Value {
        serde_json::from_str(include_str!("../tests/statistics.json")).unwrap()
    }

    fn near(a: f64, b: &Value) {
        let b = b.as_f64().unwrap();
        assert!((a - b).abs() < 1e-8, "{a} {b}");
    }

    #[test]
    fn wilson_intervals_match_reference_values() {
        let golden = golden();
        let intervals = golden["intervals"].as_array().unwrap();
        let of_95 = |case: &&Value| case["alpha"].as_f64() == Some(0.05);
        let mut seen = 0;
        for case in intervals.iter().filter(of_95) {
            let (x, n) = (case["x"].as_f64().unwrap(), case["n"].as_f64().unwrap());
            let interval = wilson(x / n, n);
            near(interval.low, &case["wilson"][0]);
            near(interval.high, &case["wilson"][1]);
            seen += 1;
        }
        assert!(seen > 10);
    }

    fn clusters(group: &Value) -> Vec<PassCount> {
        let scores = group["scores"].as_array().unwrap();
        let names = group["cluster"].as_array().unwrap();
        let mut tallies = Vec::new();
        for (score, name) in scores.iter().zip(names) {
            let index = usize::try_from(name.as_u64().unwrap()).unwrap();
            tallies.resize(tallies.len().max(index + 1), PassCount::default());
            tallies[index].counted += 1;
            tallies[index].passed += u32::from(score.as_u64() == Some(1));
        }
        tallies
    }

    #[test]
    fn clustered_errors_match_reference_values() {
        let golden = golden();
        for name in ["clustered", "clustered_inflating"] {
            let group = &golden[name];
            let cases = clusters(group);
            let trials: f64 = cases.iter().map(|case| f64::from(case.counted)).sum();
            // Pooled: every trial has the same weight.
            let (mean, error) = clustered(&cases, |case| f64::from(case.counted));
            near(mean, &group["mean"]);
            near(error, &group["se_cluster_miller"]);
            near(plain_error(mean, trials), &group["se_clt_ddof1"]);
        }
    }

    #[test]
    fn correlated_trials_widen_the_interval() {
        let golden = golden();
        let rate = Rate::of(&clusters(&golden["clustered_inflating"])).unwrap();
        near(rate.design_effect, &golden["clustered_inflating"]["deff"]);
        assert_eq!(rate.interval, wilson(0.6875, 16.0 / rate.design_effect));
        assert!(rate.is_clustered);
    }

    #[test]
    fn clean_runs_leave_failures_possible() {
        let golden = golden();
        let bounds = golden["zero_failures_upper_onesided95"]
            .as_object()
            .unwrap();
        assert!(bounds.len() > 10);
        for (passes, bound) in bounds {
            let found = failures_allowed(passes.parse().unwrap());
            assert!((found - bound.as_f64().unwrap()).abs() < 1e-9, "{passes}");
        }
    }

    #[test]
    fn one_trial_a_case_is_wilson() {
        let cases: Vec<PassCount> = (0..10)
            .map(|n| PassCount {
                passed: u32::from(n < 8),
                counted: 1,
            })
            .collect();
        let rate = Rate::of(&cases).unwrap();
        assert_eq!((rate.tally.passed, rate.tally.counted), (8, 10));
        assert!((rate.mean - 0.8).abs() < 1e-12);
        assert!((rate.interval.low - 0.490_162_4).abs() < 1e-6);
        assert!((rate.interval.high - 0.943_317_8).abs() < 1e-6);
        assert!(!rate.is_clustered);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "a full pass rate is exactly 1")]
    fn all_and_none_are_exact() {
        for cases in 1..200 {
            for (passed, rate) in [(3, 1.0), (0, 0.0)] {
                let tally = PassCount { passed, counted: 3 };
                let found = Rate::of(&vec![tally; cases]).unwrap();
                assert_eq!(found.mean, rate);
                let end = [found.interval.low, found.interval.high][usize::from(passed > 0)];
                assert_eq!(end, rate);
            }
        }
    }

    #[test]
    fn every_case_weighs_the_same() {
        let tally = |passed, counted| PassCount { passed, counted };
        let rate = Rate::of(&[tally(9, 9), tally(0, 1), tally(0, 0)]).unwrap();
        assert!((rate.mean - 0.5).abs() < 1e-12);
        assert_eq!(Rate::of(&[tally(0, 0)]), None);
        assert_eq!(Rate::of(&[]), None);
    }

    proptest::proptest! {
        #[test]
        fn the_rate_lies_in_its_interval(cases in proptest::collection::vec((0u32..6, 0u32..6), 1..8)) {
            let cases: Vec<PassCount> = cases
                .iter()
                .map(|(passed, more)| PassCount { passed: *passed, counted: passed + more })
                .collect();
            if let Some(rate) = Rate::of(&cases) {
                let Interval { low, high } = rate.interval;
                proptest::prop_assert!(0.0 <= low && low <= rate.mean + 1e-9);
                proptest::prop_assert!(rate.mean <= high + 1e-9 && high <= 1.0);
                proptest::prop_assert!(rate.design_effect >= 1.0);
            }
        }
    }
}

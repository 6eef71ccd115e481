//! Confidence intervals of a share: Wilson's for display, Clopper and Pearson's for claims.

use statrs::distribution::{Beta, ContinuousCDF, Normal};

/// The two-sided error rate of a 95 % interval.
const ALPHA: f64 = 0.05;

/// The 97.5 % point of the normal distribution, to the last digit.
const Z: f64 = 1.959_963_984_540_054;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The point of the normal distribution below which this share lies.
pub(super) fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// Wilson's 95 % interval for a rate in this number of trials.
pub fn wilson(rate: f64, trials: f64) -> Interval {
    wilson_at(rate, trials, Z)
}

/// The lower end of Wilson's one-sided 95 % interval.
pub fn wilson_lower(rate: f64, trials: f64) -> f64 {
    wilson_at(rate, trials, normal_quantile(1.0 - ALPHA)).low
}

pub(super) fn wilson_at(rate: f64, trials: f64, z: f64) -> Interval {
    let z2 = z * z;
    let denominator = 1.0 + z2 / trials;
    let centre = (rate + z2 / (2.0 * trials)) / denominator;
    let half =
        z / denominator * (rate * (1.0 - rate) / trials + z2 / (4.0 * trials * trials)).sqrt();
    // Corrects rounding errors at both ends.
    let low = if rate <= 0.0 { 0.0 } else { centre - half };
    let high = if rate >= 1.0 { 1.0 } else { centre + half };
    Interval {
        low: low.max(0.0),
        high: high.min(1.0),
    }
}

/// Clopper and Pearson's interval for `passed` of `trials`, with this two-sided error rate.
pub fn clopper_pearson(passed: u32, trials: u32, alpha: f64) -> Interval {
    Interval {
        low: clopper_pearson_lower(passed, trials, alpha / 2.0),
        high: clopper_pearson_upper(passed, trials, alpha / 2.0),
    }
}

/// The lower end of Clopper and Pearson's one-sided interval, with this error rate.
pub fn clopper_pearson_lower(passed: u32, trials: u32, alpha: f64) -> f64 {
    if passed == 0 {
        return 0.0;
    }
    beta_quantile(
        alpha,
        f64::from(passed),
        f64::from(trials.saturating_sub(passed)) + 1.0,
        0.0,
    )
}

/// The upper end of Clopper and Pearson's one-sided interval, with this error rate.
pub fn clopper_pearson_upper(passed: u32, trials: u32, alpha: f64) -> f64 {
    if passed >= trials {
        return 1.0;
    }
    beta_quantile(
        1.0 - alpha,
        f64::from(passed) + 1.0,
        f64::from(trials - passed),
        1.0,
    )
}

/// The share of failures that clean runs still allow, one-sided at 95 %: what "stable" means.
pub fn failures_allowed(clean_runs: u32) -> f64 {
    clopper_pearson_upper(0, clean_runs, ALPHA)
}

/// A quantile of the Beta distribution, or the safe end of the interval if there is none.
fn beta_quantile(share: f64, a: f64, b: f64, otherwise: f64) -> f64 {
    Beta::new(a, b).map_or(otherwise, |beta| beta.inverse_cdf(share))
}

//! The difference between the pass rates of two runs, with its 95 % interval.
//!
//! The main type is [`Difference`].

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::exact::Stratum;
use super::interval::{Interval, wilson};
use super::rate::{PassCount, Rate};

/// How an interval was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceMethod {
    /// Newcombe's paired interval, for single trials.
    NewcombePaired,
    /// The mean difference of the cases with its clustered standard error, for repeats.
    Clustered,
    /// Newcombe's interval of two independent rates, if the cases don't differ among each other.
    Independent,
}

/// The difference of two pass rates, new minus base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The mean of the cases' rates in each run.
    pub base: f64,
    pub new: f64,
    pub interval: Interval,
    pub method: DifferenceMethod,
}

/// The trials of one case in two runs, by one or several agents.
struct CasePair {
    base: f64,
    new: f64,
    pooled: Stratum,
}

impl Difference {
    /// The difference over strata with trials in both runs. `case_of` names the case of each stratum:
    /// strata of several agents may belong to one case. `None` without strata.
    pub fn of(strata: &[Stratum], case_of: &[usize]) -> Option<Self> {
        if strata.is_empty() {
            return None;
        }
        let pairs = case_pairs(strata, case_of);
        let is_single =
            |pair: &CasePair| pair.pooled.base.counted == 1 && pair.pooled.new.counted == 1;
        if pairs.iter().all(is_single) {
            return Some(paired(&pairs));
        }
        clustered(&pairs).or_else(|| independent(&pairs))
    }

    /// New minus base.
    pub fn value(&self) -> f64 {
        self.new - self.base
    }

    /// The largest drop that the interval does not rule out, as a positive number.
    pub fn largest_drop(&self) -> f64 {
        (-self.interval.low).max(0.0)
    }
}

fn case_pairs(strata: &[Stratum], case_of: &[usize]) -> Vec<CasePair> {
    let mut cases: std::collections::BTreeMap<usize, Vec<&Stratum>> =
        std::collections::BTreeMap::new();
    for (stratum, case) in strata.iter().zip(case_of) {
        cases.entry(*case).or_default().push(stratum);
    }
    let pair = |strata: Vec<&Stratum>| {
        let mean = |side: fn(&Stratum) -> PassCount| {
            let rates = strata.iter().map(|stratum| rate(side(stratum)));
            #[expect(clippy::cast_precision_loss, reason = "far fewer agents than 2^52")]
            let count = strata.len() as f64;
            rates.sum::<f64>() / count
        };
        let sum = |side: fn(&Stratum) -> PassCount| {
            let mut sum = PassCount::default();
            for count in strata.iter().map(|stratum| side(stratum)) {
                sum.passed += count.passed;
                sum.counted += count.counted;
            }
            sum
        };
        CasePair {
            base: mean(|stratum| stratum.base),
            new: mean(|stratum| stratum.new),
            pooled: Stratum {
                base: sum(|stratum| stratum.base),
                new: sum(|stratum| stratum.new),
            },
        }
    };
    cases.into_values().map(pair).collect()
}

fn rate(count: PassCount) -> f64 {
    f64::from(count.passed) / f64::from(count.counted)
}

/// Newcombe's paired interval (method 10) without continuity correction.
fn paired(pairs: &[CasePair]) -> Difference {
    // Both pass, only new passes, only base passes, neither.
    let mut counts = [0.0; 4];
    for pair in pairs {
        let index = match (pair.pooled.base.passed > 0, pair.pooled.new.passed > 0) {
            (true, true) => 0,
            (false, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
        };
        counts[index] += 1.0;
    }
    newcombe_paired(counts)
}

pub(super) fn newcombe_paired([both, only_new, only_base, neither]: [f64; 4]) -> Difference {
    let cases = both + only_new + only_base + neither;
    let new = (both + only_new) / cases;
    let base = (both + only_base) / cases;
    let margins =
        (both + only_new) * (only_base + neither) * (both + only_base) * (only_new + neither);
    let correlation = if margins > 0.0 {
        (both * neither - only_new * only_base) / margins.sqrt()
    } else {
        0.0
    };
    Difference {
        base,
        new,
        interval: score(
            new,
            wilson(new, cases),
            base,
            wilson(base, cases),
            correlation,
        ),
        method: DifferenceMethod::NewcombePaired,
    }
}

/// The interval of `new - base` from the intervals of both rates and their correlation.
fn score(new: f64, of_new: Interval, base: f64, of_base: Interval, correlation: f64) -> Interval {
    let half = |a: f64, b: f64| (a * a - 2.0 * correlation * a * b + b * b).max(0.0).sqrt();
    Interval {
        low: new - base - half(new - of_new.low, of_base.high - base),
        high: new - base + half(of_new.high - new, base - of_base.low),
    }
}

/// The mean difference of the cases, with Student's distribution for few cases; `None` if the cases
/// don't differ among each other, which would make the interval empty.
fn clustered(pairs: &[CasePair]) -> Option<Difference> {
    #[expect(clippy::cast_precision_loss, reason = "far fewer cases than 2^52")]
    let cases = pairs.len() as f64;
    let base = pairs.iter().map(|pair| pair.base).sum::<f64>() / cases;
    let new = pairs.iter().map(|pair| pair.new).sum::<f64>() / cases;
    let difference = new - base;
    let squares = pairs
        .iter()
        .map(|pair| (pair.new - pair.base - difference).powi(2));
    let error = (squares.sum::<f64>() / (cases * (cases - 1.0).max(1.0))).sqrt();
    let student = StudentsT::new(0.0, 1.0, cases - 1.0).ok()?;
    let half = student.inverse_cdf(0.975) * error;
    (half > 1e-12).then_some(Difference {
        base,
        new,
        interval: Interval {
            low: (difference - half).max(-1.0),
            high: (difference + half).min(1.0),
        },
        method: DifferenceMethod::Clustered,
    })
}

fn independent(pairs: &[CasePair]) -> Option<Difference> {
    let side = |side: fn(&Stratum) -> PassCount| {
        let counts: Vec<PassCount> = pairs.iter().map(|pair| side(&pair.pooled)).collect();
        Rate::of(&counts)
    };
    let base = side(|stratum| stratum.base)?;
    let new = side(|stratum| stratum.new)?;
    Some(Difference {
        base: base.mean,
        new: new.mean,
        interval: score(new.mean, new.interval, base.mean, base.interval, 0.0),
        method: DifferenceMethod::Independent,
    })
}

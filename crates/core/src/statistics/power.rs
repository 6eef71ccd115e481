//! How many more cases or runs an answer needs.

use statrs::distribution::{Binomial, Discrete, DiscreteCDF};

use super::exact::Stratum;
use super::interval::{clopper_pearson_lower, normal_quantile, wilson_lower};
use super::rate::{PassCount, Rate};
use super::regression::ALPHA;

/// The drop that a comparison should be able to show.
pub const TARGET_DROP: f64 = 0.10;

/// How often it should show it: four times in five.
pub const POWER: f64 = 0.8;

/// More runs than this are not worth proposing.
const MOST_RUNS: u32 = 1_000;

/// More trials than this are not worth proposing.
const MOST_TRIALS: u32 = 100_000;

/// The number of cases with single trials that show a drop with [`POWER`], if this share of cases changes
/// its outcome. `None` if fewer cases change than have to drop.
///
/// The normal approximation falls short by a few cases, since the test is exact and counts whole cases. The
/// search goes on from there until the exact power is enough.
pub fn cases_for_drop(discordant: f64, drop: f64) -> Option<u32> {
    let first = approximate_cases_for_drop(discordant, drop)?;
    let last = first.saturating_add(first / 5 + 10);
    (first..=last).find(|cases| single_trials_power(*cases, discordant, drop) >= POWER)
}

/// The chance that the exact test finds a drop with single trials.
pub(super) fn single_trials_power(cases: u32, discordant: f64, drop: f64) -> f64 {
    // Of the cases that change their outcome, this share gets worse.
    let worse = f64::midpoint(1.0, drop / discordant);
    let Ok(changed) = Binomial::new(discordant, u64::from(cases)) else {
        return 0.0;
    };
    (0..=u64::from(cases))
        .map(|count| {
            let share = changed.pmf(count);
            if share < 1e-12 {
                return 0.0;
            }
            let found = critical(count).and_then(|least| {
                let worse = Binomial::new(worse, count).ok()?;
                Some(at_least(&worse, least))
            });
            share * found.unwrap_or(0.0)
        })
        .sum()
}

/// The fewest worse cases among those that changed which are a regression; `None` if even all are too few.
fn critical(changed: u64) -> Option<u64> {
    let chance = Binomial::new(0.5, changed).ok()?;
    let mut found = None;
    for least in (changed / 2 + 1..=changed).rev() {
        if 2.0 * at_least(&chance, least) > ALPHA {
            break;
        }
        found = Some(least);
    }
    found
}

fn at_least(distribution: &Binomial, least: u64) -> f64 {
    match least.checked_sub(1) {
        Some(below) => distribution.sf(below),
        None => 1.0,
    }
}

/// The number of cases by the normal approximation of the paired test.
pub(super) fn approximate_cases_for_drop(discordant: f64, drop: f64) -> Option<u32> {
    // A drop can't be larger than the share of cases that change.
    if drop <= 0.0 || discordant < drop {
        return None;
    }
    let z = normal_quantile(1.0 - ALPHA / 2.0);
    let power = normal_quantile(POWER);
    let root = z * discordant.sqrt() + power * (discordant - drop * drop).sqrt();
    whole((root / drop).powi(2))
}

/// The number of runs of each case, in both runs, that show a drop of the mean rate with [`POWER`]: the
/// normal approximation of the stratified test. `None` if the base passes too rarely to drop so far, or no
/// reasonable number of runs is enough.
pub fn runs_for_drop(strata: &[Stratum], drop: f64) -> Option<u32> {
    let counts: Vec<PassCount> = strata.iter().map(|stratum| stratum.base).collect();
    let mean = Rate::of(&counts)?.mean;
    if mean < drop || drop <= 0.0 {
        return None;
    }
    // Every case loses the same part of its rate, so that the mean falls by the drop.
    let kept = 1.0 - drop / mean;
    let (mut shift, mut null, mut alternative) = (0.0, 0.0, 0.0);
    for count in counts.iter().filter(|count| count.counted > 0) {
        // Few trials say little: pulls a case's rate towards the suite's by one trial.
        let base = (f64::from(count.passed) + mean) / (f64::from(count.counted) + 1.0);
        let new = base * kept;
        let middle = f64::midpoint(base, new);
        shift += base - new;
        null += middle * (1.0 - middle);
        alternative += base * (1.0 - base) + new * (1.0 - new);
    }
    let z = normal_quantile(1.0 - ALPHA / 4.0);
    let power = normal_quantile(POWER);
    (2..=MOST_RUNS).find(|runs| {
        let runs = f64::from(*runs);
        let critical = z * (runs * runs * null / (2.0 * runs - 1.0)).sqrt();
        let spread = power * (runs * alternative).sqrt() / 2.0;
        // The test counts whole passes: half of one is lost on average.
        runs * shift / 2.0 >= critical + spread + 0.5
    })
}

/// How many more trials like these would lift the one-sided lower bound to `bound`. `None` if no number
/// helps: the rate is not above the bound.
pub fn more_for_lower_bound(rate: &Rate, bound: f64) -> Option<u32> {
    let needed = units_for_lower_bound(rate.mean, bound, rate.is_clustered)?;
    let trials = whole(f64::from(needed) * rate.design_effect)?;
    Some(trials.saturating_sub(rate.tally.counted))
}

/// The number of independent trials that lift the lower bound of a rate to `bound`.
pub fn units_for_lower_bound(rate: f64, bound: f64, is_clustered: bool) -> Option<u32> {
    if rate <= bound {
        return None;
    }
    let is_enough = |trials: u32| {
        let found = if is_clustered {
            wilson_lower(rate, f64::from(trials))
        } else {
            // Rounding down: a whole number of trials passes.
            let passed = whole_below(rate * f64::from(trials) + 1e-9);
            clopper_pearson_lower(passed, trials, ALPHA)
        };
        found >= bound
    };
    let mut trials = 1;
    while trials <= MOST_TRIALS {
        if is_enough(trials) {
            return Some(trials);
        }
        trials += 1 + trials / 100;
    }
    None
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a number that fits"
)]
fn whole(number: f64) -> Option<u32> {
    let number = (number - 1e-9).ceil().max(0.0);
    (number <= f64::from(u32::MAX)).then_some(number as u32)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a number of trials"
)]
fn whole_below(number: f64) -> u32 {
    number.max(0.0).floor() as u32
}

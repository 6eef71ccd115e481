//! Pass rates of suites, pass^k and percentiles.

use serde_json::Value;

use super::super::rate::{clustered, plain_error};
use super::super::*;
use super::{count, entries, golden, near};

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
    for name in ["clustered", "clustered_inflating"] {
        let group = &golden(name);
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
    let group = golden("clustered_inflating");
    let rate = Rate::of(&clusters(&group)).unwrap();
    near(rate.design_effect, &group["deff"]);
    assert_eq!(rate.interval, wilson(0.6875, 16.0 / rate.design_effect));
    assert!(rate.is_clustered);
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

#[test]
fn pass_at_k_and_pass_hat_k_match_reference_values() {
    for case in entries(&golden("pass_k")) {
        let (n, c, k) = (count(&case["n"]), count(&case["c"]), count(&case["k"]));
        near(pass_at(c, n, k).unwrap(), &case["pass_at_k"]);
        near(pass_hat(c, n, k).unwrap(), &case["pass_hat_k"]);
    }
    let suite = golden("suite_pass_k");
    let cases: Vec<(u32, u32)> = entries(&suite["tasks_n_c"])
        .iter()
        .map(|case| (count(&case[1]), count(&case[0])))
        .collect();
    for k in [1, 2, 4, 8] {
        let found = mean_pass_hat(cases.iter().copied(), k).unwrap();
        near(found, &suite[format!("pass_hat_{k}")]);
        let mean: f64 = cases.iter().map(|(c, n)| pass_at(*c, *n, k).unwrap()).sum();
        near(mean / 4.0, &suite[format!("pass_at_{k}")]);
    }
}

#[test]
fn pass_hat_k_needs_k_trials() {
    assert_eq!(pass_hat(3, 3, 4), None);
    assert_eq!(pass_at(3, 3, 4), None);
    assert_eq!(pass_hat(3, 3, 0), None);
    assert_eq!(pass_hat(4, 3, 1), None);
    assert_eq!(mean_pass_hat([(5, 5), (3, 3)], 4), None);
    assert_eq!(mean_pass_hat([], 1), None);
}

#[test]
fn percentiles_are_linear() {
    let values: Vec<f64> = (1..=10).map(f64::from).collect();
    let group = golden("quantiles_1_to_10");
    for (share, expected) in [0.5, 0.9, 0.95, 0.99].iter().zip(entries(&group["linear"])) {
        near(quantile(&values, *share).unwrap(), expected);
    }
    assert_eq!(quantile(&[], 0.5), None);
    assert_eq!(quantile(&[3.0], 0.99), Some(3.0));
}

#[test]
fn repeated_trials_have_the_error_of_their_case_means() {
    let group = golden("resampled");
    let cases: Vec<PassCount> = entries(&group["runs"])
        .iter()
        .map(|runs| {
            let runs = entries(runs);
            PassCount {
                passed: runs.iter().map(count).sum(),
                counted: u32::try_from(runs.len()).unwrap(),
            }
        })
        .collect();
    let rate = Rate::of(&cases).unwrap();
    near(rate.mean, &group["mean"]);
    // The reference value estimates the variance with one degree of freedom fewer.
    let (_, error) = clustered(&cases, |_| 1.0);
    near(error * (5.0_f64 / 4.0).sqrt(), &group["se_task_mean"]);
}

#[test]
fn the_lower_bound_is_exact_with_single_trials_and_clustered_with_repeats() {
    let single = vec![
        PassCount {
            passed: 1,
            counted: 1
        };
        10
    ];
    let bound = Rate::of(&single).unwrap().lower_bound();
    assert!((bound - 0.05_f64.powf(0.1)).abs() < 1e-10, "{bound}");
    let repeats = vec![
        PassCount {
            passed: 2,
            counted: 2
        };
        5
    ];
    let bound = Rate::of(&repeats).unwrap().lower_bound();
    assert!((bound - wilson_lower(1.0, 10.0)).abs() < 1e-12, "{bound}");
}

#[test]
fn the_design_effect_is_that_of_correlated_trials() {
    // For each number of trials and correlation of the reference values, cases whose rates vary as much: how
    // many cases have how many passes.
    let shapes: [&[(u32, u32)]; 4] = [
        &[(1, 0), (1, 5), (2, 2), (2, 3)],
        &[(11, 0), (11, 10), (18, 5)],
        &[(3, 0), (3, 5)],
        &[(1, 1), (1, 4), (1, 2), (1, 3)],
    ];
    let group = golden("design_effect");
    for (case, shape) in entries(&group).iter().zip(shapes) {
        let counted = count(&case["m"]);
        let cases: Vec<PassCount> = shape
            .iter()
            .flat_map(|(cases, passed)| {
                let count = PassCount {
                    passed: *passed,
                    counted,
                };
                vec![count; *cases as usize]
            })
            .collect();
        let rate = Rate::of(&cases).unwrap();
        let trials = f64::from(rate.tally.counted);
        // The reference value is the limit for many cases: both errors divide by the number of trials.
        let found = if rate.design_effect > 1.0 {
            rate.design_effect * trials / (trials - 1.0)
        } else {
            1.0
        };
        near(found, &case["deff"]);
        near(100.0 / found, &case["n_eff_of_100"]);
    }
}

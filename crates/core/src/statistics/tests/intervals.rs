//! Intervals of one share, and of a judge's agreement.

use super::super::interval::{normal_quantile, wilson_at};
use super::super::*;
use super::{count, entries, golden, near, number};

#[test]
fn intervals_of_a_share_match_reference_values() {
    for case in entries(&golden("intervals")) {
        let (x, n) = (count(&case["x"]), count(&case["n"]));
        let alpha = number(&case["alpha"]);
        let z = normal_quantile(1.0 - alpha / 2.0);
        let found = wilson_at(f64::from(x) / f64::from(n), f64::from(n), z);
        near(found.low, &case["wilson"][0]);
        near(found.high, &case["wilson"][1]);
        let found = clopper_pearson(x, n, alpha);
        near(found.low, &case["clopper_pearson"][0]);
        near(found.high, &case["clopper_pearson"][1]);
    }
}

#[test]
fn clean_runs_still_allow_failures() {
    let group = golden("zero_failures_upper_onesided95");
    for (runs, bound) in group.as_object().unwrap() {
        near(failures_allowed(runs.parse().unwrap()), bound);
    }
    assert!((failures_allowed(10) - 0.2589).abs() < 1e-4);
}

#[test]
fn cohens_kappa_matches_reference_values() {
    for case in entries(&golden("cohen_kappa")) {
        let cell = |i: usize, j: usize| count(&case["table"][i][j]);
        let agreement = Agreement {
            both_pass: cell(0, 0),
            only_people_pass: cell(0, 1),
            only_judge_passes: cell(1, 0),
            both_fail: cell(1, 1),
        };
        near(agreement.share().unwrap(), &case["po"]);
        let kappa = agreement.kappa().unwrap();
        near(kappa.value, &case["kappa"]);
        if case["se"].is_null() {
            assert_eq!(kappa.interval, None);
        } else {
            let interval = kappa.interval.unwrap();
            near(interval.low, &case["ci95"][0]);
            near(interval.high, &case["ci95"][1]);
        }
    }
}

#[test]
fn a_judge_that_always_says_the_same_has_no_kappa() {
    let only = Agreement {
        both_pass: 7,
        ..Agreement::default()
    };
    assert_eq!(only.kappa(), None);
    assert_eq!(only.specificity(), None);
    assert_eq!(only.sensitivity(), Some(1.0));
    assert_eq!(Agreement::default().kappa(), None);
    assert_eq!(Agreement::default().share(), None);
}

#[test]
fn sensitivity_and_specificity_correct_an_observed_rate() {
    // Rogan and Gladen's formula; the second reference case is the table of the fourth kappa.
    let agreement = Agreement {
        both_pass: 65,
        only_people_pass: 2,
        only_judge_passes: 12,
        both_fail: 16,
    };
    let case = &golden("rogan_gladen")[1];
    near(agreement.sensitivity().unwrap(), &case["sens"]);
    near(agreement.specificity().unwrap(), &case["spec"]);
}

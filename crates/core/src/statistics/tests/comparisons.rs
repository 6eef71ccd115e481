//! Comparison of two runs.

use serde_json::Value;

use super::super::difference::newcombe_paired;
use super::super::*;
use super::{count, entries, golden, near, number};

fn stratum([base_passed, base, new_passed, new]: [u32; 4]) -> Stratum {
    let side = |passed, counted| PassCount { passed, counted };
    Stratum {
        base: side(base_passed, base),
        new: side(new_passed, new),
    }
}

fn strata(cases: &Value) -> Vec<Stratum> {
    let numbers = |case: &Value| [0, 1, 2, 3].map(|index| count(&case[index]));
    entries(cases)
        .iter()
        .map(|case| stratum(numbers(case)))
        .collect()
}

#[test]
fn the_stratified_test_matches_reference_values() {
    let group = golden("stratified_exact");
    let cases = group["cases"].as_object().unwrap();
    assert!(cases.len() > 3);
    for case in cases.values() {
        let test = stratified(&strata(&case["cases"]));
        near(test.two_sided, &case["two_sided"]);
        near(test.less, &case["less"]);
        near(test.greater, &case["greater"]);
    }
}

#[test]
fn with_single_trials_the_stratified_test_is_exact_mcnemar() {
    for case in entries(&golden("mcnemar")) {
        let worse = vec![stratum([1, 1, 0, 1]); count(&case["b"]) as usize];
        let better = vec![stratum([0, 1, 1, 1]); count(&case["c"]) as usize];
        let same = vec![stratum([1, 1, 1, 1]); 3];
        let test = stratified(&[worse, better, same].concat());
        near(test.two_sided, &case["exact"]);
        if !case["one_sided_b_greater"].is_null() {
            near(test.less, &case["one_sided_b_greater"]);
        }
    }
}

#[test]
fn fishers_test_matches_reference_values() {
    for case in entries(&golden("two_prop")) {
        let [a, b] = ["a", "b"].map(|side| [count(&case[side][0]), count(&case[side][1])]);
        let test = fisher(&stratum([a[0], a[1], b[0], b[1]]));
        near(test.two_sided, &case["fisher"]);
        near(test.less, &case["fisher_greater"]);
    }
}

#[test]
fn holm_matches_reference_values() {
    let group = golden("multiple");
    let p: Vec<f64> = entries(&group["p"]).iter().map(number).collect();
    for (found, expected) in holm(&p).iter().zip(entries(&group["holm"])) {
        near(*found, expected);
    }
    // The order of the tests does not matter.
    let reversed: Vec<f64> = p.iter().rev().copied().collect();
    let found: Vec<f64> = holm(&reversed).into_iter().rev().collect();
    assert_eq!(found, holm(&p));
    assert_eq!(holm(&[]), Vec::<f64>::new());
}

#[test]
fn the_regression_rule_matches_reference_values() {
    let group = golden("regression_rule");
    let inputs = golden("stratified_exact");
    let mut answers = std::collections::BTreeSet::new();
    for (name, expected) in group["cases"].as_object().unwrap() {
        let test = RegressionTest::of(&strata(&inputs["cases"][name]["cases"]));
        near(test.suite.two_sided, &expected["suite_level_two_sided"]);
        // With single trials, no case is tested alone.
        let cases: Vec<&CaseTest> = test.cases.iter().flatten().collect();
        let fisher = entries(&expected["fisher_two_sided"]);
        if !cases.is_empty() {
            assert_eq!(cases.len(), fisher.len());
        }
        for (index, case) in cases.iter().enumerate() {
            near(case.p, &fisher[index]);
            near(case.adjusted, &expected["holm"][index]);
        }
        let answer = if test.is_regression() {
            "regression"
        } else {
            "no regression shown"
        };
        assert_eq!(answer, expected["answer"], "{name}");
        answers.insert(answer);
    }
    assert_eq!(answers.len(), 2);
}

#[test]
fn a_case_that_collapses_is_a_regression_even_if_the_suite_hides_it() {
    let mut cases = vec![stratum([6, 6, 0, 6])];
    cases.extend([[6, 6, 6, 6], [5, 6, 6, 6], [6, 6, 5, 6], [4, 6, 4, 6]].map(stratum));
    let test = RegressionTest::of(&cases);
    assert!(!test.suite_is_worse());
    assert_eq!(
        test.worse_cases()
            .map(|(index, _)| index)
            .collect::<Vec<_>>(),
        [0]
    );
    assert!(test.is_regression());
    // The other way round it is an improvement.
    let swapped: Vec<Stratum> = cases
        .iter()
        .map(|stratum| Stratum {
            base: stratum.new,
            new: stratum.base,
        })
        .collect();
    assert!(!RegressionTest::of(&swapped).is_regression());
}

#[test]
fn single_trials_need_six_cases_to_show_anything() {
    let check = |cases: usize, can| {
        let strata = vec![stratum([1, 1, 1, 1]); cases];
        assert_eq!(RegressionTest::can_show(&strata), can, "{cases}");
    };
    check(0, false);
    check(1, false);
    check(5, false);
    check(6, true);
    // One case with enough repeats can.
    assert!(!RegressionTest::can_show(&[stratum([3, 3, 3, 3])]));
    assert!(RegressionTest::can_show(&[stratum([5, 5, 5, 5])]));
    // A base that always fails can't get worse.
    let failing = vec![stratum([0, 1, 0, 1]); 20];
    assert!(RegressionTest::can_show(&failing));
    assert!(!RegressionTest::base_allows(&failing));
}

#[test]
fn unequal_trials_are_weighed_by_their_number() {
    // Four new trials for each base trial: nothing is lost by dropping to an equal number.
    let test = RegressionTest::of(&[stratum([1, 1, 0, 4]); 8]);
    assert!(test.is_regression());
    // No case is tested alone with one trial of the base.
    assert!(test.cases.iter().all(Option::is_none));
}

#[test]
fn thousands_of_cases_are_tested_quickly() {
    let mut cases = vec![stratum([60, 100, 50, 100]); 60];
    cases.extend(vec![stratum([1, 1, 0, 1]); 600]);
    cases.extend(vec![stratum([0, 1, 1, 1]); 300]);
    let test = stratified(&cases);
    assert!(test.two_sided < 1e-20 && test.two_sided > 0.0);
    let same = stratified(&vec![stratum([60, 100, 60, 100]); 60]);
    assert!((same.two_sided - 1.0).abs() < 1e-9);
}

#[test]
fn newcombes_paired_interval_matches_reference_values() {
    for case in entries(&golden("newcombe_paired")["cases"]) {
        let counts = [0, 1, 2, 3].map(|index| number(&case["counts"][index]));
        let found = newcombe_paired(counts);
        near(found.value(), &case["difference"]);
        near(found.interval.low, &case["low"]);
        near(found.interval.high, &case["high"]);
        // The same through single trials.
        let trials = [[1, 1, 1, 1], [0, 1, 1, 1], [1, 1, 0, 1], [0, 1, 0, 1]].map(stratum);
        let mut strata = Vec::new();
        for (stratum, count) in trials.iter().zip(entries(&case["counts"])) {
            strata.extend(vec![*stratum; super::count(count) as usize]);
        }
        let cases: Vec<usize> = (0..strata.len()).collect();
        let whole = Difference::of(&strata, &cases).unwrap();
        assert_eq!(whole, found);
    }
}

#[test]
fn a_paired_difference_has_the_clustered_error() {
    // Ten questions in three clusters, as one case with several agents each.
    let group = golden("paired");
    let sides = ["A", "B"].map(|side| entries(&group[side]).iter().map(count).collect::<Vec<_>>());
    let clusters: Vec<usize> = entries(&group["clusters"])
        .iter()
        .map(|c| count(c) as usize)
        .collect();
    let strata: Vec<Stratum> = (0..10)
        .map(|index| stratum([sides[1][index], 1, sides[0][index], 1]))
        .collect();
    // One cluster per question: the plain paired error.
    let each: Vec<usize> = (0..10).collect();
    let twice: Vec<Stratum> = strata
        .iter()
        .map(|s| {
            let double = |c: PassCount| PassCount {
                passed: c.passed * 2,
                counted: c.counted * 2,
            };
            Stratum {
                base: double(s.base),
                new: double(s.new),
            }
        })
        .collect();
    let found = Difference::of(&twice, &each).unwrap();
    near(found.value(), &group["mean_diff"]);
    assert_eq!(found.method, DifferenceMethod::Clustered);
    let half = (found.interval.high - found.interval.low) / 2.0;
    // Student's 97.5 % point with nine degrees of freedom.
    near(half / 2.262_157_162_798_205, &group["se_paired"]);
    // Several agents of a case are one cluster.
    let grouped = Difference::of(&strata, &clusters).unwrap();
    assert_eq!(grouped.method, DifferenceMethod::Clustered);
}

#[test]
fn equal_runs_still_leave_room_for_a_drop() {
    let strata = vec![stratum([5, 5, 5, 5]); 40];
    let cases: Vec<usize> = (0..40).collect();
    let found = Difference::of(&strata, &cases).unwrap();
    assert_eq!(found.method, DifferenceMethod::Independent);
    assert!(found.largest_drop() > 0.01 && found.largest_drop() < 0.05);
    assert_eq!(Difference::of(&[], &[]), None);
}

#[test]
fn runs_for_a_drop_fall_with_more_cases_and_never_for_a_failing_base() {
    let need = |cases: usize, passed| {
        runs_for_drop(&vec![stratum([passed, 5, passed, 5]); cases], TARGET_DROP)
    };
    let few = need(5, 4).unwrap();
    let many = need(40, 4).unwrap();
    assert!(few > many, "{few} {many}");
    assert_eq!(need(40, 0), None);
    assert_eq!(runs_for_drop(&[], TARGET_DROP), None);
}

proptest::proptest! {
    #[test]
    fn p_values_are_shares_and_tails_overlap(
        cases in proptest::collection::vec((0u32..5, 0u32..5, 0u32..5, 0u32..5), 0..6)
    ) {
        let strata: Vec<Stratum> = cases
            .iter()
            .map(|(a, b, c, d)| stratum([*a, a + b, *c, c + d]))
            .collect();
        let test = stratified(&strata);
        for p in [test.two_sided, test.less, test.greater] {
            proptest::prop_assert!(p > 0.0 && p <= 1.0);
        }
        // The observed value belongs to both tails.
        proptest::prop_assert!(test.less + test.greater >= 1.0 - 1e-9);
        let swapped: Vec<Stratum> = strata
            .iter()
            .map(|stratum| Stratum { base: stratum.new, new: stratum.base })
            .collect();
        let swapped = stratified(&swapped);
        proptest::prop_assert!((swapped.two_sided - test.two_sided).abs() < 1e-9);
        proptest::prop_assert!((swapped.less - test.greater).abs() < 1e-9);
    }
}

fn binomial(trials: u32, rate: f64) -> Vec<f64> {
    let mut shares = vec![1.0];
    for _ in 0..trials {
        let mut next = vec![0.0; shares.len() + 1];
        for (passed, share) in shares.iter().enumerate() {
            next[passed] += share * (1.0 - rate);
            next[passed + 1] += share * rate;
        }
        shares = next;
    }
    shares
}

#[test]
fn the_exact_power_of_fishers_test_matches_reference_values() {
    for case in entries(&golden("exact_power_fisher_one_sided")) {
        let runs = count(&case["n"]);
        let base = binomial(runs, number(&case["p1"]));
        let new = binomial(runs, number(&case["p2"]));
        let mut power = 0.0;
        for (b, p) in (0..).zip(&base) {
            for (n, q) in (0..).zip(&new) {
                // Far tails change no digit.
                if p * q > 1e-14 && fisher(&stratum([b, runs, n, runs])).less <= 0.05 {
                    power += p * q;
                }
            }
        }
        near(power, &case["power"]);
    }
}

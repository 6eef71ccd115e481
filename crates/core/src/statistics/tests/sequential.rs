//! Early stopping, and how many runs an answer needs.

use super::super::*;
use super::{count, entries, golden, near, number};

#[test]
fn the_anytime_interval_matches_reference_values() {
    for case in entries(&golden("conf_sequence_betabinom95")) {
        let found = confidence_sequence(count(&case["s"]), count(&case["f"]));
        near(found.low, &case["lo"]);
        near(found.high, &case["hi"]);
    }
    let nothing = confidence_sequence(0, 0);
    assert!(nothing.low <= 0.0 && nothing.high >= 1.0);
}

#[test]
fn the_sequential_test_matches_reference_values() {
    let group = golden("sprt");
    let test = Sprt {
        good: number(&group["p0"]),
        bad: number(&group["p1"]),
        alpha: number(&group["alpha"]),
        beta: number(&group["beta"]),
    };
    let (accept, reject) = test.bounds();
    near(accept, &group["lower"]);
    near(reject, &group["upper"]);
    near(test.log_ratio(1, 0), &group["llr_pass"]);
    near(test.log_ratio(0, 1), &group["llr_fail"]);
    near(test.log_ratio(18, 4), &group["llr_after_18_pass_4_fail"]);
    let passes = count(&group["consecutive_passes_to_accept_H0"]);
    assert_eq!(test.decide(passes, 0), Decision::Accept);
    assert_eq!(test.decide(passes - 1, 0), Decision::Continue);
    let fails = count(&group["consecutive_fails_to_reject"]);
    assert_eq!(test.decide(0, fails), Decision::Reject);
    assert_eq!(test.decide(0, fails - 1), Decision::Continue);
}

/// The expected number of runs, and the chance to accept, of a curtailed rule.
fn curtailed_gate(needed: u32, planned: u32, p: f64, passed: u32, failed: u32) -> (f64, f64) {
    match curtailed(needed, planned, passed, failed) {
        Decision::Accept => (0.0, 1.0),
        Decision::Reject => (0.0, 0.0),
        Decision::Continue => {
            let pass = curtailed_gate(needed, planned, p, passed + 1, failed);
            let fail = curtailed_gate(needed, planned, p, passed, failed + 1);
            let mix = |a: f64, b: f64| p * a + (1.0 - p) * b;
            (1.0 + mix(pass.0, fail.0), mix(pass.1, fail.1))
        }
    }
}

#[test]
fn a_curtailed_rule_saves_runs_and_decides_the_same() {
    for case in entries(&golden("curtailed_gate_expected_runs")) {
        let (needed, of) = (count(&case["need"]), count(&case["of"]));
        let (runs, _) = curtailed_gate(needed, of, number(&case["p"]), 0, 0);
        near(runs, &case["expected_runs"]);
    }
    for case in entries(&golden("gate_pass_prob")) {
        let (needed, of) = (count(&case["need"]), count(&case["of"]));
        if of <= 20 {
            let (_, accepted) = curtailed_gate(needed, of, number(&case["p"]), 0, 0);
            near(accepted, &case["prob"]);
        }
    }
}

#[test]
fn the_number_of_cases_matches_reference_values() {
    for case in entries(&golden("power_paired_mcnemar")) {
        let (delta, discordant) = (number(&case["delta"]), number(&case["discordant"]));
        assert_eq!(
            cases_for_drop(discordant, delta),
            Some(count(&case["n_two"]))
        );
    }
    assert_eq!(cases_for_drop(0.05, 0.1), None);
    assert_eq!(cases_for_drop(0.0, 0.0), None);
}

#[test]
fn clean_trials_for_a_lower_bound_follow_the_rule_of_three() {
    let reruns = golden("reruns_to_see_flake_95");
    for (flake, runs) in reruns.as_object().unwrap() {
        let flake: f64 = flake.parse().unwrap();
        let found = units_for_lower_bound(1.0, 1.0 - flake, false).unwrap();
        // The search steps by one part in a hundred.
        let expected = count(runs);
        assert!(
            found >= expected && found <= expected + expected / 100 + 1,
            "{flake} {found}"
        );
    }
}

#[test]
fn no_number_of_trials_lifts_a_bound_above_the_rate() {
    assert_eq!(units_for_lower_bound(0.9, 0.9, false), None);
    assert_eq!(units_for_lower_bound(0.8, 0.9, true), None);
    assert!(units_for_lower_bound(0.95, 0.9, true).unwrap() > 50);
}

/// Random numbers between 0 and 1, the same in every test run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        f64::from(u32::try_from(self.0 >> 32).unwrap()) / f64::from(u32::MAX)
    }

    /// How many cases pass and don't pass in a round.
    fn round(&mut self, rates: &[f64]) -> (u32, u32) {
        let passed = rates.iter().filter(|rate| self.next() < **rate).count();
        let count = |number: usize| u32::try_from(number).unwrap();
        (count(passed), count(rates.len() - passed))
    }
}

/// How often the rule accepts, and rejects, of 4,000 runs of 60 rounds.
fn answers(rates: &[f64], least: f64) -> (f64, f64) {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let (mut accepted, mut rejected) = (0, 0);
    for _ in 0..4_000 {
        let rounds: Vec<(u32, u32)> = (0..60).map(|_| chance.round(rates)).collect();
        match decide_rate(rounds, least).decision {
            Decision::Accept => accepted += 1,
            Decision::Reject => rejected += 1,
            Decision::Continue => {}
        }
    }
    (f64::from(accepted) / 4e3, f64::from(rejected) / 4e3)
}

#[test]
fn looking_after_every_round_is_wrong_at_most_at_the_nominal_rate() {
    // The mean rate is just below the gate: every acceptance is an error. Three standard errors of 4,000
    // runs are 0.0104.
    let allowed = 0.05 + 0.0104;
    for rates in [
        &[0.899][..],
        &[0.899; 5],
        &[1.0, 1.0, 1.0, 1.0, 0.495],
        &[0.999, 0.999, 0.699],
        &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.99, 0.0],
    ] {
        let (accepted, _) = answers(rates, 0.9);
        assert!(accepted <= allowed, "{rates:?}: {accepted}");
    }
    // Just above it, every rejection is an error.
    for rates in [&[0.501][..], &[0.501; 5], &[1.0, 0.002], &[0.9, 0.603, 0.0]] {
        let (_, rejected) = answers(rates, 0.5);
        assert!(rejected <= allowed, "{rates:?}: {rejected}");
    }
    // And it does decide.
    let (accepted, _) = answers(&[0.99; 5], 0.9);
    assert!(accepted > 0.95, "{accepted}");
    let (_, rejected) = answers(&[0.5; 5], 0.9);
    assert!(rejected > 0.95, "{rejected}");
}

#[test]
fn looking_after_every_round_at_a_fixed_bound_would_be_wrong_more_often() {
    // The same runs with Clopper and Pearson's bound, which is meant for one look.
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let mut accepted = 0;
    for _ in 0..1_000 {
        let (mut passed, mut counted) = (0, 0);
        let is_accepted = (0..60).any(|_| {
            let round = chance.round(&[0.899; 5]);
            passed += round.0;
            counted += round.0 + round.1;
            clopper_pearson_lower(passed, counted, 0.05) >= 0.9
        });
        accepted += i32::from(is_accepted);
    }
    assert!(accepted > 100, "{accepted} of 1000");
}

#[test]
fn the_decision_is_where_the_interval_is() {
    for (passed, not_passed) in [(0, 0), (1, 0), (0, 1), (60, 1), (30, 40), (5, 200)] {
        for least in [0.01, 0.2, 0.5, 0.8, 0.95, 1.0] {
            let found = decide_rate([(passed, not_passed)], least);
            let interval = confidence_sequence(passed, not_passed);
            let expected = if interval.low > least {
                Decision::Accept
            } else if interval.high < least {
                Decision::Reject
            } else {
                Decision::Continue
            };
            assert_eq!(found.decision, expected, "{passed} {not_passed} {least}");
        }
    }
}

#[test]
fn one_p_value_says_the_same_as_the_rule() {
    let mut chance = Chance(0x1234_5678_9ABC_DEF1);
    for _ in 0..500 {
        let trials = if chance.next() < 0.3 { 1 } else { 6 };
        let side = |chance: &mut Chance, rate: f64| PassCount {
            passed: chance.round(&vec![rate; trials]).0,
            counted: u32::try_from(trials).unwrap(),
        };
        let strata: Vec<Stratum> = (0..8)
            .map(|_| Stratum {
                base: side(&mut chance, 0.9),
                new: side(&mut chance, 0.4),
            })
            .collect();
        let test = RegressionTest::of(&strata);
        assert_eq!(test.overall_p() <= ALPHA, test.is_regression(), "{test:?}");
    }
}

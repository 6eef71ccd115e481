//! The gate over verdicts, and each gate on rates.

mod known;
mod rates;

use CaseVerdict::{Met, Missed, Open};
use proptest::prelude::*;

use super::*;

fn standing(passed: u32, not_passed: u32, open: u32) -> TrialCounts {
    TrialCounts {
        passed,
        not_passed,
        open,
    }
}

#[test]
fn a_pass_rule_is_met_missed_or_inconclusive() {
    let check = |pass, (p, n, o), expected| {
        let verdict = PassThreshold::of(pass).verdict(standing(p, n, o));
        assert_eq!(verdict, expected, "{pass:?} {p} {n} {o}");
    };
    // Every trial.
    check(None, (3, 0, 0), Met);
    check(None, (2, 1, 0), Missed);
    check(None, (2, 0, 1), Open);
    check(None, (2, 1, 1), Missed);
    check(None, (0, 0, 1), Open);
    check(None, (0, 0, 0), Open);
    // 4 of 5.
    let four = Some((4, 5));
    check(four, (5, 0, 0), Met);
    check(four, (4, 1, 0), Met);
    check(four, (4, 0, 1), Met);
    check(four, (3, 2, 0), Missed);
    check(four, (3, 1, 1), Open);
    check(four, (2, 2, 1), Missed);
    check(four, (0, 0, 5), Open);
    // Too few trials: the rule speaks of five.
    check(four, (1, 0, 0), Open);
    check(four, (4, 0, 0), Met);
    check(four, (1, 2, 0), Missed);
    check(four, (0, 0, 0), Open);
    // More trials: the same share.
    check(four, (8, 2, 0), Met);
    check(four, (7, 3, 0), Missed);
    check(four, (7, 2, 1), Open);
    // No rule can be kept by nothing.
    check(Some((0, 5)), (0, 5, 0), Missed);
}

#[test]
fn a_missed_case_decides_and_an_inconclusive_one_does_not() {
    let check = |cells: &[CaseVerdict], exit| {
        let cells = cells.iter().map(|verdict| (*verdict, String::new));
        assert_eq!(Gate::over(cells).exit(), exit);
    };
    check(&[], 3);
    check(&[Met], 0);
    check(&[Met, Met], 0);
    check(&[Met, Open], 3);
    check(&[Met, Open, Missed], 1);
    check(&[Missed, Met], 1);
}

/// Whether a rule is kept when no trial is open.
fn is_kept(pass: Option<(u32, u32)>, passed: u32, trials: u32) -> bool {
    match pass {
        None => passed == trials && trials > 0,
        Some((least, of)) => passed > 0 && passed * of >= least * trials,
    }
}

proptest! {
    #[test]
    fn the_gate_agrees_with_every_completion(
        cases in proptest::collection::vec(
            (0u32..3, 0u32..3, 0u32..4, proptest::option::of((1u32..4, 0u32..3))), 1..4)
    ) {
        // What each case comes to, over all completions of its open and missing trials.
        let mut gates = std::collections::BTreeSet::from([true]);
        for (passed, not_passed, open, rule) in &cases {
            let pass = rule.map(|(least, more)| (least, least + more));
            let there = passed + not_passed + open;
            let trials = there.max(pass.map_or(0, |(_, of)| of));
            let free = trials - passed - not_passed;
            let kept: Vec<bool> = (0..=free)
                .map(|more| is_kept(pass, passed + more, trials))
                .collect();
            gates = gates
                .iter()
                .flat_map(|so_far| kept.iter().map(move |kept| *so_far && *kept))
                .collect();
        }
        // A case without a trial and without a rule can't be completed: it is open.
        let empty = cases.iter().any(|(p, n, o, rule)| p + n + o == 0 && rule.is_none());
        let any_missed = gates.iter().all(|met| !met);
        let cells = cases.iter().map(|(p, n, o, rule)| {
            let pass = rule.map(|(least, more)| (least, least + more));
            (PassThreshold::of(pass).verdict(standing(*p, *n, *o)), String::new)
        });
        let exit = Gate::over(cells).exit();
        let expected = match (gates.contains(&true), any_missed) {
            (true, _) if gates.len() == 1 => 0,
            (false, true) => 1,
            _ => 3,
        };
        if empty {
            prop_assert_ne!(exit, 0);
        } else {
            prop_assert_eq!(exit, expected);
        }
    }
}

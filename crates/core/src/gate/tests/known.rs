//! Known failures: what they cover, and every way in which they could make a gate green by accident.

use proctor_record::event::{PassHatGate, PlannedGates, PlannedKnownFailure, PlannedOptions};

use super::rates::written_with;
use crate::compare::{self, Comparison};
use crate::gate::{CaseVerdict, Gate, conditions};

/// The runs of these tests started on 2026-11-15.
fn known(case: &str) -> PlannedKnownFailure {
    PlannedKnownFailure {
        case: case.to_owned(),
        reason: "issue 12".to_owned(),
        ..PlannedKnownFailure::default()
    }
}

type Cases<'a> = &'a [(Option<(u32, u32)>, &'a str)];

/// The reasons of the gate, after its exit code was compared.
#[track_caller]
fn check(
    cases: Cases<'_>,
    known: &[PlannedKnownFailure],
    gates: &PlannedGates,
    exit: u8,
) -> String {
    let asked = PlannedOptions {
        known_failures: known.to_vec(),
        ..PlannedOptions::default()
    };
    let run = written_with(cases, asked);
    let gate = Gate::with(&run.summary, gates);
    assert_eq!(gate.exit(), exit, "{gate:?}");
    gate.reasons().join("\n")
}

#[track_caller]
fn default(cases: Cases<'_>, known: &[PlannedKnownFailure], exit: u8) -> String {
    check(cases, known, &PlannedGates::default(), exit)
}

#[test]
fn a_known_failure_does_not_miss_the_gate() {
    default(&[(None, "p"), (None, "f")], &[], 1);
    default(&[(None, "p"), (None, "f")], &[known("case-1")], 0);
    default(&[(None, "p"), (None, "t")], &[known("case-1")], 0);
    default(&[(None, "p"), (None, "ff")], &[known("case-*")], 1);
    // By its id, which is the name here.
    default(&[(None, "f"), (None, "p")], &[known("case-0")], 0);
}

#[test]
fn another_failure_still_misses_the_gate() {
    let reasons = default(
        &[(None, "p"), (None, "f"), (None, "f")],
        &[known("case-1")],
        1,
    );
    assert!(
        reasons.contains("case-2") && !reasons.contains("case-1"),
        "{reasons}"
    );
}

#[test]
fn an_unexpected_pass_misses_the_gate() {
    let reasons = default(&[(None, "p"), (None, "p")], &[known("case-1")], 1);
    assert_eq!(
        reasons,
        "`case-1`: unexpected pass: 1 of 1 trials passed, but the case is listed as a known failure \
         (issue 12); remove the entry from `knownFailures`"
    );
}

#[test]
fn the_pass_rule_says_whether_a_flaky_case_fails() {
    // It misses its pass rule: without the entry, the gate would be missed.
    default(&[(None, "p"), (None, "ppf")], &[known("case-1")], 0);
    default(&[(None, "p"), (Some((2, 3)), "pff")], &[known("case-1")], 0);
    // It meets its pass rule: the entry is not needed.
    default(&[(None, "p"), (None, "ppp")], &[known("case-1")], 1);
    default(&[(None, "p"), (Some((2, 3)), "ppf")], &[known("case-1")], 1);
}

#[test]
fn errors_are_never_known_failures() {
    let reasons = default(&[(None, "p"), (None, "e")], &[known("case-1")], 3);
    assert!(reasons.contains("1 without a verdict"), "{reasons}");
    default(&[(None, "p"), (None, "c")], &[known("case-1")], 3);
    default(&[(None, "p"), (None, "-")], &[known("case-1")], 3);
    default(&[(None, "p"), (None, "pe")], &[known("case-1")], 3);
    // A failed trial decides, whatever the errored one would have been.
    default(&[(None, "p"), (None, "fe")], &[known("case-1")], 0);
    let most = PlannedGates {
        max_errors: Some(0),
        ..PlannedGates::default()
    };
    check(&[(None, "p"), (None, "fe")], &[known("case-1")], &most, 1);
}

#[test]
fn a_run_of_known_failures_proves_nothing() {
    let reasons = default(&[(None, "f"), (None, "f")], &[known("*")], 3);
    assert!(reasons.contains("proves nothing"), "{reasons}");
    default(&[(None, "f")], &[known("case-0")], 3);
    default(&[], &[known("*")], 3);
    for gates in [
        PlannedGates {
            max_errors: Some(0),
            ..PlannedGates::default()
        },
        PlannedGates {
            min_pass_rate: Some(0.1),
            ..PlannedGates::default()
        },
        PlannedGates {
            min_lower_bound: Some(0.1),
            ..PlannedGates::default()
        },
        PlannedGates {
            pass_hat: Some(PassHatGate { k: 1, rate: 0.1 }),
            ..PlannedGates::default()
        },
    ] {
        check(&[(None, "f"), (None, "t")], &[known("*")], &gates, 3);
    }
    // One case that passes is unexpected.
    default(&[(None, "p"), (None, "f")], &[known("*")], 1);
}

#[test]
fn an_entry_that_matches_no_case_misses_the_gate() {
    let typo = PlannedKnownFailure {
        unmatched: true,
        ..known("case-9")
    };
    let reasons = default(&[(None, "p")], &[typo], 1);
    assert_eq!(
        reasons,
        "the known failure `case-9` matches no case of the suite; correct or remove the entry"
    );
    // The case is in the suite, and the run did not select it.
    default(&[(None, "p")], &[known("case-9")], 0);
}

#[test]
fn an_expired_entry_misses_the_gate_and_covers_nothing() {
    let until = |case: &str, day: &str| PlannedKnownFailure {
        until: Some(day.to_owned()),
        ..known(case)
    };
    default(
        &[(None, "p"), (None, "f")],
        &[until("case-1", "2026-11-15")],
        0,
    );
    let reasons = default(
        &[(None, "p"), (None, "f")],
        &[until("case-1", "2026-11-14")],
        1,
    );
    assert!(
        reasons.contains("`case-1`: 0 of 1 trials passed"),
        "{reasons}"
    );
    assert!(
        reasons.contains("the known failure `case-1` expired on 2026-11-14 (issue 12)"),
        "{reasons}"
    );
    // Also if the case passes: the list must not outlive its reasons.
    default(
        &[(None, "p"), (None, "p")],
        &[until("case-1", "2026-11-14")],
        1,
    );
    // Not if the run did not select the case.
    default(&[(None, "p")], &[until("case-9", "2026-11-14")], 0);
    // Another entry still covers the case, and the gate is missed all the same.
    let both = [until("case-1", "2026-11-14"), known("case-1")];
    let reasons = default(&[(None, "p"), (None, "f")], &both, 1);
    assert!(!reasons.contains("0 of 1"), "{reasons}");
}

#[test]
fn an_entry_for_another_agent_covers_nothing() {
    let of = |agent: &str| PlannedKnownFailure {
        agent: Some(agent.to_owned()),
        ..known("case-1")
    };
    default(&[(None, "p"), (None, "f")], &[of("codex")], 1);
    default(&[(None, "p"), (None, "f")], &[of("loop")], 0);
    default(&[(None, "p"), (None, "p")], &[of("codex")], 0);
}

#[test]
fn rates_leave_known_failures_out() {
    let rate = PlannedGates {
        min_pass_rate: Some(0.9),
        ..PlannedGates::default()
    };
    let cases: Cases<'_> = &[(None, "pp"), (None, "ff")];
    check(cases, &[], &rate, 1);
    check(cases, &[known("case-1")], &rate, 0);
    // The others must still meet it.
    check(&[(None, "pf"), (None, "ff")], &[known("case-1")], &rate, 1);
    check(&[(None, "pp"), (None, "pp")], &[known("case-1")], &rate, 1);
    check(&[(None, "pp"), (None, "ee")], &[known("case-1")], &rate, 3);
    let asked = PlannedOptions {
        known_failures: vec![known("case-1")],
        ..PlannedOptions::default()
    };
    let run = written_with(cases, asked);
    let found = conditions(&run.summary, &rate);
    assert_eq!(
        found[0].text,
        "2/2 trials passed (100%), 1 known failure left out"
    );
    assert_eq!(found[1].verdict, CaseVerdict::KnownFailure);
    assert_eq!(
        found[1].text,
        "`case-1`: known failure: issue 12 (0 of 2 trials passed)"
    );
    let hat = PlannedGates {
        pass_hat: Some(PassHatGate { k: 2, rate: 1.0 }),
        ..PlannedGates::default()
    };
    check(cases, &[], &hat, 1);
    check(cases, &[known("case-1")], &hat, 0);
}

#[test]
fn known_failures_are_not_compared_with_a_base() {
    let cases = |bad: &'static str| vec![(None, "p"); 8].into_iter().chain([(None, bad)]);
    let run = |bad, known_failures| {
        let asked = PlannedOptions {
            known_failures,
            ..PlannedOptions::default()
        };
        written_with(&cases(bad).collect::<Vec<_>>(), asked)
    };
    let base = compare::tally(&run("pppppp", Vec::new()).summary, "main".to_owned());
    let tally = |known| compare::tally(&run("ffffff", known).summary, "new".to_owned());
    assert_eq!(Comparison::of(&base, &tally(Vec::new())).exit(), 1);
    let found = Comparison::of(&base, &tally(vec![known("case-8")]));
    assert_eq!(found.exit(), 0);
    assert_eq!(found.pairing.known_failures.len(), 1);
    // If every case is listed, nothing is compared.
    let found = Comparison::of(&base, &tally(vec![known("*")]));
    assert_eq!(found.exit(), 3);
    let text = compare::sentence::answer(&found, &|name| name.to_owned());
    assert_eq!(
        text,
        "Inconclusive: every case that both runs have is a known failure of the new run"
    );
}

#[test]
fn the_record_keeps_known_failures() {
    let asked = PlannedOptions {
        known_failures: vec![known("case-1")],
        ..PlannedOptions::default()
    };
    let run = written_with(&[(None, "p"), (None, "f")], asked);
    assert_eq!(Gate::of(&run.summary), Gate::Met);
    assert_eq!(run.summary.plan.known_failures, [known("case-1")]);
}

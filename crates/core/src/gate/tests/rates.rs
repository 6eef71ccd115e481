//! Each gate on rates: met, missed, inconclusive, and never met by accident.

use proctor_record::event::{
    CheckEvaluated, CheckId, EventKind, Outcome, PassHatGate, PlannedAgent, PlannedCase,
    PlannedGates, PlannedOptions, RECORD_VERSION, RunEnded, RunPlanned, RunStarted, RunTally,
    TrialEnded, TrialStarted,
};
use proctor_record::index::end_trial;
use proctor_record::record::{RunReader, RunWriter};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;

use crate::compare;
use crate::gate::{Gate, check_rates, conditions};
use crate::summary::Summary;

/// A written run: for each case its pass rule, and one letter per trial: `p`ass, `f`ail, `t`imeout,
/// `e`rror, `c`ancelled, `-` not run.
pub(super) struct WrittenRun {
    _folder: tempfile::TempDir,
    run: RunReader,
    pub(super) summary: Summary,
}

/// A run of one case without verify steps. Besides the letters of [`WrittenRun`], `s` is a trial that failed since the
/// agent was silent.
fn written_without_steps(trials: &str) -> WrittenRun {
    written_of(&[(None, trials)], 0, PlannedOptions::default())
}

fn written(cases: &[(Option<(u32, u32)>, &str)], gates: Option<PlannedGates>) -> WrittenRun {
    let asked = PlannedOptions {
        gates: gates.map(Box::new),
        ..PlannedOptions::default()
    };
    written_with(cases, asked)
}

pub(super) fn written_with(
    cases: &[(Option<(u32, u32)>, &str)],
    asked: PlannedOptions,
) -> WrittenRun {
    written_of(cases, 1, asked)
}

fn written_of(
    cases: &[(Option<(u32, u32)>, &str)],
    steps: u32,
    asked: PlannedOptions,
) -> WrittenRun {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let mut run = RunWriter::create(&path, Redactor::default(), started).unwrap();
    let planned = cases
        .iter()
        .enumerate()
        .map(|(number, (pass, trials))| PlannedCase {
            hash: "1".to_owned(),
            pass: *pass,
            verify_steps: Some(steps),
            ..PlannedCase::new(
                format!("case-{number}"),
                format!("case-{number}"),
                u32::try_from(trials.len()).unwrap(),
            )
        });
    let plan = RunPlanned {
        asked,
        ..RunPlanned::new(
            "/suite.yaml".to_owned(),
            planned.collect(),
            vec![PlannedAgent::new("loop".to_owned())],
        )
    };
    run.append(1, EventKind::RunPlanned(plan.into())).unwrap();
    for (number, (_, trials)) in cases.iter().enumerate() {
        for (repeat, letter) in (1..).zip(trials.chars()) {
            trial(&run, number, repeat, letter, steps > 0);
        }
    }
    run.end(9, RunEnded::default()).unwrap();
    let run = RunReader::open(&path).unwrap();
    let summary = Summary::checked(&run).unwrap();
    WrittenRun {
        _folder: folder,
        run,
        summary,
    }
}

fn trial(run: &RunWriter, case: usize, repeat: u32, letter: char, has_step: bool) {
    let outcome = match letter {
        'p' => Outcome::Passed,
        'f' | 'a' | 's' => Outcome::Failed,
        't' => Outcome::TimedOut,
        'e' => Outcome::Errored,
        'c' => Outcome::Cancelled,
        _ => return,
    };
    let started = TrialStarted {
        case: format!("case-{case}"),
        agent: Some("loop".to_owned()),
        repeat,
        attempt: 1,
    };
    let mut trial = run.trial(2, &format!("{case}:{repeat}"), started).unwrap();
    let fail = || Verdict::Fail {
        reason: "no".to_owned(),
    };
    // `a`: only the assertion fails; `f`: only the verify step.
    let verdicts = match letter {
        'p' | 's' => Some((Verdict::Pass, Verdict::Pass)),
        'a' => Some((fail(), Verdict::Pass)),
        'f' => Some((Verdict::Pass, fail())),
        _ => None,
    };
    if let Some((assertion, step)) = verdicts {
        for (check, id, verdict) in [
            (
                "toolsUsed",
                CheckId::Assertion("toolsUsed".to_owned()),
                assertion,
            ),
            ("verify_0", CheckId::Step("verify_0".to_owned()), step),
        ] {
            if id.step().is_some() && (!has_step || letter == 's') {
                continue;
            }
            let graded = CheckEvaluated {
                check: check.to_owned(),
                id: Some(id),
                details: Vec::new(),
                verdict,
                evidence: Vec::new(),
                notes: Vec::new(),
            };
            trial.append(3, EventKind::Graded(graded)).unwrap();
        }
    }
    let ended = TrialEnded {
        outcome,
        reason: None,
        blame: None,
    };
    end_trial(trial, 4, ended).unwrap();
}

#[track_caller]
fn check(cases: &[(Option<(u32, u32)>, &str)], gates: &PlannedGates, exit: u8) -> String {
    let written = written(cases, None);
    let gate = Gate::with(&written.summary, gates);
    let shown: Vec<String> = conditions(&written.summary, gates)
        .into_iter()
        .map(|condition| condition.text)
        .collect();
    assert_eq!(gate.exit(), exit, "{gate:?} {shown:?}");
    shown.join("; ")
}

fn many(count: usize, trials: &'static str) -> Vec<(Option<(u32, u32)>, &'static str)> {
    vec![(None, trials); count]
}

#[test]
fn a_pass_rate_is_met_missed_or_inconclusive() {
    let gate = PlannedGates {
        min_pass_rate: Some(0.9),
        ..PlannedGates::default()
    };
    let found = check(&[(None, "pppppppppf")], &gate, 0);
    assert_eq!(found, "9/10 trials passed (90%)");
    check(&[(None, "ppppppppff")], &gate, 1);
    // A timeout is a failure.
    check(&[(None, "ppppppppft")], &gate, 1);
    // The errored trial decides.
    let found = check(&[(None, "ppppppppfe")], &gate, 3);
    let expected = "8/9 trials passed (88.8%), 1 without a verdict; a verdict of 1 trial decides, \
                    retry them";
    assert_eq!(found, expected);
    // It can't change the answer.
    check(&[(None, "pppppppppe")], &gate, 0);
    check(&[(None, "pppppppffe")], &gate, 1);
    // Trials that did not run are as open as errored ones.
    check(&[(None, "pppppppp--")], &gate, 3);
    check(&[(None, "ppppppppcc")], &gate, 3);
    // The mean of the cases' rates counts, not that of the trials.
    check(&[(None, "ppppppppppppppppppp"), (None, "f")], &gate, 1);
    // Nothing passes by default.
    check(&[], &gate, 3);
    check(&[(None, "e")], &gate, 3);
    check(&[(None, "-")], &gate, 3);
}

#[test]
fn a_threshold_above_zero_is_never_met_without_a_passed_trial() {
    for least in [f64::MIN_POSITIVE, 1e-300, 1e-10, 1e-9, 0.01] {
        let rate = PlannedGates {
            min_pass_rate: Some(least),
            ..PlannedGates::default()
        };
        let bound = PlannedGates {
            min_lower_bound: Some(least),
            ..PlannedGates::default()
        };
        let hat = PlannedGates {
            pass_hat: Some(PassHatGate { k: 3, rate: least }),
            ..PlannedGates::default()
        };
        for gates in [rate, bound, hat] {
            check(&[(None, "fff")], &gates, 1);
            check(&[(None, "ppp")], &gates, 0);
            check(
                &[(None, "ffe")],
                &gates,
                if gates.pass_hat.is_some() { 1 } else { 3 },
            );
        }
        let written = written(&[(None, "f")], None);
        let extra = check_rates(&written.run, &written.summary, Some(least), None).unwrap();
        let gate = Gate::with_conditions(&written.summary, &PlannedGates::default(), &extra);
        assert_eq!(gate.exit(), 1, "{extra:?}");
    }
}

#[test]
fn a_lower_bound_needs_enough_trials() {
    let gate = PlannedGates {
        min_lower_bound: Some(0.9),
        ..PlannedGates::default()
    };
    // 29 clean single trials show 90 %, 28 don't.
    check(&many(29, "p"), &gate, 0);
    let found = check(&many(28, "p"), &gate, 3);
    assert!(
        found.ends_with("; about 1 more trial at this rate would decide"),
        "{found}"
    );
    let found = check(&many(10, "p"), &gate, 3);
    assert_eq!(
        found,
        "10/10 trials passed (100%), lower bound 74.1%; about 19 more trials at this rate would decide"
    );
    let eighty = [many(8, "p"), many(2, "f")].concat();
    check(&eighty, &gate, 1);
    let ninety = [many(9, "p"), many(1, "f")].concat();
    let found = check(&ninety, &gate, 3);
    assert!(
        found.ends_with("no number of trials at this rate would decide"),
        "{found}"
    );
    // Errored trials count against the bound.
    check(&[many(29, "p"), many(1, "e")].concat(), &gate, 3);
    check(&[], &gate, 3);
    check(&many(40, "e"), &gate, 3);
}

#[test]
fn pass_hat_needs_k_trials_of_each_case() {
    let gate = |k, rate| PlannedGates {
        pass_hat: Some(PassHatGate { k, rate }),
        ..PlannedGates::default()
    };
    check(&[(None, "ppp"), (None, "ppp")], &gate(3, 1.0), 0);
    assert_eq!(
        check(&[(None, "ppp"), (None, "ppf")], &gate(3, 0.6), 1),
        "pass^3 is 50%"
    );
    check(&[(None, "ppp"), (None, "ppf")], &gate(3, 0.5), 0);
    check(&[(None, "ppp"), (None, "ppe")], &gate(3, 0.6), 3);
    let found = check(&[(None, "ppp"), (None, "pp")], &gate(3, 0.1), 3);
    assert_eq!(found, "a case has 2 trials; run each at least 3 times");
    check(&[], &gate(1, 0.1), 3);
}

#[test]
fn errors_are_counted_and_loosen_nothing() {
    let gate = |most| PlannedGates {
        max_errors: Some(most),
        ..PlannedGates::default()
    };
    check(&[(None, "ppp")], &gate(0), 0);
    check(&[(None, "ppe")], &gate(0), 1);
    // Within the limit, the default gate is as open as ever.
    check(&[(None, "ppe")], &gate(1), 3);
    check(&[(None, "ppf")], &gate(1), 1);
    // A trial that did not run may still end in an error.
    check(&[(None, "pp-")], &gate(0), 3);
    check(&[], &gate(5), 3);
    let both = PlannedGates {
        min_pass_rate: Some(0.5),
        ..gate(1)
    };
    check(&[(None, "ppe")], &both, 0);
    check(&[(None, "ppee")], &both, 1);
}

#[test]
fn a_rule_of_a_case_stays_in_effect() {
    let gate = PlannedGates {
        min_pass_rate: Some(0.5),
        ..PlannedGates::default()
    };
    check(&[(None, "ppppf"), (Some((4, 5)), "ppppf")], &gate, 0);
    check(&[(None, "ppppf"), (Some((4, 5)), "pppff")], &gate, 1);
    check(&[(None, "ppppf"), (Some((4, 5)), "pppfe")], &gate, 3);
}

fn base(cases: &[(Option<(u32, u32)>, &str)]) -> RunTally {
    compare::tally(&written(cases, None).summary, "main".to_owned())
}

#[test]
fn a_run_must_not_be_worse_than_its_base() {
    let gate = |base| PlannedGates {
        base: Some(base),
        ..PlannedGates::default()
    };
    let passing = base(&many(8, "p"));
    let found = check(&many(8, "p"), &gate(passing.clone()), 0);
    assert!(found.starts_with("No regression shown: "), "{found}");
    let found = check(&many(8, "f"), &gate(passing.clone()), 1);
    assert!(found.starts_with("Regression: 8/8 → 0/8 cases"), "{found}");
    let found = check(&many(5, "p"), &gate(base(&many(5, "p"))), 3);
    assert!(found.starts_with("Inconclusive: "), "{found}");
    // Five worse are too few, and the sixth trial has no verdict.
    let five = [many(2, "p"), many(5, "f"), many(1, "e")].concat();
    let found = check(&five, &gate(passing), 3);
    assert!(found.contains("could change the answer"), "{found}");
    // A base that says nothing is never a green light.
    check(&many(8, "p"), &gate(RunTally::default()), 3);
}

#[test]
fn a_run_keeps_the_gates_that_it_was_started_with() {
    let gates = PlannedGates {
        min_pass_rate: Some(0.5),
        base: Some(base(&many(8, "p"))),
        ..PlannedGates::default()
    };
    let cases = many(8, "ff");
    let with = written(&cases, Some(gates));
    let gate = Gate::of(&with.summary);
    // The base and the rate come back from the record.
    assert_eq!(
        gate.exit(),
        Gate::with(&with.summary, with.summary.plan.gates.as_ref().unwrap()).exit()
    );
    let reasons = gate.reasons().join("\n");
    assert!(reasons.contains("--no-regression main"), "{gate:?}");
    assert_eq!(Gate::of(&written(&cases, None).summary).exit(), 1);
}

#[test]
fn thresholds_on_tasks_and_assertions_count_apart() {
    let check = |cases: &[(Option<(u32, u32)>, &str)], task, assertion, exit| {
        let written = written(cases, None);
        let extra = check_rates(&written.run, &written.summary, task, assertion).unwrap();
        let gate = Gate::with_conditions(&written.summary, &PlannedGates::default(), &extra);
        assert_eq!(gate.exit(), exit, "{extra:?}");
    };
    // `a` fails its assertion only, so its task passed.
    check(&[(None, "pa")], Some(1.0), None, 0);
    check(&[(None, "pa")], None, Some(0.5), 0);
    check(&[(None, "pa")], None, Some(0.6), 1);
    check(&[(None, "pf")], Some(0.6), None, 1);
    check(&[(None, "pf")], None, Some(1.0), 0);
    check(&[(None, "pt")], Some(0.6), None, 1);
    check(&[(None, "pe")], Some(0.6), None, 3);
    check(&[(None, "pe")], None, Some(0.6), 3);
    check(&[(None, "ppe")], Some(0.6), None, 0);
    check(&[], Some(0.1), Some(0.1), 3);
    // A timeout without any check proves nothing about assertions.
    check(&[(None, "t")], None, Some(0.1), 3);
}

#[test]
fn a_task_without_verify_steps_passes_no_threshold_on_tasks() {
    let check = |trials, task, assertion, exit| {
        let written = written_without_steps(trials);
        let extra = check_rates(&written.run, &written.summary, task, assertion).unwrap();
        let gate = Gate::with_conditions(&written.summary, &PlannedGates::default(), &extra);
        assert_eq!(gate.exit(), exit, "{trials} {extra:?}");
    };
    for trials in ["a", "p", "pa", "ape"] {
        check(trials, Some(0.1), None, 3);
    }
    for trials in ["t", "s", "pt", "pps"] {
        check(trials, Some(0.1), None, 1);
    }
    check("pa", None, Some(0.5), 0);
}

/// A silent agent passes every assertion that only forbids something.
#[test]
fn assertions_of_a_trial_that_failed_for_another_reason_do_not_count_as_passed() {
    let check = |cases: &[(Option<(u32, u32)>, &str)], assertion, exit| {
        let written = written(cases, None);
        let extra = check_rates(&written.run, &written.summary, None, Some(assertion)).unwrap();
        let gate = Gate::with_conditions(&written.summary, &PlannedGates::default(), &extra);
        assert_eq!(gate.exit(), exit, "{extra:?}");
    };
    check(&[(None, "s")], 0.1, 1);
    check(&[(None, "ps")], 0.5, 0);
    check(&[(None, "ps")], 0.6, 1);
    check(&[(None, "pt")], 0.5, 0);
    check(&[(None, "pt")], 0.6, 3);
}

/// An exit code depends on these verdicts, so the index alone is never believed.
#[test]
fn an_index_that_lies_about_assertions_meets_no_threshold() {
    let written = written(&[(None, "a")], None);
    let index = written.run.folder().join("index.jsonl");
    let text = std::fs::read_to_string(&index).unwrap();
    let lie = text.replace(r#"{"fail":{"reason":"no"}}"#, r#""pass""#);
    assert_ne!(lie, text);
    std::fs::write(&index, lie).unwrap();
    let extra = check_rates(&written.run, &written.summary, None, Some(1.0)).unwrap();
    let gate = Gate::with_conditions(&written.summary, &PlannedGates::default(), &extra);
    assert_eq!(gate.exit(), 1, "{extra:?}");
}

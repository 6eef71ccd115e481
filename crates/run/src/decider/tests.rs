use proctor_record::event::{
    EventKind, PlannedAgent, PlannedCase, PlannedGates, PlannedOptions, RECORD_VERSION, RunPlanned,
    RunStarted,
};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;
use proptest::prelude::*;

use super::*;

/// The outcomes of a case: one for each planned trial.
type Outcomes = Vec<Outcome>;

/// The pass rule of a case, and its number of trials.
type CaseShape = (Option<(u32, u32)>, usize);

fn plan(cases: &[CaseShape], gates: Option<PlannedGates>) -> RunPlanned {
    let case = |(number, (pass, runs)): (usize, &CaseShape)| PlannedCase {
        pass: *pass,
        ..PlannedCase::new(
            number.to_string(),
            number.to_string(),
            u32::try_from(*runs).unwrap(),
        )
    };
    RunPlanned {
        asked: PlannedOptions {
            gates: gates.map(Box::new),
            stop_when_decided: true,
            ..PlannedOptions::default()
        },
        ..RunPlanned::new(
            String::new(),
            cases.iter().enumerate().map(case).collect(),
            vec![PlannedAgent::new("agent".to_owned())],
        )
    }
}

fn decider(cases: &[(Option<(u32, u32)>, usize)], gates: Option<PlannedGates>) -> Decider {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: String::new(),
        started: String::new(),
        name: String::new(),
        command: Vec::new(),
        context: None,
    };
    let mut run = RunWriter::create(&path, Redactor::default(), started).unwrap();
    run.append(0, EventKind::RunPlanned(plan(cases, gates).into()))
        .unwrap();
    run.flush();
    Decider::open(&path).unwrap()
}

/// Runs the trials in rounds with `width` at once, without those that are not needed. Returns how many ran.
fn run(decider: &mut Decider, outcomes: &[Outcomes], width: usize) -> usize {
    let most = outcomes.iter().map(Vec::len).max().unwrap_or(0);
    let rounds = (0..most).flat_map(|repeat| (0..outcomes.len()).map(move |case| (case, repeat)));
    let mut running = Vec::new();
    let mut ran = 0;
    let end = |decider: &mut Decider, (case, repeat): (usize, usize)| {
        let outcome = outcomes[case][repeat];
        decider.take(
            &case.to_string(),
            "agent",
            u32::try_from(repeat).unwrap() + 1,
            outcome,
        );
    };
    for (case, repeat) in rounds.filter(|(case, repeat)| *repeat < outcomes[*case].len()) {
        if running.len() == width {
            end(decider, running.remove(0));
        }
        if decider.is_needed(&case.to_string(), "agent") {
            ran += 1;
            running.push((case, repeat));
        }
    }
    for trial in running {
        end(decider, trial);
    }
    ran
}

fn exit(decider: &Decider) -> u8 {
    Gate::of(&decider.summary).exit()
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        5 => Just(Outcome::Passed),
        3 => Just(Outcome::Failed),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::Errored),
    ]
}

fn case() -> impl Strategy<Value = (Option<(u32, u32)>, Outcomes)> {
    let outcomes = prop::collection::vec(outcome(), 1..8);
    (prop::option::of((1..6_u32, 1..6_u32)), outcomes)
        .prop_map(|(rule, outcomes)| (rule.map(|(k, more)| (k, k + more - 1)), outcomes))
}

proptest! {
    #[test]
    fn a_curtailed_run_gives_the_answer_of_the_full_run(
        cases in prop::collection::vec(case(), 1..5),
        width in 1..5_usize,
    ) {
        let planned: Vec<_> = cases.iter().map(|(rule, all)| (*rule, all.len())).collect();
        let outcomes: Vec<Outcomes> = cases.into_iter().map(|(_, all)| all).collect();
        let mut curtailed = decider(&planned, None);
        run(&mut curtailed, &outcomes, width);
        let mut full = decider(&planned, None);
        for (case, all) in outcomes.iter().enumerate() {
            for (repeat, outcome) in (1..).zip(all) {
                full.take(&case.to_string(), "agent", repeat, *outcome);
            }
        }
        prop_assert_eq!(exit(&curtailed), exit(&full));
        for ((case, a), (_, b)) in curtailed.summary.cells().zip(full.summary.cells()) {
            prop_assert_eq!(a.verdict(&case.case), b.verdict(&case.case));
        }
    }
}

#[test]
fn a_decided_case_needs_no_more_trials() {
    let rule = Some((4, 5));
    let passes = vec![Outcome::Passed; 5];
    let mut met = decider(&[(rule, 5)], None);
    assert_eq!(run(&mut met, std::slice::from_ref(&passes), 1), 4);
    assert_eq!(exit(&met), 0);
    assert!(met.summary.is_curtailed() && met.summary.rate(None).is_none());
    let mut missed = decider(&[(rule, 5), (None, 5)], None);
    let fails = vec![Outcome::Failed; 5];
    // The other case needs all its trials.
    assert_eq!(run(&mut missed, &[fails, passes], 1), 2 + 5);
    assert_eq!(exit(&missed), 1);
    // An errored trial decides nothing.
    let errors = vec![Outcome::Errored; 5];
    let mut open = decider(&[(rule, 5)], None);
    assert_eq!(run(&mut open, &[errors], 1), 5);
    assert_eq!(exit(&open), 3);
}

fn rate_gate(least: f64) -> PlannedGates {
    PlannedGates {
        min_pass_rate: Some(least),
        ..PlannedGates::default()
    }
}

#[test]
fn easy_cases_that_run_first_decide_nothing() {
    // Nineteen cases always pass and the last never does: 95 % on average.
    let planned = vec![(None, 40); 20];
    let mut outcomes = vec![vec![Outcome::Passed; 40]; 19];
    outcomes.push(vec![Outcome::Failed; 40]);
    let mut by_rounds = decider(&planned, Some(rate_gate(0.97)));
    let ran = run(&mut by_rounds, &outcomes, 1);
    assert_eq!(exit(&by_rounds), 1, "{ran}");
    // Trials of easy cases alone, as many as a full run has, decide nothing.
    let mut easy = decider(&planned, Some(rate_gate(0.97)));
    for case in 0..19 {
        for repeat in 1..=40 {
            easy.take(&case.to_string(), "agent", repeat, Outcome::Passed);
            assert!(easy.is_needed("19", "agent") || exit(&easy) != 0);
        }
    }
}

#[test]
fn a_rate_gate_stops_all_cases_once_it_is_decided() {
    let planned = vec![(None, 50); 4];
    let passes = vec![vec![Outcome::Passed; 50]; 4];
    let mut met = decider(&planned, Some(rate_gate(0.9)));
    let ran = run(&mut met, &passes, 1);
    assert!(ran < 120, "{ran}");
    assert_eq!(exit(&met), 0);
    assert!(met.summary.is_curtailed());
    // One errored trial makes its round incomplete, and no later round counts.
    let mut errored = passes.clone();
    errored[2][0] = Outcome::Errored;
    let mut open = decider(&planned, Some(rate_gate(0.9)));
    assert!(run(&mut open, &errored, 1) > 175);
    let bound = Some(PlannedGates {
        min_lower_bound: Some(0.9),
        ..PlannedGates::default()
    });
    let mut bounded = decider(&planned, bound.clone());
    assert!(run(&mut bounded, &passes, 3) < 120);
    assert_eq!(exit(&bounded), 0);
    // Enough for one look at the end, and too little for a look after every round.
    let planned = vec![(None, 9); 4];
    let passes = vec![vec![Outcome::Passed; 9]; 4];
    let mut few = decider(&planned, bound);
    assert_eq!(run(&mut few, &passes, 1), 36);
    assert_eq!(exit(&few), 3);
}

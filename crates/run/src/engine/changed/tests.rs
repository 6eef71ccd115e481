use std::fs;
use std::path::Path;

use proctor_core::suite::Limits;
use proctor_record::event::{
    EventKind, PlannedAgent, PlannedCase, RECORD_VERSION, RunPlanned, RunStarted, TrialEnded,
    TrialStarted,
};
use proctor_record::index::end_trial;
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;

use super::*;

const CASES: [&str; 2] = ["y", "x"];
const REPEATS: u32 = 3;

/// The case, the number, the attempt and the outcome of a trial.
type Trial = (usize, u32, u32, Outcome);

const PASSED: Outcome = Outcome::Passed;
const FAILED: Outcome = Outcome::Failed;
const ERRORED: Outcome = Outcome::Errored;

/// Writes the record of a run with these trials.
fn record(folder: &Path, trials: &[Trial]) -> RunReader {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let mut writer = RunWriter::create(folder, Redactor::default(), started).unwrap();
    let case = |id: &&str| PlannedCase::new((*id).to_owned(), (*id).to_owned(), REPEATS);
    let agents = vec![PlannedAgent::new("a".to_owned())];
    let cases = CASES.iter().map(case).collect();
    let plan = RunPlanned::new("/suite.yaml".to_owned(), cases, agents);
    writer
        .append(1, EventKind::RunPlanned(plan.into()))
        .unwrap();
    for (case, repeat, attempt, outcome) in trials {
        let started = TrialStarted {
            case: CASES[*case].to_owned(),
            agent: Some("a".to_owned()),
            repeat: *repeat,
            attempt: *attempt,
        };
        let name = trial_name(CASES[*case], "a", *repeat);
        let ended = TrialEnded {
            outcome: *outcome,
            reason: None,
            blame: None,
        };
        end_trial(writer.trial(1, &name, started).unwrap(), 2, ended).unwrap();
    }
    RunReader::open(folder).unwrap()
}

fn stem(case: usize, repeat: u32) -> String {
    trial_stem(&trial_name(CASES[case], "a", repeat))
}

/// Which trials, by case and number, are changed if these were seen, those ended before, and the record has others.
#[track_caller]
fn check(seen: &[Trial], before: &[Trial], recorded: &[Trial], expected: &[(usize, u32)]) {
    let folder = tempfile::tempdir().unwrap();
    let reader = record(&folder.path().join("run"), recorded);
    let summary = Summary::of_run(&reader).unwrap();
    let spec = |&(case, repeat, attempt, _): &Trial| TrialSpec {
        case,
        agent: 0,
        repeat,
        attempt,
        limits: Limits::default(),
        parallel: false,
        known_failure: false,
    };
    let trials: TrialList = seen.iter().map(spec).collect();
    let ended: Vec<Option<Outcome>> = seen.iter().map(|trial| Some(trial.3)).collect();
    let stems = TrialStems::of_names(&CASES, &["a"]);
    let mut earlier = TrialOutcomes::default();
    for (case, repeat, attempt, outcome) in before {
        earlier.insert(&stem(*case, *repeat), *attempt, *outcome);
    }
    let seen = SeenTrials::new(&trials, &stems, &ended);
    let found = changed(seen, earlier, &summary, &reader);
    let expected: BTreeSet<String> = expected.iter().map(|(c, r)| stem(*c, *r)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_record_with_the_outcomes_that_were_seen_is_unchanged() {
    check(&[], &[], &[], &[]);
    let all = [
        (0, 1, 1, PASSED),
        (0, 2, 1, FAILED),
        (0, 3, 1, ERRORED),
        (1, 1, 1, PASSED),
    ];
    check(&all, &[], &all, &[]);
    // Trials end in another order than that of the plan.
    let mut other = all;
    other.reverse();
    check(&all, &[], &other, &[]);
    // Of a resumed run, some ended before, and one of them was retried.
    let before = [(0, 1, 1, PASSED), (0, 2, 1, ERRORED), (1, 2, 1, FAILED)];
    let seen = [(0, 2, 2, PASSED), (1, 1, 1, PASSED)];
    let recorded = [before[0], before[1], before[2], seen[0], seen[1]];
    check(&seen, &before, &recorded, &[]);
}

#[test]
fn another_missing_or_added_outcome_is_a_change() {
    let seen = [
        (0, 1, 1, PASSED),
        (0, 2, 1, FAILED),
        (0, 3, 1, PASSED),
        (1, 1, 1, PASSED),
    ];
    let mut other = seen;
    other[1].3 = PASSED;
    check(&seen, &[], &other, &[(0, 2)]);
    check(&seen, &[], &seen[1..], &[(0, 1)]);
    check(&seen, &[], &seen[..3], &[(1, 1)]);
    check(&seen, &[], &[seen[0], seen[3]], &[(0, 2), (0, 3)]);
    check(&seen[1..], &[], &seen, &[(0, 1)]);
    let added = [seen[0], seen[1], seen[2], seen[3], (1, 2, 1, PASSED)];
    check(&seen, &[], &added, &[(1, 2)]);
    // A later attempt that nobody made.
    let retried = [seen[0], seen[1], seen[2], seen[3], (0, 2, 2, PASSED)];
    check(&seen, &[], &retried, &[(0, 2)]);
    check(&[], &seen, &other, &[(0, 2)]);
    check(&[], &seen, &seen[1..], &[(0, 1)]);
    check(&seen[2..], &seen[..2], &seen[1..], &[(0, 1)]);
}

#[test]
fn a_file_under_another_name_is_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let reader = record(&run, &[(0, 1, 1, PASSED)]);
    let name = format!("{}.1.jsonl", stem(0, 1));
    let trials = run.join("trials");
    fs::rename(trials.join(name), trials.join("other.1.jsonl")).unwrap();
    let summary = Summary::of_run(&reader).unwrap();
    let spec = TrialSpec {
        case: 0,
        agent: 0,
        repeat: 1,
        attempt: 1,
        limits: Limits::default(),
        parallel: false,
        known_failure: false,
    };
    let list: TrialList = [spec].into_iter().collect();
    let stems = TrialStems::of_names(&CASES, &["a"]);
    let ended = [Some(PASSED)];
    let seen = SeenTrials::new(&list, &stems, &ended);
    let found = changed(seen, TrialOutcomes::default(), &summary, &reader);
    assert_eq!(found, BTreeSet::from([stem(0, 1), "other".to_owned()]));
}

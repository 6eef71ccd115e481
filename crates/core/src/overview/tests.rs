//! Writing, caching and rebuilding overviews.

use std::fs;
use std::path::Path;

use proctor_record::event::{
    EventKind, Outcome, PlannedAgent, PlannedCase, RECORD_VERSION, RunPlanned, TrialEnded,
    TrialStarted,
};
use proctor_record::index::end_trial;
use proctor_record::record::{RecordOptions, RunWriter};
use proctor_record::redact::Redactor;

use super::*;

fn case(number: usize) -> PlannedCase {
    let name = format!("fix-crash-loop-{number}");
    PlannedCase {
        hash: "0123456789abcdef0123456789abcdef".to_owned(),
        pass: Some((4, 5)),
        ..PlannedCase::new(format!("tasks/{name}.yaml#{name}"), name, 5)
    }
}

fn create(folder: &Path, cases: usize) -> RunWriter {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: vec!["proctor".to_owned()],
        context: None,
    };
    let mut run = RunWriter::create(folder, Redactor::default(), started).unwrap();
    let plan = RunPlanned::new(
        "/suite.yaml".to_owned(),
        (0..cases).map(case).collect(),
        vec![PlannedAgent {
            name: "loop".to_owned(),
            model: Some("scripted:a".to_owned()),
        }],
    );
    run.append(1, EventKind::RunPlanned(plan.into())).unwrap();
    run
}

fn run_trial(run: &RunWriter, repeat: u32, outcome: Outcome) {
    let started = TrialStarted {
        case: case(0).id,
        agent: Some("loop".to_owned()),
        repeat,
        attempt: 1,
    };
    let trial = run.trial(10, &format!("t{repeat}"), started).unwrap();
    let ended = TrialEnded {
        outcome,
        reason: None,
        blame: None,
    };
    end_trial(trial, 110, ended).unwrap();
}

fn end(run: RunWriter) {
    let (exit, reason) = (3, None);
    run.end(
        200,
        RunEnded {
            exit,
            reason,
            ..RunEnded::default()
        },
    )
    .unwrap();
}

#[test]
fn an_overview_is_cached_until_the_run_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SUMMARY);
    let run = create(folder.path(), 1);
    run_trial(&run, 1, Outcome::Passed);
    let reader = RunReader::open(folder.path()).unwrap();
    let live = Overview::load(&reader).unwrap();
    assert_eq!(live.trials.passed, 1);
    assert!(!path.exists(), "somebody writes the run");
    end(run);

    let first = Overview::load(&reader).unwrap();
    assert_eq!(first.ended.as_ref().map(|ended| ended.exit), Some(3));
    assert_eq!(first.cases[0].trials, [[1, 0, 4]]);
    assert_eq!(first.cases[0].rule, [Answer::Inconclusive]);
    assert_eq!(first.gate, Answer::Inconclusive);
    assert_eq!(first.agents[0].median, Some(100));
    let text = fs::read_to_string(&path).unwrap();
    // Kept: it is not made from the trials again.
    fs::write(
        &path,
        text.replace("\"suite\":\"/suite.yaml\"", "\"suite\":\"/kept\""),
    )
    .unwrap();
    assert_eq!(Overview::load(&reader).unwrap().suite, "/kept");
    for stale in [
        "",
        "{}",
        &text.replace("\"version\":1", "\"version\":9"),
        &text.replace("05:00:00Z", "06:00:00Z"),
    ] {
        fs::write(&path, stale).unwrap();
        assert_eq!(Overview::load(&reader).unwrap(), first, "{stale}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    let options = RecordOptions::default();
    let run = RunWriter::resume(folder.path(), Redactor::default(), options).unwrap();
    assert!(!path.exists(), "a run that goes on has none");
    // Such as an earlier version leaves it.
    fs::write(&path, &text).unwrap();
    for repeat in 2..=5 {
        run_trial(&run, repeat, Outcome::Passed);
    }
    end(run);
    assert_eq!(Overview::load(&reader).unwrap().gate, Answer::Met);
}

#[test]
fn an_overview_takes_about_a_hundred_bytes_a_case() {
    let folder = tempfile::tempdir().unwrap();
    drop(create(folder.path(), 500));
    let reader = RunReader::open(folder.path()).unwrap();
    Overview::load(&reader).unwrap();
    let length = fs::metadata(folder.path().join(SUMMARY)).unwrap().len();
    assert!(length < 5_000 + 500 * 150, "{length}");
}

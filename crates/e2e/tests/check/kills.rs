//! Runs that were cut off at any moment: gone on with, they come to what they would have come to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_core::gate::Gate;
use proctor_core::summary::Summary;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::Outcome;
use proctor_record::record::RunReader;
use rustix::process::Signal;
use serde_json::json;

const RULES: &str = r"
  - when: {prompt: fails}
    reply: {text: I would rather not.}
  - when: {prompt: outage}
    reply: {error: {kind: key, detail: no such key}}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: '{prompt}'}}], delay: 5ms}
  - reply: {text: '{result}', delay: 5ms}
";

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    for task in ["a", "b", "fails", "outage"] {
        suite.task(task, &json!({}));
    }
    suite
}

/// Case and repeat, with outcome and reason.
type Outcomes = BTreeMap<(String, u32), (Option<Outcome>, Option<String>)>;

/// What a run came to, but for times and attempts.
fn outcomes(record: &Path) -> Outcomes {
    let run = RunReader::open(record).unwrap();
    let summary = Summary::of_run(&run).unwrap();
    assert_eq!(summary.unplanned, 0);
    assert!(matches!(Gate::of(&summary), Gate::Missed { .. }));
    let trials = summary.trials().map(|(case, _, trial)| {
        let reason = trial
            .result
            .as_ref()
            .and_then(|result| result.reason.clone());
        (
            (case.case.id.clone(), trial.repeat),
            (trial.outcome(), reason),
        )
    });
    trials.collect()
}

fn resume(record: &Path, expected: &Outcomes) {
    let seen = proctor_e2e::session::Session::new(&["check", "--jobs", "2"])
        .resume(record)
        .run();
    assert_eq!(seen.code, Some(1), "{}\n{}", seen.stdout, seen.stderr);
    assert_eq!(&outcomes(record), expected);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn trial_files(record: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(record.join("trials"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// Where a file may be cut: behind every line, and in the middle of every line.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    let mut cuts = vec![0];
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' {
            cuts.push(usize::midpoint(start, at));
            cuts.push(at + 1);
            start = at + 1;
        }
    }
    cuts
}

#[test]
fn a_run_that_was_cut_anywhere_comes_to_the_same() {
    let suite = suite();
    let seen = suite.check(&["-n", "1"]).run();
    assert_eq!(seen.code, Some(1), "{}\n{}", seen.stdout, seen.stderr);
    let expected = outcomes(&seen.record);
    assert_eq!(expected.len(), 4);
    let folder = tempfile::tempdir().unwrap();
    let files = trial_files(&seen.record);
    // One trial is cut at every place; those before it had ended, those behind it never began.
    let victim = &files[1];
    for (number, cut) in cuts(&fs::read(victim).unwrap()).into_iter().enumerate() {
        let copied = folder.path().join(number.to_string());
        copy(&seen.record, &copied);
        for later in &files[2..] {
            fs::remove_file(copied.join("trials").join(later.file_name().unwrap())).unwrap();
        }
        let ended = copied.join("trials").join(victim.file_name().unwrap());
        let part = ended.with_extension("jsonl.part");
        // Half of the time as a crash leaves it, half as a disk that lied.
        let target = if number % 2 == 0 { &part } else { &ended };
        fs::rename(&ended, target).unwrap();
        let file = fs::OpenOptions::new().write(true).open(target).unwrap();
        file.set_len(cut as u64).unwrap();
        if number % 3 == 0 {
            fs::remove_file(copied.join("index.jsonl")).unwrap();
        }
        resume(&copied, &expected);
    }
}

#[test]
fn a_run_whose_own_file_was_cut_comes_to_the_same() {
    let suite = suite();
    let seen = suite.check(&[]).run();
    let expected = outcomes(&seen.record);
    let folder = tempfile::tempdir().unwrap();
    let run = fs::read(seen.record.join("run.jsonl")).unwrap();
    // Before its plan is written, a run has no trials and can't be resumed.
    let planned: usize = run
        .split_inclusive(|b| *b == b'\n')
        .take(2)
        .map(<[u8]>::len)
        .sum();
    for (number, cut) in cuts(&run)
        .into_iter()
        .filter(|cut| *cut >= planned)
        .enumerate()
    {
        let copied = folder.path().join(number.to_string());
        copy(&seen.record, &copied);
        let file = fs::OpenOptions::new()
            .write(true)
            .open(copied.join("run.jsonl"))
            .unwrap();
        file.set_len(cut as u64).unwrap();
        resume(&copied, &expected);
    }
}

#[test]
fn a_run_without_a_plan_says_that_it_can_t_be_gone_on_with() {
    let suite = suite();
    let seen = suite.check(&[]).run();
    let run = fs::read(seen.record.join("run.jsonl")).unwrap();
    let first = run.iter().position(|b| *b == b'\n').unwrap();
    for cut in [0, 10, first + 1, first + 20] {
        fs::write(seen.record.join("run.jsonl"), &run[..cut]).unwrap();
        let again = proctor_e2e::session::Session::new(&["check"])
            .resume(&seen.record)
            .run();
        assert_eq!(again.code, Some(2), "{}", again.stderr);
    }
}

#[test]
fn the_folder_of_a_run_that_was_killed_before_its_plan_is_used_again() {
    let suite = suite();
    let seen = suite.check(&[]).run();
    let expected = outcomes(&seen.record);
    let run = fs::read(seen.record.join("run.jsonl")).unwrap();
    let first = run.iter().position(|b| *b == b'\n').unwrap();
    let folder = tempfile::tempdir().unwrap();
    for cut in [0, 10, first + 1, first + 20] {
        let record = folder.path().join(cut.to_string());
        fs::create_dir_all(record.join("trials")).unwrap();
        fs::write(record.join("run.jsonl"), &run[..cut]).unwrap();
        let resumed = proctor_e2e::session::Session::new(&["check"])
            .resume(&record)
            .run();
        assert_eq!(resumed.code, Some(2), "{}", resumed.stderr);
        assert!(resumed.stderr.contains("--record"), "{}", resumed.stderr);
        let again = suite.check(&[]).record_in(&record).run();
        assert_eq!(again.code, Some(1), "{}", again.stderr);
        assert_eq!(outcomes(&record), expected);
    }
}

#[test]
fn twenty_kills_at_any_moment_lose_nothing_and_double_nothing() {
    let suite = suite();
    let undisturbed = suite.check(&["-n", "3"]).run();
    let expected = outcomes(&undisturbed.record);
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    // Not random, so that a failure can be had again; the machine adds its own.
    let moments = [
        1, 3, 7, 12, 18, 25, 33, 42, 52, 63, 75, 88, 102, 117, 133, 150, 20, 40, 60, 80,
    ];
    for (kill, moment) in moments.into_iter().enumerate() {
        let session = if RunReader::open(&record)
            .is_ok_and(|run| proctor_record::index::ended(&run).is_ok())
            && kill > 0
        {
            proctor_e2e::session::Session::new(&["check", "--jobs", "2"]).resume(&record)
        } else {
            let _ = fs::remove_dir_all(&record);
            suite.check(&["-n", "3", "--jobs", "2"]).record_in(&record)
        };
        let running = session.start();
        if kill == 0 {
            running.wait_for("phaseStarted");
        }
        std::thread::sleep(Duration::from_millis(moment));
        running.signal(Signal::KILL);
        running.finish();
    }
    resume(&record, &expected);
    // Each trial has one end that counts.
    let run = RunReader::open(&record).unwrap();
    let mut ended: BTreeMap<String, u32> = BTreeMap::new();
    for trial in run
        .trials()
        .unwrap()
        .into_iter()
        .filter(|trial| trial.ended)
    {
        *ended.entry(trial.stem).or_default() += 1;
    }
    assert_eq!(ended.len(), expected.len());
    assert!(ended.values().all(|count| *count == 1), "{ended:?}");
}

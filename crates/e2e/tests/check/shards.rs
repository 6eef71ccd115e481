//! `check --shard` and `result merge`: a run on several machines gives what it gives on one, and is never green
//! because something is missing.

use std::fs;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// The shards of most tests.
const SHARDS: u32 = 4;

#[track_caller]
fn shard(suite: &SuiteFixture, index: u32, more: &[&str], exit: i32) -> String {
    let (place, folder) = (format!("{index}/{SHARDS}"), format!("shards/{index}"));
    let words = ["check", "eval.yaml", "--shard", &place, "--record", &folder];
    suite.expect(&[&words[..], more].concat(), exit).0
}

#[track_caller]
fn shards(suite: &SuiteFixture, more: &[&str]) {
    for index in 1..=SHARDS {
        shard(suite, index, more, 0);
    }
}

/// The names of the given shards' folders, for a merge into `into`.
fn merge_words<'a>(folders: &[&'a str], into: &'a str) -> Vec<&'a str> {
    let words = ["result", "merge", "--into", into];
    [&words[..], folders].concat()
}

const ALL: [&str; 4] = ["shards/1", "shards/2", "shards/3", "shards/4"];

/// A suite with three cases that pass and one that fails.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    suite.task("good-two", &json!({}));
    suite.task("good-three", &json!({}));
    suite
}

/// A suite whose trials all pass.
fn good_suite() -> SuiteFixture {
    let suite = suite();
    fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    suite
}

/// The result without times, folders, and what else differs between two runs of the same trials.
fn comparable(suite: &SuiteFixture, run_name: &str) -> Value {
    let (text, _) = suite.expect(&["result", "summary", run_name, "-o", "json"], 0);
    let mut value: Value = serde_json::from_str(&text).unwrap();
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    const TIMED: [&str; 7] = [
        "run",
        "folder",
        "name",
        "started",
        "duration",
        "record",
        "resultsFile",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| {
                let lower = key.to_lowercase();
                !TIMED.contains(&key.as_str())
                    && !["seconds", "micros", "ms", "duration", "time"]
                        .iter()
                        .any(|end| lower.ends_with(end))
            });
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn merged_shards_are_the_run_of_one_machine() {
    let suite = suite();
    let words = ["check", "eval.yaml", "-n", "5", "--record", "single"];
    suite.expect(&words, 1);
    // A shard's exit code does not tell that a trial failed, and its report does not speak of the gate.
    for index in 1..=SHARDS {
        let report = shard(&suite, index, &["-n", "5"], 0);
        let expected = format!("not evaluated: shard {index} of {SHARDS}");
        assert!(report.contains(&expected), "{report}");
        assert!(
            report.contains("the gate belongs to the merged run"),
            "{report}"
        );
    }
    suite.expect(&merge_words(&ALL, "merged"), 1);
    assert_eq!(comparable(&suite, "merged"), comparable(&suite, "single"));
    // An ordinary run for every command.
    suite.expect(&["result", "verify", "merged"], 1);
    suite.expect(&["result", "show", "merged", "--failed"], 0);
    suite.expect(&["result", "coverage", "merged"], 0);
    suite.expect(&["result", "diff", "single", "merged"], 0);
    suite.expect(
        &["result", "export", "merged", "--pack", "merged.tar.gz"],
        0,
    );
}

#[test]
fn an_empty_shard_exits_0_and_still_belongs_to_the_merge() {
    let suite = good_suite();
    // Three trials in four shards: at least one is empty.
    shards(&suite, &[]);
    let files = |index: u32| {
        let folder = suite.path(&format!("shards/{index}/trials"));
        fs::read_dir(folder).map_or(0, Iterator::count)
    };
    assert!((1..=SHARDS).any(|index| files(index) == 0));
    assert_eq!((1..=SHARDS).map(files).sum::<usize>(), 3);
    suite.expect(&merge_words(&ALL, "merged"), 0);
}

#[test]
fn a_missing_shard_is_never_green() {
    let suite = good_suite();
    shards(&suite, &["-n", "4", "--min-pass-rate", "0.1"]);
    suite.expect(&merge_words(&ALL, "merged"), 0);
    // The rate is met without the missing trials, whatever they would show.
    let (report, notes) = suite.expect(&merge_words(&ALL[1..], "partial"), 3);
    assert!(notes.contains("1 shard of 4 missing: 1"), "{notes}");
    assert!(report.contains("inconclusive"), "{report}");
    // Nor is it green later, with any gate.
    suite.expect(&["result", "verify", "partial"], 3);
    suite.expect(
        &["result", "verify", "partial", "--min-pass-rate", "0.1"],
        3,
    );
    // Nor is a shard alone.
    suite.expect(&["result", "verify", "shards/1"], 3);
    suite.expect(
        &["result", "verify", "shards/1", "--min-pass-rate", "0.01"],
        3,
    );
    let (_, refused) = suite.expect(&["check", "--resume", "partial"], 2);
    assert!(
        refused.contains("a merged run can't be resumed"),
        "{refused}"
    );
}

#[test]
fn a_missing_trial_and_an_unfinished_shard_are_never_green() {
    let suite = good_suite();
    shards(&suite, &["-n", "4", "--min-pass-rate", "0.1"]);
    let trials = suite.path("shards/1/trials");
    let first = fs::read_dir(&trials)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::remove_file(&first).unwrap();
    let (_, notes) = suite.expect(&merge_words(&ALL, "no-trial"), 3);
    assert!(notes.contains("1 trial of 12 missing"), "{notes}");
    // The end of a shard is its last line.
    let file = suite.path("shards/2/run.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let (rest, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(last.contains("runEnded"), "{last}");
    fs::write(&file, format!("{rest}\n")).unwrap();
    let (_, notes) = suite.expect(&merge_words(&ALL[1..], "no-end"), 3);
    assert!(notes.contains("1 shard did not finish: 2"), "{notes}");
}

#[test]
fn shards_of_different_plans_and_runs_are_refused() {
    let suite = good_suite();
    shards(&suite, &["--run-id", "one"]);
    let other = |words: &[&str], folder: &str| {
        let all = ["check", "eval.yaml", "--shard", "1/4", "--record", folder];
        suite.expect(&[&all[..], words].concat(), 0);
        let with = [folder, "shards/2", "shards/3", "shards/4"];
        suite.expect(&merge_words(&with, "never"), 2).1
    };
    let refused = other(&["-n", "2", "--run-id", "one"], "more-runs");
    assert!(refused.contains("different plans"), "{refused}");
    assert!(refused.contains("another number of runs"), "{refused}");
    let refused = other(&["--run-id", "two"], "other-run");
    assert!(refused.contains("of the run `two`"), "{refused}");
    // Also behind a shard without an id, in any order.
    let refused = other(&[], "no-id");
    assert!(
        refused.contains("`no-id` is of a run without an id"),
        "{refused}"
    );
    let with = ["shards/2", "shards/3", "shards/4", "no-id"];
    let (_, refused) = suite.expect(&merge_words(&with, "never"), 2);
    assert!(
        refused.contains("and `no-id` of a run without an id"),
        "{refused}"
    );
    suite.task(
        "good-three",
        &json!({"prompt": {"inline": "another good prompt"}}),
    );
    let refused = other(&["--run-id", "one"], "changed");
    assert!(
        refused.contains("changed: `tasks/good-three.yaml#good-three`"),
        "{refused}"
    );
    // A run without `--shard` is not a part of anything.
    suite.expect(&["check", "eval.yaml", "--record", "whole"], 0);
    let (_, refused) = suite.expect(&merge_words(&["whole"], "never"), 2);
    assert!(refused.contains("is not a shard"), "{refused}");
    assert!(!suite.path("never").exists());
}

#[test]
fn a_run_that_was_merged_twice_is_not_compared_with_itself() {
    let suite = good_suite();
    shards(&suite, &[]);
    suite.expect(&merge_words(&ALL, "one"), 0);
    suite.expect(&merge_words(&ALL, "two"), 0);
    let (_, refused) = suite.expect(&["result", "diff", "one", "two"], 2);
    assert!(refused.contains("are the same run"), "{refused}");
    suite.expect(&["result", "verify", "two", "--no-regression", "one"], 2);
}

/// The record has the names without secrets, and a merge knows only the record.
#[test]
fn a_secret_in_the_name_of_a_case_moves_no_trial() {
    let suite = good_suite();
    let variables = [("API_TOKEN", "good-three")];
    for index in 1..=SHARDS {
        let (place, folder) = (format!("{index}/{SHARDS}"), format!("shards/{index}"));
        let words = [
            "check",
            "eval.yaml",
            "-n",
            "4",
            "--shard",
            &place,
            "--record",
            &folder,
        ];
        let output = suite.on_machine(&words, &variables);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    suite.expect(&merge_words(&ALL, "merged"), 0);
}

#[test]
fn a_trial_that_ran_twice_counts_once_whatever_it_came_to() {
    let suite = suite();
    shards(&suite, &["-n", "5"]);
    // The same shard again, as two pods of an engine. Its second execution says that failed trials passed.
    let has_bad = |folder: &&&str| {
        let names = fs::read_dir(suite.path(folder).join("trials")).unwrap();
        names
            .map(Result::unwrap)
            .any(|entry| entry.file_name().to_string_lossy().contains("bad"))
    };
    let executed_twice = ALL.iter().find(has_bad).unwrap();
    let copy = suite.path("again");
    copy_folder(&suite.path(executed_twice), &copy);
    fs::remove_file(copy.join("index.jsonl")).unwrap();
    let replace = |file: &std::path::Path, from: &str, to: &str| {
        let text = fs::read_to_string(file).unwrap();
        fs::write(file, text.replace(from, to)).unwrap();
        text.contains(from)
    };
    let later = replace(
        &copy.join("run.jsonl"),
        "\"started\":\"2",
        "\"started\":\"3",
    );
    assert!(later);
    let files = fs::read_dir(copy.join("trials")).unwrap();
    let changed = files.map(|file| replace(&file.unwrap().path(), "\"failed\"", "\"passed\""));
    assert!(changed.fold(false, |any, changed| any | changed));
    let folders = [&["again"], &ALL[..]].concat();
    let (_, notes) = suite.expect(&merge_words(&folders, "merged"), 1);
    let trials = fs::read_dir(copy.join("trials")).unwrap().count();
    assert!(trials > 0);
    let expected = format!("{trials} trials executed more than once, counted once");
    assert!(notes.contains(&expected), "{notes}");
    suite.expect(&merge_words(&ALL, "once"), 1);
    assert_eq!(comparable(&suite, "merged"), comparable(&suite, "once"));
    // The same folder twice is one execution.
    let folders = [&ALL[..], &[executed_twice]].concat();
    let (_, notes) = suite.expect(&merge_words(&folders, "named-twice"), 1);
    assert!(!notes.contains("more than once"), "{notes}");
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_retried_shard_runs_only_errored_and_unfinished_trials() {
    let suite = suite();
    // Its setup fails until a file exists, which errors the trial.
    let step = json!({"setup": [{"script": {"inline": "#!/bin/sh\ntest -e ../allowed || test -e \"$ALLOWED\"\n"}}]});
    suite.task("needs-file", &step);
    let allowed = suite.path("allowed").display().to_string();
    let attempt = |exit: i32| {
        let words = [
            "check",
            "eval.yaml",
            "--shard",
            "1/1",
            "--record",
            "shards/1",
        ];
        let output = suite.on_machine(&words, &[("ALLOWED", &allowed)]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{text}{error}");
        text
    };
    let text = attempt(3);
    assert!(
        text.contains("trials without a verdict: 1 errored"),
        "{text}"
    );
    let names = || {
        let entries = fs::read_dir(suite.path("shards/1/trials")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = names();
    attempt(3);
    suite.write("allowed", "");
    attempt(0);
    let after: Vec<String> = names()
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(
        after.iter().all(|name| name.contains("needs-file")),
        "{after:?}"
    );
    // Another plan or another shard can't take the folder.
    let words = ["check", "eval.yaml", "--record", "shards/1", "--shard"];
    let (_, refused) = suite.expect(&[&words[..], &["1/1", "-n", "2"]].concat(), 2);
    assert!(
        refused.contains("holds a shard of another plan"),
        "{refused}"
    );
    let (_, refused) = suite.expect(&[&words[..], &["2/2"]].concat(), 2);
    assert!(
        refused.contains("another plan (1 and 2 shards)"),
        "{refused}"
    );
}

#[test]
fn the_engine_of_the_job_assigns_the_shard() {
    let suite = good_suite();
    let words = ["check", "eval.yaml", "--shard", "auto", "--record"];
    for (index, variables) in [
        (
            "1",
            [("JOB_COMPLETION_INDEX", "0"), ("PROCTOR_SHARDS", "2")],
        ),
        ("2", [("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "2")]),
    ] {
        let output = suite.on_machine(&[&words[..], &[index]].concat(), &variables);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    suite.expect(&merge_words(&["1", "2"], "merged"), 0);
    let (_, refused) = suite.expect(&[&words[..], &["none"]].concat(), 2);
    assert!(refused.contains("JOB_COMPLETION_INDEX"), "{refused}");
    for flag in [
        "--stop-when-decided",
        "--last-failed",
        "--rerun-errors",
        "--watch",
    ] {
        suite.expect(&["check", "eval.yaml", "--shard", "1/2", flag], 2);
    }
}

//! `check --store` with a folder as the store: uploads, retried shards, two workers on a shard, and faults.
//! `scripts/prove-slurm` and `scripts/prove-store` do the same with S3.

use std::fs;
use std::path::PathBuf;

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

/// The URL of a store in the folder of the suite.
fn url(suite: &SuiteFixture, path: &str) -> String {
    format!("file://{}", suite.path(path).display())
}

/// Runs a shard with the store, in a folder of its own, as on another machine.
#[track_caller]
fn shard(suite: &SuiteFixture, place: &str, record: &str, exit: i32) -> (String, String) {
    let url = url(suite, "store");
    let words = [
        "check",
        "eval.yaml",
        "-n",
        "3",
        "--run-id",
        "r1",
        "--store",
        &url,
        "--store-timeout",
        "1s",
        "--shard",
        place,
        "--record",
        record,
    ];
    suite.expect(&words, exit)
}

fn names(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_run_in_a_store_is_merged_and_read_like_a_folder() {
    let suite = SuiteFixture::good_and_bad();
    for index in 1..=2 {
        shard(&suite, &format!("{index}/2"), &format!("local/{index}"), 0);
    }
    let run_url = url(&suite, "store/r1");
    let (_, notes) = suite.expect(&["result", "merge", &run_url, "--into", "merged"], 1);
    assert!(notes.contains("merged 6 trials of 2 shards"), "{notes}");
    let folders = [
        "result",
        "merge",
        "local/1",
        "local/2",
        "--into",
        "of-folders",
    ];
    suite.expect(&folders, 1);
    assert_eq!(
        names(suite.path("merged/trials")),
        names(suite.path("of-folders/trials"))
    );
    suite.expect(&["result", "verify", &run_url], 1);
    suite.expect(&["result", "show", &run_url], 0);
    suite.expect(&["result", "summary", &run_url], 0);
    suite.expect(&["result", "coverage", &run_url], 0);
    // The message says what is missing. The case that fails is decided without it.
    fs::remove_dir_all(suite.path("store/r1/shards/2")).unwrap();
    let (_, notes) = suite.expect(&["result", "merge", &run_url, "--into", "partial"], 1);
    assert!(notes.contains("1 shard of 2 missing: 2"), "{notes}");
    let (_, refused) = suite.expect(&["result", "merge", &url(&suite, "store/r2")], 2);
    assert!(refused.contains("has no shards"), "{refused}");
}

#[test]
fn a_retried_shard_takes_its_trials_from_the_store() {
    let suite = SuiteFixture::good_and_bad();
    let allowed = suite.path("allowed").display().to_string();
    let script = format!("#!/bin/sh\ntest -e '{allowed}'\n");
    suite.task(
        "needs-file",
        &json!({"setup": [{"script": {"inline": script}}]}),
    );
    let (report, _) = shard(&suite, "1/1", "first", 3);
    assert!(report.contains("3 errored"), "{report}");
    let before = names(suite.path("store/r1/shards/1/trials"));
    assert_eq!(before.len(), 9);
    suite.write("allowed", "");
    let (_, notes) = shard(&suite, "1/1", "second", 0);
    assert!(
        notes.contains("the store has 9 trial files of this shard"),
        "{notes}"
    );
    let after = names(suite.path("store/r1/shards/1/trials"));
    let new: Vec<&String> = after.iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(new.len(), 3, "{new:?}");
    assert!(new.iter().all(|name| name.ends_with(".2.jsonl")), "{new:?}");
    // A third worker has nothing to do.
    let (_, notes) = shard(&suite, "1/1", "third", 0);
    assert!(notes.contains("nothing to resume"), "{notes}");
    assert_eq!(names(suite.path("store/r1/shards/1/trials")), after);
    // Another plan can't join the run.
    suite.task("one-more", &json!({}));
    let (_, refused) = shard(&suite, "1/1", "other", 2);
    assert!(refused.contains("another plan"), "{refused}");
}

#[test]
fn of_two_workers_on_a_shard_the_first_counts() {
    let suite = SuiteFixture::good_and_bad();
    shard(&suite, "1/1", "first", 0);
    let trials = suite.path("store/r1/shards/1/trials");
    let count = names(trials.clone()).len();
    // The second worker began when the first had not uploaded anything.
    for file in ["run.jsonl", "index.jsonl"] {
        fs::rename(suite.path("store/r1/shards/1").join(file), suite.path(file)).unwrap();
    }
    let first: Vec<Vec<u8>> = names(trials.clone())
        .iter()
        .map(|name| fs::read(trials.join(name)).unwrap())
        .collect();
    let (_, notes) = shard(&suite, "1/1", "second", 0);
    let expected = format!("another worker on this shard uploaded {count} trials first");
    assert!(notes.contains(&expected), "{notes}");
    let now: Vec<Vec<u8>> = names(trials.clone())
        .iter()
        .map(|name| fs::read(trials.join(name)).unwrap())
        .collect();
    assert!(first == now, "the first copies stay");
    // If the copy that counts has no verdict, the shard must be tried again.
    let good = names(trials.clone())
        .into_iter()
        .find(|name| name.contains("good"))
        .unwrap();
    let text = fs::read_to_string(trials.join(&good)).unwrap();
    assert!(text.contains("\"passed\""), "{text}");
    fs::write(
        trials.join(&good),
        text.replace("\"passed\"", "\"errored\""),
    )
    .unwrap();
    fs::remove_file(suite.path("store/r1/shards/1/run.jsonl")).unwrap();
    let (_, notes) = shard(&suite, "1/1", "third", 3);
    assert!(notes.contains("these have no verdict there"), "{notes}");
}

#[test]
fn what_could_not_be_uploaded_is_uploaded_by_the_next_try() {
    let suite = SuiteFixture::good_and_bad();
    // A file where a folder must be: no trial can be written.
    suite.write("store/r1/shards/1/trials", "");
    let (_, notes) = shard(&suite, "1/1", "local", 3);
    assert!(notes.contains("6 files not in the store"), "{notes}");
    assert!(
        notes.contains("the record is complete on this machine"),
        "{notes}"
    );
    assert_eq!(names(suite.path("local/trials")).len(), 6);
    fs::remove_file(suite.path("store/r1/shards/1/trials")).unwrap();
    shard(&suite, "1/1", "local", 0);
    assert_eq!(
        names(suite.path("store/r1/shards/1/trials")),
        names(suite.path("local/trials"))
    );
    let run_url = url(&suite, "store/r1");
    suite.expect(&["result", "merge", &run_url, "--into", "merged"], 1);
    // A blob that is not what its name says is noticed.
    let name = "0".repeat(64);
    suite.write(&format!("store/r1/blobs/{name}"), "other content");
    let (_, refused) = suite.expect(&["result", "merge", &run_url, "--into", "damaged"], 2);
    assert!(
        refused.contains("its content does not match its name"),
        "{refused}"
    );
}

/// Trials of another run would count as trials of this one.
#[test]
fn a_folder_of_another_run_is_refused_and_stays_as_it_is() {
    let suite = SuiteFixture::good_and_bad();
    let url = url(&suite, "store");
    let check = |id: &str, place: &str, record: &str, exit: i32| {
        let words = [
            "check",
            "eval.yaml",
            "--run-id",
            id,
            "--store",
            &url,
            "--shard",
            place,
            "--record",
            record,
        ];
        suite.expect(&words, exit).1
    };
    check("night-1", "1/1", "kept", 0);
    check("night-2", "1/1", "elsewhere", 0);
    let before = contents(&suite.path("kept"));
    // A worker of the second night was killed before it uploaded a trial.
    for file in ["trials", "index.jsonl"] {
        let path = suite.path("store/night-2/shards/1").join(file);
        fs::remove_dir_all(&path)
            .or_else(|_| fs::remove_file(&path))
            .unwrap();
    }
    let refused = check("night-2", "1/1", "kept", 2);
    assert!(
        refused
            .contains("`kept` holds shard 1/1 of the run `night-1`, not 1/1 of the run `night-2`"),
        "{refused}"
    );
    assert!(before == contents(&suite.path("kept")));
    assert_eq!(names(suite.path("store/night-2/shards/1/trials")), [""; 0]);
    // The other shard of the same run.
    check("night-3", "1/2", "half", 0);
    let refused = check("night-3", "2/2", "half", 2);
    assert!(refused.contains("`half` holds"), "{refused}");
    // A run that is no shard, and trials without a run.
    suite.expect(&["check", "eval.yaml", "--record", "plain"], 1);
    let refused = check("night-4", "1/1", "plain", 2);
    assert!(
        refused.contains("already holds a run that is not a shard"),
        "{refused}"
    );
    fs::remove_file(suite.path("plain/run.jsonl")).unwrap();
    let refused = check("night-4", "1/1", "plain", 2);
    assert!(refused.contains("`plain` holds another run"), "{refused}");
}

fn contents(folder: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = files(folder)
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn a_worker_is_not_disturbed_by_another_one_in_its_folder() {
    let suite = SuiteFixture::good_and_bad();
    shard(&suite, "1/1", "local", 0);
    let before = fs::read(suite.path("local/run.jsonl")).unwrap();
    let lock = proctor_record::record::lock(&suite.path("local")).unwrap();
    let (_, refused) = shard(&suite, "1/1", "local", 2);
    assert!(
        refused.contains("another process is writing to `local`"),
        "{refused}"
    );
    assert_eq!(fs::read(suite.path("local/run.jsonl")).unwrap(), before);
    drop(lock);
    shard(&suite, "1/1", "local", 0);
}

#[test]
fn trials_that_the_store_no_longer_has_do_not_count() {
    let suite = SuiteFixture::good_and_bad();
    let run_url = url(&suite, "store/r1");
    for index in 1..=2 {
        shard(&suite, &format!("{index}/2"), &format!("local/{index}"), 0);
    }
    let mut into = 0;
    let mut merge = |exit: i32| {
        into += 1;
        let into = format!("merged-{into}");
        suite
            .expect(&["result", "merge", &run_url, "--into", &into], exit)
            .1
    };
    merge(1);
    let trials = suite.path("store/r1/shards/1/trials");
    let first = trials.join(&names(trials.clone())[0]);
    let content = fs::read_to_string(&first).unwrap();
    fs::remove_file(&first).unwrap();
    let notes = merge(1);
    assert!(notes.contains("1 trial of 6 missing"), "{notes}");
    // Written again, with the same length.
    let (from, to) = if content.contains("passed") {
        ("passed", "failed")
    } else {
        ("failed", "passed")
    };
    fs::write(&first, content.replace(from, to)).unwrap();
    fs::remove_file(suite.path("store/r1/shards/1/index.jsonl")).unwrap();
    merge(1);
    let kept = fs::read_to_string(
        suite
            .path("merged-3/trials")
            .join(first.file_name().unwrap()),
    );
    assert!(kept.unwrap() == content.replace(from, to));
    // A shard that was removed.
    fs::remove_dir_all(suite.path("store/r1/shards/2")).unwrap();
    let notes = merge(1);
    assert!(notes.contains("1 shard of 2 missing: 2"), "{notes}");
}

#[test]
fn the_report_knows_that_the_store_is_incomplete() {
    let suite = SuiteFixture::good_and_bad();
    suite.write("store/r1/shards/1/trials", "");
    let url = url(&suite, "store");
    let words = [
        "check",
        "eval.yaml",
        "--run-id",
        "r1",
        "--store",
        &url,
        "--store-timeout",
        "1s",
        "--shard",
        "1/1",
        "--record",
        "local",
        "-o",
        "json",
    ];
    let (report, _) = suite.expect(&words, 3);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let exit = report.pointer("/proctor/exit").or(report.pointer("/exit"));
    assert_eq!(exit.unwrap()["code"], 3, "{exit:?}");
}

#[test]
fn stores_are_refused_before_the_first_trial() {
    let suite = SuiteFixture::good_and_bad();
    let check = |words: &[&str]| {
        let all = ["check", "eval.yaml", "--shard", "1/2", "--record", "never"];
        let refused = suite.expect(&[&all[..], words].concat(), 2).1;
        assert!(!suite.path("never").exists());
        refused
    };
    let refused = check(&["--store", "file:///tmp"]);
    assert!(
        refused.contains("`--store` needs the name of the run"),
        "{refused}"
    );
    let refused = check(&["--store", "ftp://a/b", "--run-id", "r"]);
    assert!(refused.contains("unknown scheme `ftp`"), "{refused}");
    let refused = check(&["--store", "s3://user:password@bucket/x", "--run-id", "r"]);
    assert!(
        refused.contains("credentials and options belong into the environment"),
        "{refused}"
    );
    assert!(!refused.contains("password@"), "{refused}");
    let pass = [
        "--store",
        "s3://b/x",
        "--run-id",
        "r",
        "--pass-env",
        "AWS_SECRET_ACCESS_KEY",
    ];
    let refused = check(&pass);
    assert!(
        refused.contains("must not get the credentials of the store"),
        "{refused}"
    );
    let refused = check(&["--store", "s3://b/x", "--run-id", "../r"]);
    assert!(refused.contains("use letters, digits"), "{refused}");
}

#[test]
fn the_credentials_of_a_store_are_not_recorded() {
    let suite = SuiteFixture::good_and_bad();
    let secret = "an-unlikely-secret-4711";
    let store = url(&suite, "store");
    let words = [
        "check",
        "eval.yaml",
        "--shard",
        "1/1",
        "--run-id",
        "r",
        "--store",
        &store,
        "--record",
        "local",
    ];
    let variables = [
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AZURE_STORAGE_ACCOUNT_KEY", secret),
    ];
    let output = suite.on_machine(&words, &variables);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for folder in ["local", "store"] {
        for entry in files(&suite.path(folder)) {
            let content = fs::read(&entry).unwrap();
            let found = content
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{}", entry.display());
        }
    }
}

fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

//! `proctor result regrade`, from outside: new checks on old records, and what a record can't tell.

mod examples;
mod judges;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs the suite into `run`.
fn check(suite: &SuiteFixture, exit: i32) {
    let output = suite.proctor(&["check", "eval.yaml", "--record", "run", "-q"]);
    assert_eq!(output.status.code(), Some(exit), "{}", text(&output));
}

/// Regrades `run`, and returns the document.
fn regrade(suite: &SuiteFixture, words: &[&str], exit: i32) -> Value {
    let mut all = vec!["result", "regrade", "run", "-o", "json"];
    all.extend(words);
    let output = suite.proctor(&all);
    assert_eq!(output.status.code(), Some(exit), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", text(&output));
    })
}

/// The new outcome, what it is based on, and the reason, of each trial.
fn outcomes(document: &Value) -> Vec<(String, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let results = document["results"].as_array().unwrap();
    let outcome = |result: &Value| {
        let ours = &result["proctor"];
        (
            text(&result["taskName"]),
            text(&ours["outcome"]),
            text(&ours["basis"]),
            text(&ours["reason"]),
        )
    };
    results.iter().map(outcome).collect()
}

fn uses(tool: &str) -> Value {
    json!({"toolsUsed": [{"server": "fixture", "tool": tool}]})
}

fn grades(suite: &SuiteFixture) -> Vec<PathBuf> {
    let entries = fs::read_dir(suite.path("run/grades"));
    let entries = entries.into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn new_checks_change_verdicts_and_are_stored_beside_the_record() {
    let suite = SuiteFixture::good_and_bad();
    check(&suite, 1);
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 0}}));
    let document = regrade(&suite, &[], 1);
    let expected = [("bad", "passed"), ("good", "failed")];
    for ((name, outcome, basis, reason), expected) in outcomes(&document).iter().zip(expected) {
        assert_eq!((name.as_str(), outcome.as_str()), expected, "{reason}");
        assert_eq!(basis, "regraded");
    }
    assert_eq!(document["proctor"]["totals"]["changed"], 2);
    let passed = &document["results"][0];
    assert_eq!(
        (&passed["allAssertionsPassed"], &passed["runIndex"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(
        passed["assertionResults"]["maxToolCalls"]["passed"],
        json!(true)
    );
    let [file] = &grades(&suite)[..] else {
        panic!("one grades file: {:?}", grades(&suite));
    };
    let lines = fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    let header = &lines[0]["grades"];
    assert_eq!(header["proctor"], env!("CARGO_PKG_VERSION"));
    assert_eq!(header["hash"], document["proctor"]["hash"]);
    assert_eq!(
        header["cases"][0]["checks"],
        json!([{"MaxToolCalls": 0}]),
        "{header}"
    );
    assert_eq!(lines[1]["trial"]["after"]["outcome"], "passed");
    assert_eq!(
        lines[3]["ended"],
        json!({"trials": 2, "changed": 2, "exit": 1})
    );

    // The same checks replace the file; others get one of their own.
    regrade(&suite, &[], 1);
    assert_eq!(grades(&suite).len(), 1);
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 1}}));
    let document = regrade(&suite, &["--dry-run"], 0);
    assert_eq!(document["proctor"]["grades"], Value::Null);
    assert_eq!(grades(&suite).len(), 1);
    regrade(&suite, &["--name", "../relaxed"], 0);
    assert_eq!(grades(&suite).len(), 2);
    let shown = suite.proctor(&["result", "show", "run", "-o", "json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["proctor"]["gate"]["answer"], "missed");
}

#[test]
fn the_text_says_what_changed_and_why() {
    let suite = SuiteFixture::good_and_bad();
    check(&suite, 1);
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 0}}));
    let output = suite.proctor(&["result", "regrade", "run"]);
    let shown = text(&output);
    for part in [
        "bad #1: failed → passed",
        "toolsUsed: fail → not evaluated (before: `fixture` `echo` was never called",
        "good #1: passed → failed",
        "maxToolCalls: not evaluated → fail: ",
        "Verdicts  0 verdicts as before; 2 changed",
        "2 cases changed since the run",
        "missed, as before",
    ] {
        assert!(shown.contains(part), "`{part}` in:\n{shown}");
    }
}

#[test]
fn a_changed_or_new_verify_step_is_inconclusive_even_if_it_would_pass() {
    let suite = SuiteFixture::good_and_bad();
    let verify = |script: &str| json!({"verify": [{"script": {"inline": script}}]});
    suite.task("good", &verify("test -d /"));
    suite.task("bad", &json!({}));
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 9}}));
    check(&suite, 0);
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 8}}));
    regrade(&suite, &[], 0);
    suite.task("good", &verify("test -d /tmp"));
    suite.task("bad", &verify("test -d /"));
    let document = regrade(&suite, &[], 3);
    for (name, outcome, _, reason) in outcomes(&document) {
        assert_eq!(outcome, "errored", "{name}");
        let what = if name == "good" { "changed" } else { "is new" };
        let expected =
            format!("verify_0: the step {what} since the run, so the record has no result of it");
        assert_eq!(reason, expected);
    }
    assert_eq!(document["proctor"]["gate"]["answer"], "inconclusive");
    // A failed check still decides.
    suite.eval(&json!({}), &json!({"assertions": uses("echo")}));
    let document = regrade(&suite, &[], 1);
    assert_eq!(outcomes(&document)[0].1, "failed");
    assert_eq!(outcomes(&document)[1].1, "errored");
}

#[test]
fn a_script_of_a_verify_step_may_not_change_either() {
    let suite = SuiteFixture::good_and_bad();
    suite.write("tasks/check.sh", "#!/bin/sh\ntest -d /\n");
    suite.task(
        "good",
        &json!({"verify": [{"script": {"file": "check.sh"}}]}),
    );
    fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    make_executable(&suite, "tasks/check.sh");
    check(&suite, 0);
    regrade(&suite, &[], 0);
    suite.write("tasks/check.sh", "#!/bin/sh\ntest -d /tmp\n");
    let document = regrade(&suite, &[], 3);
    assert_eq!(outcomes(&document)[0].1, "errored");
}

fn make_executable(suite: &SuiteFixture, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(suite.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn another_prompt_is_another_task() {
    let suite = SuiteFixture::good_and_bad();
    fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    check(&suite, 0);
    suite.task("good", &json!({"prompt": {"inline": "good and new"}}));
    let document = regrade(&suite, &[], 3);
    let found = &outcomes(&document)[0];
    assert_eq!(
        (found.1.as_str(), found.2.as_str(), found.3.as_str()),
        (
            "errored",
            "inconclusive",
            "the prompt changed since the run"
        )
    );
    assert_eq!(document["results"][0]["allAssertionsPassed"], json!(false));
}

#[test]
fn cases_that_are_gone_are_named_and_never_pass() {
    let suite = SuiteFixture::good_and_bad();
    check(&suite, 1);
    fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    suite.task("other", &json!({}));
    let document = regrade(&suite, &[], 3);
    assert_eq!(document["proctor"]["removedCases"], json!(["bad"]));
    assert_eq!(document["proctor"]["casesWithoutTrials"], json!(["other"]));
    let found = outcomes(&document);
    assert_eq!(
        (found[0].1.as_str(), found[0].3.as_str()),
        ("errored", "the eval file has no such case")
    );
    assert_eq!(found[1].1, "passed");
}

#[test]
fn trials_whose_record_is_not_whole_are_named_and_the_others_are_graded() {
    let suite = SuiteFixture::good_and_bad();
    suite.task("ugly", &json!({}));
    suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 9}}));
    check(&suite, 0);
    let file = |name: &str| {
        let entries = fs::read_dir(suite.path("run/trials")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.to_str().unwrap().contains(name))
            .unwrap()
    };
    let bad = file("bad");
    let text = fs::read_to_string(&bad).unwrap();
    fs::write(&bad, text.replacen("\"event\"", "\"\u{0}", 5)).unwrap();
    let ugly = file("ugly");
    fs::rename(&ugly, ugly.with_extension("jsonl.part")).unwrap();
    let document = regrade(&suite, &[], 3);
    let found = outcomes(&document);
    let found: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|(name, outcome, basis, _)| (name.as_str(), outcome.as_str(), basis.as_str()))
        .collect();
    // The first line names the trial, so a file without one is not in the plan.
    assert_eq!(
        found,
        [
            ("bad", "not-run", "not-run"),
            ("good", "passed", "regraded"),
            ("ugly", "not-run", "not-run"),
        ]
    );
    let name = bad.file_name().unwrap().to_str().unwrap();
    assert_eq!(document["proctor"]["unplannedFiles"], json!([name]));

    // A line in the middle.
    let (first, rest) = text.split_once('\n').unwrap();
    fs::write(
        &bad,
        format!("{first}\n{}", rest.replacen("\"event\"", "\"", 1)),
    )
    .unwrap();
    let document = regrade(&suite, &[], 3);
    let found = &outcomes(&document)[0];
    assert_eq!(
        (found.1.as_str(), found.2.as_str()),
        ("errored", "inconclusive")
    );
    assert!(found.3.contains("line 2"), "{}", found.3);
}

#[test]
fn a_suite_that_can_not_be_loaded_is_an_error() {
    let suite = SuiteFixture::good_and_bad();
    check(&suite, 1);
    let output = suite.proctor(&["result", "regrade", "run", "--with", "nowhere.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("nowhere.yaml"));
    fs::remove_file(suite.path("eval.yaml")).unwrap();
    let output = suite.proctor(&["result", "regrade", "run"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(grades(&suite).is_empty());
}

#[test]
fn a_secret_in_a_check_is_not_shown() {
    let suite = SuiteFixture::good_and_bad();
    let secret = "kept-from-everybody-0815";
    check(&suite, 1);
    let arguments = json!({"server": "fixture", "tool": "echo", "arguments": {"text": secret}});
    suite.eval(
        &json!({}),
        &json!({"assertions": {"toolsUsed": [arguments]}}),
    );
    let output = Command::new(proctor_e2e::proctor())
        .args(["result", "regrade", "run", "-o", "json"])
        .env("ECHO_TOKEN", secret)
        .current_dir(suite.folder())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let stored = fs::read_to_string(&grades(&suite)[0]).unwrap();
    for shown in [text(&output), stored] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(shown.contains("[redacted:ECHO_TOKEN]"), "{shown}");
    }
}

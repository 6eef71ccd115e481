//! Gates on rates, `result verify` and `result diff`, with real runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// A model that calls `echo` unless the task is bad, and has no key where the task says so.
const RULES: &str = r"
  - when: {prompt: bad}
    reply: {text: I would rather not.}
  - when: {prompt: outage}
    reply: {error: {kind: key, detail: no such key}}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// The same, with a model that never calls a tool.
const LAZY: &str = "  - reply: {text: done}\n";

fn suite(rules: &str, config: &Value, tasks: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(rules, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(config, &json!({"assertions": assertions}));
    for task in tasks {
        suite.task(task, &json!({}));
    }
    suite
}

/// The exit code of `proctor result` and all that it says.
fn result(words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command.arg("result").args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn verify(record: &Path, flags: &[&str], code: i32) -> String {
    let words = [&["verify", record.to_str().unwrap()], flags].concat();
    let (found, text) = result(&words);
    assert_eq!(found, Some(code), "{text}");
    text
}

#[test]
fn check_and_verify_agree_on_every_gate() {
    let suite = suite(RULES, &json!({}), &["bad", "good"]);
    for (flags, code) in [
        (&["--min-pass-rate", "50%"][..], 0),
        (&["--min-pass-rate", "0.51"], 1),
        (&["--min-lower-bound", "0.5"], 3),
        (&["--pass-hat", "2=50%"], 0),
        (&["--pass-hat", "2=60%"], 1),
        (&["--max-errors", "0"], 1),
        (&[], 1),
    ] {
        let all = [&["-n", "2"], flags].concat();
        let seen = suite.check(&all).run();
        assert_eq!(seen.code, Some(code), "{flags:?}\n{}", seen.stdout);
        // Again from the record, without flags.
        let text = verify(&seen.record, &[], code);
        if let [option, ..] = flags
            && *option != "--max-errors"
        {
            assert!(text.contains(option), "{text}");
        }
        // And with flags, in a record that does not know them.
        verify(&seen.record, flags, code);
    }
}

#[test]
fn an_errored_trial_is_never_green() {
    let suite = suite(RULES, &json!({}), &["good", "outage"]);
    let seen = suite.check(&["--min-pass-rate", "60%"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stdout);
    verify(&seen.record, &[], 3);
    verify(&seen.record, &["--min-pass-rate", "50%"], 0);
    verify(
        &seen.record,
        &["--min-pass-rate", "50%", "--max-errors", "0"],
        1,
    );
    verify(&seen.record, &["--task", "0.6"], 3);
    verify(&seen.record, &["--assertion", "0.6"], 3);
    // A trial whose record is cut off has no verdict.
    let trials = fs::read_dir(seen.record.join("trials")).unwrap();
    let mut paths = trials.map(|entry| entry.unwrap().path());
    let good = paths
        .find(|path| path.to_str().unwrap().contains("good"))
        .unwrap();
    let text = fs::read(&good).unwrap();
    fs::write(&good, &text[..text.len() / 2]).unwrap();
    let (code, text) = result(&[
        "verify",
        seen.record.to_str().unwrap(),
        "--min-pass-rate",
        "50%",
    ]);
    assert_ne!(code, Some(0), "{text}");
}

#[test]
fn the_gates_of_the_eval_file_count_unless_a_flag_replaces_them() {
    let gates = json!({"gates": {"minPassRate": "50%", "maxErrors": 0}});
    let suite = suite(RULES, &gates, &["bad", "good"]);
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
    assert!(seen.stdout.contains("Gate      met"), "{}", seen.stdout);
    let seen = suite.check(&["--min-pass-rate", "100%"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
}

#[test]
fn a_wrong_gate_is_refused_before_anything_starts() {
    let wrong = [
        (json!({"minPassRat": 0.5}), "minPassRate"),
        (json!({"minPassRate": 90}), "more than everything"),
        (json!({"minPassRate": 0}), "could never be missed"),
        (json!({"minLowerBound": "high"}), "invalid share"),
        (json!({"passHat": {"rate": 0.5}}), "k"),
        (json!({"maxErrors": -1}), "maxErrors"),
    ];
    for (gates, words) in wrong {
        let suite = suite(RULES, &json!({"gates": gates}), &["good"]);
        let seen = suite.check(&[]).run();
        assert_eq!(seen.code, Some(2), "{gates}\n{}", seen.stderr);
        assert!(seen.stderr.contains(words), "{gates}\n{}", seen.stderr);
    }
    let suite = suite(RULES, &json!({}), &["good"]);
    for flags in [
        &["--pass-hat", "3=0.9"][..],
        &["--pass-hat", "0=0.9"],
        &["--no-regression", "missing.run"],
        &["--min-pass-rate", "0"],
    ] {
        let seen = suite.check(flags).run();
        assert_eq!(seen.code, Some(2), "{flags:?}\n{}", seen.stderr);
    }
}

#[test]
fn a_collapsed_case_is_a_regression_for_diff_verify_and_check() {
    let tasks = ["a", "b", "c", "d", "e"];
    let good = suite(RULES, &json!({}), &tasks);
    let base = good.check(&["-n", "6", "--jobs", "4"]).run();
    assert_eq!(base.code, Some(0), "{}", base.stdout);
    // The same tasks: the model no longer does `c`.
    let rules = format!("  - when: {{prompt: c}}\n    reply: {{text: no}}\n{RULES}");
    good.write("model.yaml", &format!("kind: Script\nrules:\n{rules}"));
    let path = base.record.to_str().unwrap().to_owned();
    let flags = ["-n", "6", "--jobs", "4", "--no-regression", &path];
    let new = good.check(&flags).run();
    assert_eq!(new.code, Some(1), "{}", new.stdout);
    assert!(
        new.stdout
            .contains("Regression: 30/30 → 24/30 trials of 5 cases"),
        "{}",
        new.stdout
    );
    let words = ["diff", &path, new.record.to_str().unwrap()];
    let (code, text) = result(&words);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with("Regression: 30/30 → 24/30 trials of 5 cases"),
        "{text}"
    );
    let (code, text) = result(&[&words[..], &["-o", "json"]].concat());
    assert_eq!(code, Some(1), "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["answer"], "regression");
    assert_eq!(json["worse"].as_array().unwrap().len(), 1);
    assert_eq!(json["worse"][0]["name"], "c");
    assert_eq!(json["worse"][0]["isRegression"], true);
    let (code, text) = result(&[&words[..], &["-o", "markdown"]].concat());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("| worse | `c` | 6/6 | 0/6 |"), "{text}");
    // The base may be gone: its verdicts are in the record.
    fs::remove_dir_all(&base.record).unwrap();
    verify(&new.record, &[], 1);
}

#[test]
fn a_run_is_not_compared_with_itself_or_with_another_suite() {
    let suite_a = suite(RULES, &json!({}), &["a"]);
    let seen = suite_a.check(&[]).run();
    let path = seen.record.to_str().unwrap();
    let (code, text) = result(&["diff", path, path]);
    assert_eq!(code, Some(2), "{text}");
    let text = verify(&seen.record, &["--no-regression", path], 2);
    assert!(text.contains("the run itself"), "{text}");
    let suite_b = suite(LAZY, &json!({}), &["b"]);
    let other = suite_b.check(&[]).run();
    let (code, text) = result(&["diff", path, other.record.to_str().unwrap()]);
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.starts_with("Inconclusive: no case has the same id"),
        "{text}"
    );
}

//! `check --stop-when-decided`: trials that can't change the answer are not started.

use std::process::Command;

use proctor_e2e::session::Session;
use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {prompt: bad}
    reply: {text: I would rather not.}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn suite(pass: Option<&str>, tasks: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    let mut set = json!({"assertions": assertions});
    if let Some(pass) = pass {
        set["pass"] = json!(pass);
    }
    suite.eval(&json!({}), &set);
    for task in tasks {
        suite.task(task, &json!({}));
    }
    suite
}

fn trials(stdout: &str) -> Value {
    let json: Value = serde_json::from_str(stdout).unwrap();
    assert_eq!(json["proctor"]["curtailed"], true);
    assert_eq!(json["proctor"]["rate"], Value::Null);
    assert_eq!(json["proctor"]["agents"][0]["rate"], Value::Null);
    json["proctor"]["trials"].clone()
}

#[test]
fn decided_cases_start_no_more_trials_and_have_no_rate() {
    let suite = suite(Some("4/5"), &["bad", "good"]);
    let words = ["-n", "5", "--stop-when-decided", "-o", "json"];
    let seen = suite.check(&words).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let found = trials(&seen.stdout);
    assert_eq!(
        (&found["passed"], &found["failed"], &found["notRun"]),
        (&json!(4), &json!(2), &json!(4))
    );
    let record = seen.record.to_str().unwrap();
    let shown = Command::new(proctor_e2e::proctor())
        .args(["result", "show", record])
        .output()
        .unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("not a pass rate") && !text.contains("95% CI"),
        "{text}"
    );
    assert!(!text.contains("--resume"), "{text}");
    // A resumed run keeps the decision.
    let again = Session::new(&["check"]).resume(&seen.record).run();
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(
        again.stdout.contains("4 of 6 trials passed"),
        "{}",
        again.stdout
    );
}

#[test]
fn trials_that_were_not_needed_are_not_run_again() {
    let suite = suite(Some("4/5"), &["good"]);
    let check = |words: &[&str]| {
        let mut command = Command::new(proctor_e2e::proctor());
        command
            .arg("check")
            .arg(suite.path("eval.yaml"))
            .args(words);
        let output = command.current_dir(suite.folder()).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(check(&["-n", "5", "--stop-when-decided"]).0, Some(0));
    let (code, stderr) = check(&["--rerun-errors"]);
    assert_eq!(code, Some(4), "{stderr}");
}

#[test]
fn a_rate_gate_ends_the_run_once_it_is_decided() {
    let suite = suite(None, &["good", "fine"]);
    let words = [
        "-n",
        "60",
        "-j",
        "4",
        "--stop-when-decided",
        "-o",
        "json",
        "--min-pass-rate",
        "80%",
    ];
    let seen = suite.check(&words).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let found = trials(&seen.stdout);
    assert!(found["notRun"].as_u64().unwrap() > 50, "{found}");
    let verified = Command::new(proctor_e2e::proctor())
        .args(["result", "verify", seen.record.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(verified.stdout).unwrap();
    assert_eq!(verified.status.code(), Some(0), "{text}");
    assert!(text.contains("anytime-valid 95% interval"), "{text}");
}

#[test]
fn gates_that_need_every_trial_are_refused() {
    let suite = suite(None, &["good"]);
    let base = suite.check(&["-n", "6"]).run();
    let record = base.record.to_str().unwrap();
    for gate in [
        &["--pass-hat", "2=50%"][..],
        &["--no-regression", record],
        &["--max-errors", "0"],
    ] {
        let words = [&["-n", "6", "--stop-when-decided"], gate].concat();
        let seen = suite.check(&words).run();
        assert_eq!(seen.code, Some(2), "{}", seen.stderr);
        assert!(seen.stderr.contains("needs every trial"), "{}", seen.stderr);
    }
}

#[test]
fn a_curtailed_run_is_not_compared_as_if_it_were_complete() {
    let bad = suite(None, &["bad"]);
    let curtailed = bad.check(&["-n", "6", "--stop-when-decided"]).run();
    let record = curtailed.record.to_str().unwrap();
    // Better than a base that stopped after one failure would be always green.
    let seen = bad.check(&["-n", "6", "--no-regression", record]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("name a complete run"),
        "{}",
        seen.stderr
    );
    let full = bad.check(&["-n", "6"]).run();
    let diff = Command::new(proctor_e2e::proctor())
        .args(["result", "diff", record, full.record.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(diff.stdout).unwrap();
    assert_eq!(diff.status.code(), Some(3), "{text}");
    assert!(text.contains("not a fair sample"), "{text}");
}

//! `proctor result show`: what a stored run came to is told in the words of the run itself, byte for byte.

use std::fs;
use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// Runs the suite, shows its record again, and compares stdout, `--out` and `--junit`.
fn assert_shown_again(suite: &SuiteFixture, format: &str, exit: i32) {
    let run = |words: &[&str], kind: &str| {
        let output = Command::new(proctor_e2e::proctor())
            .args(words)
            .args(["-o", format, "--out", &format!("{kind}.json")])
            .args(["--junit", &format!("{kind}.xml")])
            .current_dir(suite.folder())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let record = format!("run-{format}");
    let (code, then) = run(&["check", "eval.yaml", "--record", &record], "then");
    assert_eq!(code, Some(exit), "{then}");
    let (code, now) = run(&["result", "show", &record], "now");
    assert_eq!(code, Some(0), "{now}");
    assert!(!then.is_empty());
    assert_eq!(now, then);
    for file in ["json", "xml"] {
        let read = |kind: &str| fs::read_to_string(suite.path(&format!("{kind}.{file}"))).unwrap();
        assert_eq!(read("now"), read("then"), "{file}");
    }
}

fn suite(tasks: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    for task in tasks {
        suite.task(task, &json!({}));
    }
    suite
}

#[test]
fn a_run_that_passed_is_shown_again() {
    let suite = suite(&["good"]);
    assert_shown_again(&suite, "text", 0);
    assert_shown_again(&suite, "json", 0);
}

#[test]
fn a_run_that_failed_and_errored_is_shown_again() {
    let suite = suite(&["good", "bad"]);
    suite.task(
        "broken",
        &json!({"setup": [{"script": {"inline": "exit 3"}}]}),
    );
    assert_shown_again(&suite, "text", 1);
    assert_shown_again(&suite, "json", 1);
}

#[test]
fn a_folder_without_a_run_is_an_error() {
    let suite = suite(&["good"]);
    let output = Command::new(proctor_e2e::proctor())
        .args(["result", "show", "nowhere"])
        .current_dir(suite.folder())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere"));
}

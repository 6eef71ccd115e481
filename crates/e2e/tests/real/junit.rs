//! `JUnit` files, validated against the schema of Jenkins and pytest by Python's `xmlschema`. It runs with
//! `PROCTOR_EXTENDED=1`; a test of `proctor-report` checks the same without an installation.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use proctor_e2e::suite::SuiteFixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::servers::installed;

/// Whether the file is valid, by a real validator.
fn is_valid(file: &Path) -> bool {
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../report/tests/all/junit-10.xsd"
    );
    let code = "import sys, xmlschema; xmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])";
    let output = Command::new(installed("evals/python/bin/python"))
        .args(["-c", code, schema])
        .arg(file)
        .env("PYTHONPATH", installed("sdks/xmlschema"))
        .output()
        .unwrap();
    output.status.success()
}

/// A trial for each outcome, with texts that mean something in XML.
fn suite() -> SuiteFixture {
    let rules = r"
  - when: {prompt: slow}
    reply: {text: late, delay: 60s}
  - when: {prompt: outage}
    reply: {error: {kind: key, detail: 'no <key> & no ]]>'}}
  - reply: {text: ']]> <b> &amp; \u001b[1m'}
";
    let suite = SuiteFixture::new(rules, &[]);
    let steps = |script: &str| json!({"verify": [{"script": {"inline": script}}]});
    suite.task("good", &steps("test -d /"));
    suite.task("bad <&>", &steps("echo ']]>'; exit 1"));
    suite.task("outage", &steps("test -d /"));
    let mut slow = steps("test -d /");
    slow["limits"] = json!({"timeout": "300ms"});
    suite.task("slow", &slow);
    suite
}

/// Checks the suite with `--junit`, and returns the file. `signal` ends the run once its first trial has ended.
#[track_caller]
fn junit(suite: &SuiteFixture, words: &[&str], exit: i32, signal: Option<Signal>) -> String {
    let _ = fs::remove_file(suite.path("out.xml"));
    let mut child = Command::new(proctor_e2e::proctor())
        .arg("check")
        .args(words)
        .args(["--junit", "out.xml"])
        .current_dir(suite.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    if let Some(signal) = signal {
        let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("/4 ")));
        assert!(first.is_some(), "no trial ended");
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    for line in lines {
        line.unwrap();
    }
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(exit), "{words:?}");
    assert!(is_valid(&suite.path("out.xml")), "{words:?}");
    fs::read_to_string(suite.path("out.xml")).unwrap()
}

#[test]
fn junit_files_are_valid() {
    if std::env::var("PROCTOR_EXTENDED").is_ok_and(|value| value == "1") {
        let suite = suite();
        let text = junit(&suite, &["eval.yaml", "-n", "2"], 1, None);
        for part in ["failed", "timed-out", "errored, infra"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let errored = junit(&suite, &["eval.yaml", "-r", "outage"], 3, None);
        assert!(errored.contains("<error"), "{errored}");
        let slow = junit(&suite, &["eval.yaml", "-r", "slow"], 1, None);
        assert!(slow.contains("<failure"), "{slow}");
        junit(&suite, &["eval.yaml", "-r", "nothing"], 4, None);
        junit(&suite, &["no-such-file.yaml"], 2, None);
        // A run that is interrupted while a trial waits for its model.
        let mut waits = json!({"verify": [{"script": {"inline": "test -d /"}}]});
        waits["limits"] = json!({"timeout": "60s"});
        suite.task("slow", &waits);
        let text = junit(&suite, &["eval.yaml"], 130, Some(Signal::INT));
        assert!(text.contains("(run)"), "{text}");
        assert!(text.contains("<skipped"), "{text}");
        suite.write("old.xml", r#"<testsuites skipped="0"/>"#);
        assert!(!is_valid(&suite.path("old.xml")));
    }
}

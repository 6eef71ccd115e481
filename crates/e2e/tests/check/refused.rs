//! Runs that don't start: who reads only a document learns it too.

use std::fs;
use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// Runs the suite with documents; its exit code, the document on stdout, and the files.
fn check(suite: &SuiteFixture, words: &[&str]) -> (Option<i32>, Value, Value, String) {
    let output = Command::new(proctor_e2e::proctor())
        .arg("check")
        .args(words)
        .args(["-o", "json", "--out", "out.json", "--junit", "out.xml"])
        .current_dir(suite.folder())
        .output()
        .unwrap();
    let read = |name: &str| fs::read_to_string(suite.path(name)).unwrap();
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap(),
        serde_json::from_str(&read("out.json")).unwrap(),
        read("out.xml"),
    )
}

#[test]
fn a_configuration_error_is_a_document() {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    suite.eval(&json!({}), &json!({"assertions": {"toolsUsd": []}}));
    suite.task("a", &json!({}));
    let (code, shown, written, junit) = check(&suite, &["eval.yaml"]);
    assert_eq!(code, Some(2));
    assert_eq!(shown, written);
    assert_eq!(shown["proctor"]["exit"]["code"], 2);
    assert_eq!(shown["results"], json!([]));
    let problems = shown["proctor"]["problems"].as_array().unwrap();
    let messages: Vec<&str> = problems
        .iter()
        .filter_map(|p| p["message"].as_str())
        .collect();
    assert!(messages.contains(&"unknown key `toolsUsd`"), "{messages:?}");
    assert!(
        junit.contains(r#"errors="1""#) && junit.contains("unknown key"),
        "{junit}"
    );
}

#[test]
fn a_run_that_can_not_be_found_is_a_document() {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    let (code, shown, written, junit) = check(&suite, &["--resume", "no-such-run"]);
    assert_eq!(code, Some(2));
    assert_eq!(shown, written);
    let note = shown["proctor"]["exit"]["note"].as_str().unwrap();
    assert!(note.contains("no-such-run"), "{note}");
    assert!(junit.contains("no-such-run"), "{junit}");
}

#[test]
fn a_selection_without_cases_is_an_error_in_junit() {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    suite.task("a", &json!({"verify": [{"script": {"inline": "false"}}]}));
    let (code, _, written, junit) = check(&suite, &["eval.yaml", "-r", "zzz"]);
    assert_eq!(code, Some(4));
    assert_eq!(written["proctor"]["exit"]["code"], 4);
    assert!(junit.contains(r#"type="exit 4""#), "{junit}");
}

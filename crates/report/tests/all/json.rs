//! The document that scripts read.

use serde_json::Value;

use crate::sample::{HOSTILE, Sample};

fn written(sample: &Sample) -> String {
    let mut out = Vec::new();
    proctor_report::json::write(&sample.report(), &mut out).expect("a document");
    String::from_utf8(out).expect("a text")
}

#[test]
fn the_document_has_the_shape_of_mcpchecker_and_more() {
    let sample = Sample::new();
    let text = written(&sample);
    let document: Value = serde_json::from_str(&text).unwrap();
    insta::assert_snapshot!(format!("{document:#}"));
}

#[test]
fn every_planned_trial_has_an_entry() {
    let sample = Sample::new();
    let document: Value = serde_json::from_str(&written(&sample)).unwrap();
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 14);
    let passed =
        |entry: &&Value| entry["taskPassed"] == true && entry["allAssertionsPassed"] == true;
    let ours = |entry: &&Value| entry["proctor"]["outcome"] == "passed";
    assert_eq!(results.iter().filter(ours).count(), 6);
    // What has no check recorded can't be said to keep its assertions.
    assert_eq!(results.iter().filter(passed).count(), 0);
    let hostile = results.iter().find(|entry| entry["taskName"] == HOSTILE);
    let call = &hostile.unwrap()["callHistory"]["ToolCalls"][0];
    assert_eq!(call["request"]["Params"]["arguments"]["text"], HOSTILE);
    assert_eq!(call["result"]["isError"], true);
}

#[test]
fn only_assertions_in_the_way_leave_the_task_passed() {
    let sample = Sample::new();
    let document: Value = serde_json::from_str(&written(&sample)).unwrap();
    let entry = |outcome: &str, name: &str| {
        let mut results = document["results"].as_array().unwrap().iter();
        let found = results
            .find(|entry| entry["taskName"] == name && entry["proctor"]["outcome"] == outcome);
        found.unwrap().clone()
    };
    let only_assertions = entry("failed", "list a folder");
    assert_eq!(only_assertions["taskPassed"], true);
    assert_eq!(only_assertions["allAssertionsPassed"], false);
    let both = entry("failed", "read a file");
    assert_eq!(both["taskPassed"], false);
    assert_eq!(both["assertionResults"]["toolsUsed"]["passed"], false);
    assert_eq!(both["taskJudgeReason"], "it has no greeting");
    let undecided = entry("errored", "undecided");
    assert_eq!(undecided["taskPassed"], false);
    assert!(undecided["taskJudgeError"].is_string());
    assert_eq!(entry("not-run", "stopped")["taskError"], "not run");
}

#[test]
fn a_task_whose_verify_steps_were_not_all_run_did_not_pass() {
    let mut sample = Sample::new();
    // A judge is not asked where an assertion failed; what older records planned is not known.
    for steps in [Some(1), None] {
        sample.summary.cases[1].case.verify_steps = steps;
        let document: Value = serde_json::from_str(&written(&sample)).unwrap();
        let mut results = document["results"].as_array().unwrap().iter();
        let failed = |entry: &&Value| {
            entry["taskName"] == "list a folder" && entry["proctor"]["outcome"] == "failed"
        };
        assert_eq!(results.find(failed).unwrap()["taskPassed"], false);
    }
}

/// A reader may look at one phase alone, so what was not run is no success.
#[test]
fn a_phase_that_was_not_run_did_not_succeed() {
    let sample = Sample::new();
    let document: Value = serde_json::from_str(&written(&sample)).unwrap();
    for entry in document["results"].as_array().unwrap() {
        let outcome = &entry["proctor"]["outcome"];
        for phase in [
            "setupOutput",
            "verifyOutput",
            "cleanupOutput",
            "agentOutput",
        ] {
            let output = &entry[phase];
            assert_eq!(output["Success"] == true, output["Error"] == "", "{entry}");
            if outcome == "not-run" {
                assert_eq!(output["Error"], "not run", "{phase}: {entry}");
            }
        }
    }
    let mut results = document["results"].as_array().unwrap().iter();
    let setup = results
        .find(|entry| entry["taskName"] == "broken setup")
        .unwrap();
    assert_eq!(setup["verifyOutput"]["Error"], "not run");
    assert_eq!(setup["agentOutput"]["Success"], false);
}

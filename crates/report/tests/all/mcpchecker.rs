//! The result file of mcpchecker, written and read back.

use std::fs;

use proctor_core::gate::Gate;
use proctor_core::import::import;
use proctor_core::summary::Summary;
use proctor_record::event::Outcome;
use proctor_record::record::RunReader;
use proctor_record::redact::Redactor;
use proctor_report::{Report, mcpchecker};
use serde_json::Value;

use crate::sample::Sample;

/// Written by hand, after the format's description.
const NEW: &str = include_str!("../../../core/tests/results/mcpchecker-shop-out.json");
const OLD: &str = include_str!("../../../core/tests/results/gevals-shop-out.json");

fn written(report: &Report<'_>, agent: usize) -> Value {
    let mut out = Vec::new();
    mcpchecker::write(report, agent, &mut out).expect("a document");
    serde_json::from_slice(&out).expect("JSON")
}

/// The outcomes of the trials of a file, and the file that is written from them.
fn imported(text: &str) -> (Vec<Option<Outcome>>, Gate, Value) {
    let folder = tempfile::tempdir().expect("a valid file");
    let file = folder.path().join("result.json");
    fs::write(&file, text).expect("a valid file");
    let path = folder.path().join("run");
    import(&file, &path, Redactor::default()).expect("a valid file");
    let run = RunReader::open(&path).expect("a valid file");
    let summary = Summary::checked(&run).expect("a valid file");
    let gate = Gate::of(&summary);
    let outcomes = summary.trials().map(|(_, _, trial)| trial.outcome());
    let outcomes = outcomes.collect();
    let document = written(&Report::new(&run, &summary, &gate), 0);
    (outcomes, gate, document)
}

fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => {
            map.contains_key(key) || map.values().any(|value| has_key(value, key))
        }
        Value::Array(list) => list.iter().any(|value| has_key(value, key)),
        _ => false,
    }
}

/// An entry without what the file may not keep: estimates, and times in another spelling.
fn comparable(entry: &Value) -> Value {
    let mut entry = entry.clone();
    let fields = entry.as_object_mut().expect("a valid file");
    fields.retain(|key, _| {
        !matches!(
            key.as_str(),
            "tokenEstimate" | "setupOutput" | "agentOutput" | "verifyOutput" | "cleanupOutput"
        )
    });
    for list in ["ToolCalls", "ResourceReads", "PromptGets"] {
        let calls = entry["callHistory"][list].as_array_mut();
        for call in calls.into_iter().flatten() {
            let call = call.as_object_mut().expect("a valid file");
            call.retain(|key, _| !matches!(key.as_str(), "timestamp" | "tokens"));
        }
    }
    entry
}

#[test]
fn the_file_has_one_agent_and_nothing_of_proctor() {
    let sample = Sample::of_two_agents();
    for (agent, name, passed) in [(0, "first", true), (1, "second", false)] {
        let document = written(&sample.report(), agent);
        assert!(!has_key(&document, "proctor"), "{document:#}");
        assert_eq!(document["summary"]["agent"]["name"], name);
        let results = document["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0]["taskPassed"], passed);
    }
    let document = written(&Sample::new().report(), 0);
    assert!(!has_key(&document, "proctor"));
    assert_eq!(document["results"].as_array().unwrap().len(), 14);
}

#[test]
fn a_file_that_is_read_and_written_again_says_the_same() {
    for text in [NEW, OLD] {
        let (outcomes, gate, first) = imported(text);
        let (again, same_gate, second) = imported(&first.to_string());
        let is_passed = |outcomes: &[Option<Outcome>]| -> Vec<bool> {
            let outcomes = outcomes.iter();
            outcomes.map(|o| *o == Some(Outcome::Passed)).collect()
        };
        assert_eq!(is_passed(&outcomes), is_passed(&again));
        assert_eq!(gate.exit(), same_gate.exit());
        assert_eq!(first["summary"], second["summary"]);
        let entries = |document: &Value| -> Vec<Value> {
            let results = document["results"].as_array().unwrap();
            results.iter().map(comparable).collect()
        };
        assert_eq!(entries(&first), entries(&second));
        // What was written by hand is still there.
        let source: Value = serde_json::from_str(text).unwrap();
        let source = source.get("results").unwrap_or(&source);
        let entries = entries(&first);
        let source = source.as_array().unwrap();
        for (number, was) in source.iter().enumerate() {
            // The older form does not number its runs.
            let before = source[..number].iter();
            let before = before.filter(|other| other["taskName"] == was["taskName"]);
            let index = Value::from(before.count());
            let is = entries
                .iter()
                .find(|is| is["taskName"] == was["taskName"] && is["runIndex"] == index);
            let is = is.expect("an entry");
            for key in [
                "taskName",
                "taskPath",
                "taskPassed",
                "allAssertionsPassed",
                "taskOutput",
            ] {
                assert_eq!(was[key], is[key], "{key} of {}", was["taskName"]);
            }
            let call = &was["callHistory"]["ToolCalls"][0];
            let same = &is["callHistory"]["ToolCalls"][0];
            for key in ["serverName", "name", "result", "success"] {
                assert_eq!(call[key], same[key], "{key}");
            }
            let arguments = |call: &Value| call["request"]["Params"]["arguments"].clone();
            assert_eq!(arguments(call), arguments(same));
        }
    }
}

#[test]
fn a_run_that_is_written_and_read_back_has_the_same_failures() {
    let sample = Sample::new();
    let (outcomes, gate, document) = imported(&written(&sample.report(), 0).to_string());
    let passed =
        |entry: &&Value| entry["taskPassed"] == true && entry["allAssertionsPassed"] == true;
    let written = written(&sample.report(), 0);
    let before: Vec<bool> = written["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| passed(&e))
        .collect();
    let after: Vec<bool> = outcomes
        .iter()
        .map(|o| *o == Some(Outcome::Passed))
        .collect();
    assert_eq!(before, after);
    assert_eq!(gate.exit(), sample.gate.exit());
    assert_eq!(document["results"].as_array().unwrap().len(), 14);
}

#[test]
fn a_step_of_a_suite_can_not_speak_for_the_task() {
    // In an imported run, the check `taskPassed` is the task. In any other, a step may have that name.
    let mut sample = Sample::new();
    sample.summary.plan.kind = proctor_record::event::RunKind::Imported;
    let document = written(&sample.report(), 0);
    let failed = document["results"].as_array().unwrap();
    let mut failed = failed.iter().filter(|e| e["taskName"] == "list a folder");
    let last = failed.next_back().unwrap();
    assert_eq!(last["taskPassed"], false, "no check says that it passed");
}

//! The reader of result files: a file that is imported is a run that can be read, with the same outcomes each time, and a trial
//! passes only if its entry says so and nothing in it says otherwise.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use proctor_core::gate::Gate;
use proctor_core::import::import;
use proctor_core::summary::Summary;
use proctor_fuzz::scratch;
use proctor_record::event::Outcome;
use proctor_record::record::RunReader;
use proctor_record::redact::Redactor;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let folder = scratch("results");
    let file = folder.join("mcpchecker-fuzz-out.json");
    fs::write(&file, data).expect("a result file");
    let once = folder.join("once");
    if import(&file, &once, Redactor::default()).is_err() {
        return;
    }
    let (summary, outcomes) = outcomes(&once);
    let again = folder.join("again");
    import(&file, &again, Redactor::default()).expect("it could be imported before");
    assert_eq!(self::outcomes(&again).1, outcomes, "imported again");

    let passed = outcomes
        .iter()
        .filter(|outcome| **outcome == Some(Outcome::Passed));
    let passed = passed.count();
    let Some(entries) = entries(data) else {
        return;
    };
    let passing = entries.iter().filter(|entry| says_passed(entry)).count();
    assert!(
        passed <= passing,
        "{passed} trials passed, {passing} entries say so"
    );
    if Gate::of(&summary) == Gate::Met {
        assert!(!entries.is_empty());
        assert_eq!(passed, outcomes.len(), "the gate is met");
    }
});

/// The summary of a run, and the outcome of each trial of its plan.
fn outcomes(folder: &Path) -> (Summary, Vec<Option<Outcome>>) {
    let run = RunReader::open(folder).expect("an imported run can be read");
    let summary = Summary::checked(&run).expect("and has a summary");
    let outcomes = summary
        .trials()
        .map(|(_, _, trial)| trial.outcome())
        .collect();
    (summary, outcomes)
}

/// The entries of a file, as a parser sees them that keeps the last of two equal keys; `None` if it is nested too deeply
/// for it.
fn entries(data: &[u8]) -> Option<Vec<Value>> {
    let list = match serde_json::from_slice(data).ok()? {
        Value::Object(mut members) => members.remove("results").unwrap_or_default(),
        list => list,
    };
    Some(match list {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    })
}

fn says_passed(entry: &Value) -> bool {
    let is = |key: &str, value: bool| entry.get(key).and_then(Value::as_bool) == Some(value);
    let assertions = entry.get("assertionResults").and_then(Value::as_object);
    let unmet = |assertion: &Value| {
        !assertion.is_null() && assertion.get("passed").and_then(Value::as_bool) != Some(true)
    };
    let fails = assertions.is_some_and(|all| all.values().any(unmet));
    is("taskPassed", true)
        && is("allAssertionsPassed", true)
        && !is("timedOut", true)
        && !is("agentExecutionError", true)
        && !fails
}

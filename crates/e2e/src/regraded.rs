//! Regrades a recorded run with its own checks, and compares every verdict with the recorded one.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Checks that a regrade with the checks of the record changes nothing, neither a verdict nor the record.
/// Returns the number of trials.
pub fn assert_same(record: &Path) -> usize {
    let trials = || contents(&record.join("trials"));
    let before = trials();
    let shown = document(&["result", "show"], record).0;
    let (regraded, exit) = document(&["result", "regrade"], record);
    assert_eq!(trials(), before, "a regrade does not change the record");
    assert_eq!(
        regraded["proctor"]["totals"]["changed"], 0,
        "{}",
        regraded["proctor"]
    );
    let (then, now) = (entries(&shown), entries(&regraded));
    assert_eq!(then.len(), now.len());
    for (then, now) in then.iter().zip(now) {
        let trial = format!("{} {}", now["taskName"], now["proctor"]["file"]);
        let keys = [
            "taskName",
            "runIndex",
            "allAssertionsPassed",
            "assertionResults",
        ];
        for key in keys {
            assert_eq!(now[key], then[key], "{key} of {trial}");
        }
        for key in ["outcome", "blame", "reason"] {
            let recorded = then["proctor"].get(key).unwrap_or(&Value::Null);
            assert_eq!(&now["proctor"][key], recorded, "{key} of {trial}");
            assert_eq!(
                now["proctor"][key], now["proctor"]["before"][key],
                "{key} of {trial}"
            );
        }
        // A check without a recorded result is never a pass.
        let checks = now["proctor"]["checks"].as_array().into_iter().flatten();
        for check in checks.filter(|check| check["origin"] == "missing") {
            assert_eq!(check["verdict"], "unknown", "{check}");
        }
    }
    let gate = match shown["proctor"]["gate"]["answer"].as_str() {
        Some("met") => 0,
        Some("missed") => 1,
        _ => 3,
    };
    assert_eq!(exit, Some(gate), "{}", regraded["proctor"]);
    then.len()
}

fn entries(document: &Value) -> &[Value] {
    let entries = document["results"].as_array();
    entries.map_or(&[], Vec::as_slice)
}

fn document(words: &[&str], record: &Path) -> (Value, Option<i32>) {
    let output = Command::new(crate::proctor())
        .args(words)
        .arg(record)
        .args(["-o", "json"])
        .output()
        .expect("proctor starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!("{words:?}: {error}: {text}\n{stderr}")
    });
    (value, output.status.code())
}

/// The names and contents of all files in a folder.
fn contents(folder: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("the folder can be read");
            let text = std::fs::read(entry.path()).expect("the file can be read");
            (entry.file_name(), text)
        })
        .collect();
    files.sort();
    files
}

//! What public suites are made of: each construct loads, and where it can, runs. And the document that
//! scripts read, key by key.

use proctor_e2e::session::Seen;
use proctor_e2e::suite::Suite;
use serde_json::{Value, json};

/// The document of a run, which has ended with this code.
fn document(seen: &Seen, code: i32) -> Value {
    assert_eq!(seen.code, Some(code), "{}\n{}", seen.stdout, seen.stderr);
    serde_json::from_str(&seen.stdout).unwrap()
}

/// A verify step may be called as an assertion is; it says nothing of the assertion.
#[test]
fn a_step_named_like_an_assertion_does_not_hide_it() {
    let suite = Suite::new("  - reply: {text: done}\n", &[]);
    let step = json!({"id": "toolsUsed", "script": {"inline": "exit 0"}});
    suite.task("idle", &json!({"verify": [step]}));
    let used = json!([{"server": "fixture", "tool": "add"}]);
    suite.eval(&json!({}), &json!({"assertions": {"toolsUsed": used}}));
    let all = document(&suite.check(&["-o", "json"]).run(), 1);
    let entry = &all["results"][0];
    assert_eq!(entry["allAssertionsPassed"], false);
    assert_eq!(entry["assertionResults"]["toolsUsed"]["passed"], false);
    assert_eq!(entry["proctor"]["outcome"], "failed");
    // The step passed, and only the assertion stands in the way.
    assert_eq!(entry["taskPassed"], true);
    let kinds: Vec<&Value> = entry["proctor"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["kind"])
        .collect();
    assert_eq!(kinds, ["assertion", "step"]);
    let told = suite.check(&[]).run();
    assert!(told.stdout.contains("toolsUsed: "), "{}", told.stdout);
    assert!(
        !told.stdout.contains("toolsUsed (script)"),
        "{}",
        told.stdout
    );
}

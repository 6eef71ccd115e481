//! What a run will cost: estimates from earlier runs, and the runs that they keep from starting.

use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 900, output: 100}}
  - reply: {text: done, usage: {input: 900, output: 100}}
";

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("one", &json!({}));
    // A dollar for a thousand tokens: two dollars for each trial.
    let prices = json!({"prices": {"scripted:model.yaml": {"input": 1000, "output": 1000}}});
    suite.write("prices.yaml", &prices.to_string());
    suite
}

/// Runs `proctor` in the folder of the suite, with its own `.proctor/runs`.
fn proctor(suite: &SuiteFixture, words: &[&str]) -> Output {
    let mut command = Command::new(proctor_e2e::proctor());
    command.args(words).current_dir(suite.folder());
    command.output().unwrap()
}

#[track_caller]
fn check(suite: &SuiteFixture, words: &[&str], code: i32) -> String {
    let words = [&["check", "eval.yaml", "--prices", "prices.yaml"], words].concat();
    let output = proctor(suite, &words);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr
}

#[test]
fn an_estimate_comes_from_earlier_runs_of_the_same_cases() {
    let suite = suite();
    let first = check(&suite, &[], 0);
    assert!(
        first.starts_with("1 trial; estimate: unknown: no earlier run of 1 case × agent pair\n"),
        "{first}"
    );
    let second = check(&suite, &["-n", "5"], 0);
    let line = second.lines().next().unwrap();
    assert!(
        line.starts_with("5 trials; estimate: 10 model calls, 10,000 tokens, $10.00, "),
        "{line}"
    );
    assert!(line.ends_with("from 1 earlier run"), "{line}");
    let listed = proctor(
        &suite,
        &["list", "eval.yaml", "--cost", "-n", "2", "-o", "json"],
    );
    let json: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(
        json["estimate"]["costUsd"],
        json!({"low": 4.0, "high": 4.0})
    );
    assert_eq!(json["estimate"]["runs"], 2);
    let listed = proctor(&suite, &["list", "eval.yaml", "--cost"]);
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(
        text.contains("estimate: 2 model calls, 2,000 tokens, $2.00"),
        "{text}"
    );
    // Another case has no earlier run, and a changed one neither.
    suite.task("two", &json!({}));
    let part = check(&suite, &[], 0);
    assert!(part.contains("at least $2.00"), "{part}");
    assert!(
        part.contains("no earlier run of 1 of 2 case × agent pairs"),
        "{part}"
    );
    suite.task("one", &json!({"prompt": {"inline": "changed"}}));
    suite.task("two", &json!({"prompt": {"inline": "changed"}}));
    let changed = check(&suite, &["-q"], 0);
    assert!(!changed.contains("estimate"), "{changed}");
    let listed = proctor(
        &suite,
        &["list", "eval.yaml", "--cost", "-n", "2", "-o", "json"],
    );
    let json: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(json["estimate"]["runs"], 1);
}

#[test]
fn a_dear_or_unknown_estimate_refuses_to_start() {
    let suite = suite();
    let runs = || std::fs::read_dir(suite.path(".proctor/runs")).map_or(0, Iterator::count);
    let unknown = check(&suite, &["--max-estimate-usd", "100"], 2);
    assert!(unknown.contains("the cost is unknown"), "{unknown}");
    assert!(unknown.contains("--budget-usd"), "{unknown}");
    assert_eq!(runs(), 0);
    check(&suite, &[], 0);
    check(&suite, &["--max-estimate-usd", "2.01"], 0);
    let dear = check(&suite, &["-n", "2", "--max-estimate-usd", "3.99"], 2);
    assert!(dear.contains("the run may cost $4.00"), "{dear}");
    assert_eq!(runs(), 2);
    // Over several suites together.
    let words = ["check", ".", "--max-estimate-usd", "1.99"];
    assert_eq!(proctor(&suite, &words).status.code(), Some(2));
    assert_eq!(runs(), 2);
}

#[test]
fn a_price_that_is_unknown_keeps_the_cost_unknown() {
    let suite = suite();
    // The agent file names a model of which no price is known, behind a closed port.
    let words = [
        "check",
        "eval.yaml",
        "--model",
        "openai:unheard-of",
        "--max-estimate-usd",
        "1",
    ];
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command
        .args(words)
        .env("OPENAI_API_KEY", "key-for-a-test")
        .current_dir(suite.folder())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("the cost is unknown"), "{stderr}");
}

//! A run that is replayed: the same verdicts and calls, and no model asked.

use std::path::Path;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// Calls `echo` in one task, fails another; a judge looks at both.
const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 100, output: 7}}
  - reply: {text: all done}
";

const JUDGE: &str = r"
kind: Script
rules:
  - reply: {calls: [{tool: verdict, arguments: {reason: it says so, evidence: [all done], verdict: pass}}]}
";

fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    suite.write("judge.yaml", JUDGE);
    let judge = json!({"ref": {"type": "builtin.llm-agent", "model": "scripted:judge.yaml"}});
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(
        &json!({"llmJudge": judge}),
        &json!({"assertions": assertions}),
    );
    for task in ["good", "bad"] {
        let verify = json!({"verify": [{"llmJudge": {"contains": "all done"}}]});
        suite.task(task, &verify);
    }
    suite
}

/// Every trial, without what differs from run to run.
fn verdicts(stdout: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(stdout).expect("the result is JSON");
    let results = document["results"].as_array().expect("a list");
    let one = |trial: &Value| {
        json!({
            "task": trial["taskName"],
            "passed": trial["taskPassed"],
            "outcome": trial["proctor"]["outcome"],
            "reason": trial["proctor"]["reason"],
            "checks": trial["proctor"]["checks"].as_array().map(|checks| {
                // Numbers of events are others: a reply that is replayed says so.
                checks.iter().map(|check| json!([check["check"], check["verdict"], check["reason"], check["notes"]])).collect::<Vec<_>>()
            }),
            "calls": trial["callHistory"]["ToolCalls"].as_array().map(|calls| {
                calls.iter().map(|call| json!([call["name"], call["request"], call["result"]])).collect::<Vec<_>>()
            }),
        })
    };
    results.iter().map(one).collect()
}

fn replayed(run: &Path, words: &[&str]) -> proctor_e2e::session::SessionOutcome {
    let run = run.display().to_string();
    let mut all = vec!["check", "--replay", &run, "-o", "json"];
    all.extend(words);
    proctor_e2e::session::Session::new(&all).run()
}

#[test]
fn a_run_replays_to_the_same_verdicts_and_calls_without_its_models() {
    let suite = suite();
    let first = suite.check(&["-o", "json", "-n", "2"]).run();
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    // What the models said is in the record, and nowhere else.
    suite.write(
        "model.yaml",
        "kind: Script\nrules: [{reply: {error: {kind: key, detail: gone}}}]\n",
    );
    suite.write(
        "judge.yaml",
        "kind: Script\nrules: [{reply: {error: {kind: key, detail: gone}}}]\n",
    );
    let again = replayed(&first.record, &["--replay-strict"]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let (then, now) = (verdicts(&first.stdout), verdicts(&again.stdout));
    assert_eq!(then.len(), 4);
    assert_eq!(then, now);
    let agent = |stdout: &str| -> Value {
        let document: Value = serde_json::from_str(stdout).expect("the result is JSON");
        document["proctor"]["usage"]["agent"].clone()
    };
    let (then, now) = (agent(&first.stdout), agent(&again.stdout));
    assert_eq!(now["replayed"].to_string(), "6");
    assert_eq!(now["drifted"].to_string(), "0");
    assert_eq!(then["replayed"].to_string(), "0");
    assert_eq!(now["tokens"].to_string(), then["tokens"].to_string());
}

#[test]
fn what_was_asked_and_the_record_lacks_is_said() {
    let suite = suite();
    let first = suite.check(&["-o", "json"]).run();
    // A task that was not there, and one whose prompt is another.
    suite.task("new", &json!({}));
    suite.task("good", &json!({"prompt": {"inline": "good, but other"}}));
    let eval = suite.path("eval.yaml").display().to_string();
    let again = replayed(&first.record, &[&eval]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let lacks = "the record has no finished trial of this case by this agent";
    assert!(again.stderr.contains(lacks), "{}", again.stderr);
    let document: Value = serde_json::from_str(&again.stdout).expect("the result is JSON");
    assert_eq!(document["proctor"]["trials"]["errored"], 1);
    assert_eq!(
        document["proctor"]["usage"]["agent"]["drifted"], 2,
        "two turns of one trial"
    );
    let strict = replayed(&first.record, &[&eval, "--replay-strict"]);
    let changed = "the request differs from the recorded one";
    assert!(strict.stderr.contains(changed), "{}", strict.stderr);
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = replayed(folder.path(), &[]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(seen.stderr.contains("run.jsonl"), "{}", seen.stderr);
}

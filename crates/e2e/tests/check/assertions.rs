//! Every kind of assertion on calls that were really made: it passes, it fails with a reason that helps, and where
//! the record can't tell, it is unknown.
//!
//! Every row of a table is a task of its own. Its main type is [`Row`].

mod failing;
mod passing;
mod unknown;

use std::time::Duration;

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// What the agent does, by the task's prompt.
const RULES: &str = r"
  - when: {prompt: '^work$', results: 0}
    reply:
      calls:
        - {tool: echo, arguments: {text: hi}}
        - {tool: add, arguments: {a: 2, b: 3}}
        - {tool: fail, arguments: {}}
        - {tool: read_resource, arguments: {server: fixture, uri: 'fixture://text'}}
        - {tool: get_prompt, arguments: {server: fixture, name: greet, arguments: {who: ada}}}
        - {tool: echo, arguments: {text: again}}
        - {tool: sleep, arguments: {ms: 60}}
  - when: {prompt: '^twice$', results: 0}
    reply:
      calls:
        - {tool: add, arguments: {a: 1, b: 2}}
        - {tool: echo, arguments: {text: hi}}
        - {tool: add, arguments: {b: 2.0, a: 1}}
  - when: {prompt: '^huge$', results: 0}
    reply:
      calls:
        - {tool: big, arguments: {bytes: 34000000}}
  # Together more than is kept in memory for checks: what comes after is not read.
  - when: {prompt: '^much$', results: 0}
    reply:
      calls:
        - {tool: big, arguments: {bytes: 33000000}}
        - {tool: big, arguments: {bytes: 33000001}}
  - when: {prompt: '^much$', results: 2}
    reply:
      calls:
        - {tool: echo, arguments: {text: 'a{result}{result}{result}'}}
        - {tool: echo, arguments: {text: 'b{result}{result}{result}'}}
  - reply: {text: done}
";

/// A task of its own: what is done, what must hold, and the reason if it does not.
#[derive(Clone)]
struct Row {
    scene: &'static str,
    assertions: Value,
    reason: &'static str,
}

fn row(scene: &'static str, assertions: Value, reason: &'static str) -> Row {
    Row {
        scene,
        assertions,
        reason,
    }
}

fn passes(scene: &'static str, assertions: Value) -> Row {
    row(scene, assertions, "")
}

/// Runs a suite with a task for each row. The trials are in the order of the rows.
fn run(rows: &[Row]) -> (SessionOutcome, Vec<Value>) {
    let suite = SuiteFixture::new(RULES, &[]);
    let mut sets = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let name = format!("row-{number:02}");
        suite.task(&name, &json!({"prompt": {"inline": row.scene}}));
        let path = format!("tasks/{name}.yaml");
        sets.push(json!({"path": path, "assertions": row.assertions}));
    }
    suite.eval(&json!({"taskSets": sets}), &json!({}));
    let session = suite.check(&["--jobs", "2", "-o", "json"]);
    let seen = session.within(Duration::from_mins(3)).run();
    let result: Value = serde_json::from_str(&seen.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", seen.stdout, seen.stderr));
    let trials = result["results"].as_array().unwrap().clone();
    assert_eq!(trials.len(), rows.len());
    for (number, trial) in trials.iter().enumerate() {
        assert_eq!(trial["taskName"], format!("row-{number:02}"));
    }
    (seen, trials)
}

/// What a trial says of a check: its verdict and its reason, in which calls are numbered from 1. Its evidence must be
/// calls that were made.
pub(crate) fn told(trial: &Value, check: &str) -> (String, String) {
    let lists = ["ToolCalls", "ResourceReads", "PromptGets"];
    let calls = lists.map(|list| trial["callHistory"][list].as_array().unwrap());
    let seq = |call: &Value| call["proctor"]["seq"].as_u64().unwrap();
    let mut made: Vec<u64> = calls.into_iter().flatten().map(seq).collect();
    made.sort_unstable();
    let mut checks = trial["proctor"]["checks"].as_array().unwrap().iter();
    let found = checks.find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{check} is not in {trial}"));
    for evidence in found["evidence"].as_array().unwrap() {
        assert!(made.contains(&evidence.as_u64().unwrap()), "{found}");
    }
    let mut reason = found["reason"].as_str().unwrap_or_default().to_owned();
    for (at, seq) in made.iter().enumerate().rev() {
        reason = reason.replace(&format!("#{seq}"), &format!("#call{}", at + 1));
    }
    let verdict = found["verdict"].as_str().unwrap().to_owned();
    (verdict, reason.replace("#call", "#"))
}

/// Runs the rows, all of which must come to this. The reason of each check must hold the row's.
fn all(rows: &[Row], code: i32, outcome: &str, verdict: &str) {
    let (seen, trials) = run(rows);
    assert_eq!(seen.code, Some(code), "{}", seen.stderr);
    for (row, trial) in rows.iter().zip(&trials) {
        let about = &row.assertions;
        assert_eq!(trial["proctor"]["outcome"], outcome, "{about}: {trial}");
        assert_eq!(trial["allAssertionsPassed"], verdict == "pass", "{about}");
        for check in row.assertions.as_object().unwrap().keys() {
            let (found, reason) = told(trial, check);
            assert_eq!(found, verdict, "{about}: {reason}");
            let fits = match row.reason {
                "" => reason.is_empty(),
                expected => reason.contains(expected),
            };
            assert!(fits, "{about}: {reason}");
            let result = &trial["assertionResults"][check];
            assert_eq!(result["passed"], verdict == "pass", "{about}: {result}");
            assert_eq!(result["reason"].is_null(), verdict == "pass", "{about}");
        }
    }
}

/// An entry for a tool of the fixture.
fn tool(name: &str, more: Value) -> Value {
    let mut entry = more;
    entry["server"] = json!("fixture");
    entry["tool"] = json!(name);
    entry
}

fn plain(name: &str) -> Value {
    tool(name, json!({}))
}

fn calls(mode: &str, list: &[Value]) -> Value {
    json!({"calls": {"mode": mode, "list": list}})
}

fn order(entries: &[(&str, &str)]) -> Value {
    let entries = entries
        .iter()
        .map(|(kind, name)| json!({"type": kind, "server": "fixture", "name": name}));
    json!({"callOrder": entries.collect::<Vec<_>>()})
}

fn exactly_the_work() -> [Value; 5] {
    ["echo", "add", "fail", "echo", "sleep"].map(plain)
}

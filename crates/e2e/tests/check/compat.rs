//! What public suites are made of: each construct loads, and where it can, runs. And the document that
//! scripts read, key by key.

mod constructs;
mod keys;

use std::process::Command;

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// The document of a run, which has ended with this code.
fn document(seen: &SessionOutcome, code: i32) -> Value {
    assert_eq!(seen.code, Some(code), "{}\n{}", seen.stdout, seen.stderr);
    serde_json::from_str(&seen.stdout).unwrap()
}

/// What `proctor validate` ends with, and what it says.
fn validated(eval: &str, env: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command
        .args(["validate", eval])
        .envs(env.iter().copied())
        .output();
    let output = output.unwrap();
    let told = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&told).into_owned(),
    )
}

/// A verify step may be called as an assertion is; it says nothing of the assertion.
#[test]
fn a_step_named_like_an_assertion_does_not_hide_it() {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    let step = json!({"id": "toolsUsed", "script": {"inline": "test -d ."}});
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
    let place = format!("toolsUsed ({}:1): ", suite.path("eval.yaml").display());
    assert!(told.stdout.contains(&place), "{}", told.stdout);
    assert!(
        !told.stdout.contains("toolsUsed (script"),
        "{}",
        told.stdout
    );
}

/// The others are run, and the trial of that task says what it needs.
fn fails_alone(requires: &Value, problem: &str, reason: &str) {
    let suite = SuiteFixture::new(
        "  - when: {results: 0}\n    reply: {calls: [{tool: echo, arguments: {text: hi}}]}\n  - reply: {text: done}\n",
        &[],
    );
    suite.task("plain", &json!({}));
    let mark = suite.path("mark").display().to_string();
    let script = json!({"script": {"inline": format!("touch {mark}")}});
    suite.task(
        "needy",
        &json!({
            "requires": [requires],
            "setup": [script], "cleanup": [script],
            "verify": [{"k8s.ready": {}}],
        }),
    );
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    let eval = suite.path("eval.yaml").display().to_string();
    let (code, told) = validated(&eval, &[]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains(problem), "{told}");
    let all = document(&suite.check(&["-o", "json"]).run(), 3);
    let ends: Vec<Value> = all["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            json!([
                entry["taskName"],
                entry["proctor"]["outcome"],
                entry["proctor"]["blame"],
                entry["proctor"]["reason"]
            ])
        })
        .collect();
    assert_eq!(
        ends,
        [
            json!(["needy", "errored", "suite", reason]),
            json!(["plain", "passed", null, null]),
        ]
    );
    assert!(
        !suite.path("mark").exists(),
        "neither setup nor cleanup ran"
    );
}

#[test]
fn a_task_that_needs_an_undeclared_extension_fails_alone() {
    fails_alone(
        &json!({"extension": "kubernetes", "as": "k8s"}),
        "error: task names unknown extension `kubernetes`",
        "the task needs the extension `kubernetes`, which the suite does not declare",
    );
}

#[test]
fn a_task_that_needs_an_unknown_server_fails_alone() {
    fails_alone(
        &json!({"mcpServer": "kubernetes", "as": "k8s"}),
        "error: task names unknown server `kubernetes`",
        "the task needs the server `kubernetes`, which the suite does not declare",
    );
}

/// Checks that a suite is refused with this message.
#[track_caller]
fn is_refused(suite: &SuiteFixture, says: &str) {
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}\n{}", seen.stdout, seen.stderr);
    assert!(
        seen.stderr.contains(says),
        "`{says}` is not in:\n{}",
        seen.stderr
    );
}

/// What is left as it is would end up in the name of a file.
#[test]
fn a_template_that_is_not_filled_in_is_an_error_at_load() {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    let verify = json!([{"script": {"inline": "exit 0"}}]);
    for (prompt, says) in [
        (
            "see {steps.nothing.stdout}",
            "no earlier step has the id or type `nothing`",
        ),
        (
            "see {steps.verify_0.stdout}",
            "no earlier step has the id or type `verify_0`",
        ),
        ("see {random.name}", "unknown template `{random.name}`"),
        (
            "see {agent.output}",
            "`{agent.output}` is not available before the agent runs",
        ),
        (
            "see {agent.prompt}",
            "the prompt can't contain itself (`{agent.prompt}`)",
        ),
        (
            "see {env.NOT_SET_ANYWHERE}",
            "the environment variable `NOT_SET_ANYWHERE` is not set",
        ),
    ] {
        suite.task(
            "one",
            &json!({"prompt": {"inline": prompt}, "verify": verify}),
        );
        is_refused(&suite, says);
    }
}

#[test]
fn a_template_in_an_mcp_config_is_an_error_at_load() {
    let suite = SuiteFixture::new("  - reply: {text: done}\n", &[]);
    suite.task(
        "one",
        &json!({"verify": [{"script": {"inline": "exit 0"}}]}),
    );
    let fixture = proctor_e2e::fixture();
    for (server, says) in [
        (
            json!({"command": fixture, "args": ["--log", "{agent.prompt}.log"]}),
            "`{agent.prompt}` is not expanded",
        ),
        (
            json!({"command": fixture, "env": {"A": "{steps.a.b}"}}),
            "`{steps.a.b}` is not expanded",
        ),
        (
            json!({"url": "http://h:{row.port}/mcp"}),
            "`{row.port}` is not expanded",
        ),
        (
            json!({"url": "http://h/mcp", "headers": {"A": "{env.TOKEN}"}}),
            "write `${TOKEN}`",
        ),
        (
            json!({"command": "{env.BIN}/x"}),
            "`{env.BIN}` is not expanded",
        ),
    ] {
        suite.write(
            "mcp.json",
            &json!({"mcpServers": {"fixture": server}}).to_string(),
        );
        is_refused(&suite, says);
    }
}

//! Selection rows with external agents: Proctor answers their first call in place of the server.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{EventKind, Outcome};
use serde_json::{Value, json};

use crate::cli::{path_with, run, scripted};

const RULES: &str = r#"
  - {when: {results: 0, prompt: "say"}, reply: {calls: [{tool: echo, arguments: {text: hello}}]}}
  - {when: {results: 0, prompt: "both"}, reply: {calls: [{tool: echo, arguments: {text: hi}}, {tool: add, arguments: {a: 1, b: 2}}]}}
  - {when: {results: 0, prompt: "invent"}, reply: {calls: [{tool: blame, arguments: {}}]}}
  - {reply: {text: "just prose"}}
"#;

/// A suite with one row on the fixture server, which logs every message.
fn suite(agent: &Value, row: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(RULES, &json!({}));
    let log = suite.path("wire.jsonl").display().to_string();
    let server = json!({"command": proctor_e2e::fixture(), "args": ["--log", log]});
    suite.write(
        "mcp.json",
        &json!({"mcpServers": {"ev": server}}).to_string(),
    );
    let sets = json!([{"selection": "rows.yaml", "server": "ev"}]);
    suite.eval(&json!({"agent": agent, "taskSets": sets}), &json!({}));
    let file = json!({"kind": "Selection", "metadata": {"name": "r"}, "spec": {"rows": [row]}});
    suite.write("rows.yaml", &file.to_string());
    suite
}

fn outcome(seen: &SessionOutcome) -> Outcome {
    match seen.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => ended.outcome,
        other => panic!("no end: {other:?}\n{}\n{}", seen.stdout, seen.stderr),
    }
}

/// Each row has its outcome, the agent's call is withheld, and the server sees no call.
fn chooses(agent: &str) {
    let (echo, add, none, both) = (
        json!("echo"),
        json!("add"),
        json!("none"),
        json!(["add", "echo"]),
    );
    for (prompt, expect, expected, withheld) in [
        ("say hello", &echo, Outcome::Passed, 1),
        ("say it again", &add, Outcome::Failed, 1),
        ("say nothing", &none, Outcome::Failed, 1),
        ("both are right", &both, Outcome::Passed, 2),
        ("both are too many", &echo, Outcome::Failed, 2),
        ("joke", &none, Outcome::Passed, 0),
        ("joke again", &echo, Outcome::Failed, 0),
        ("invent", &echo, Outcome::Failed, 0),
    ] {
        let suite = suite(
            &scripted(agent),
            &json!({"prompt": prompt, "expect": expect}),
        );
        let seen = run(suite.check(&[]), &path_with(agent));
        let place = format!("{agent} {prompt}\n{}\n{}", seen.stdout, seen.stderr);
        assert_eq!(outcome(&seen), expected, "{place}");
        let is_withheld = |event: &&proctor_record::event::Event| {
            matches!(event.event, EventKind::CallWithheld(_))
        };
        let count = seen.events.iter().filter(is_withheld).count();
        assert_eq!(count, withheld, "{place}");
        let log = std::fs::read_to_string(suite.path("wire.jsonl")).unwrap();
        assert!(log.contains("tools/list"), "{place}");
        assert!(!log.contains("tools/call"), "{place}");
    }
}

#[test]
fn claude_code_chooses_and_nothing_is_executed() {
    chooses("claude-code");
}

#[test]
fn goose_chooses_over_acp_and_nothing_is_executed() {
    chooses("goose");
}

#[test]
fn a_conversation_is_refused() {
    let messages = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]);
    let suite = suite(
        &scripted("claude-code"),
        &json!({"messages": messages, "expect": "echo"}),
    );
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("it takes one prompt"),
        "{}",
        seen.stderr
    );
}

//! Every exit code, once, through the binary.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use rustix::process::Signal;
use serde_json::json;

/// A model that calls `echo` where the task says so, and sleeps where it says that.
const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - when: {prompt: slow, results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - when: {prompt: outage}
    reply: {error: {kind: key, detail: no such key}}
  - reply: {text: done}
";

fn suite(tasks: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    for task in tasks {
        suite.task(task, &json!({}));
    }
    suite
}

fn expect(seen: &SessionOutcome, code: i32) {
    assert_eq!(seen.code, Some(code), "{}\n{}", seen.stdout, seen.stderr);
}

#[test]
fn zero_if_every_trial_passed() {
    expect(&suite(&["good"]).check(&["-n", "2"]).run(), 0);
}

#[test]
fn one_if_a_trial_failed() {
    let seen = suite(&["good", "bad"]).check(&[]).run();
    expect(&seen, 1);
    assert!(
        seen.stdout.contains("`echo` was never called"),
        "{}",
        seen.stdout
    );
}

#[test]
fn one_if_a_trial_failed_whatever_others_would_have_been() {
    expect(&suite(&["outage", "bad"]).check(&[]).run(), 1);
}

#[test]
fn two_if_the_configuration_is_wrong_and_nothing_is_started() {
    let suite = suite(&["good"]);
    suite.write("model.yaml", "kind: Script\nrules: []\n");
    let seen = suite.check(&[]).run();
    expect(&seen, 2);
    assert!(!seen.record.exists());
}

#[test]
fn two_if_a_key_is_missing_and_nothing_is_started() {
    let suite = suite(&["good"]);
    let seen = suite.check(&["--model", "openai:gpt-5"]).run();
    expect(&seen, 2);
    assert!(seen.stderr.contains("OPENAI_API_KEY"), "{}", seen.stderr);
    assert!(!seen.record.exists());
}

#[test]
fn three_if_it_can_t_be_told() {
    let seen = suite(&["good", "outage"]).check(&[]).run();
    expect(&seen, 3);
    assert!(seen.stdout.contains("no such key"), "{}", seen.stdout);
}

#[test]
fn three_if_a_server_does_not_come_up_and_no_trial_is_started() {
    let suite = SuiteFixture::on(RULES, &json!({"gone": {"command": "false"}}));
    let assertions = json!({"minToolCalls": 1});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("good", &json!({}));
    let seen = suite.check(&[]).run();
    expect(&seen, 3);
    assert!(
        seen.stderr.contains("`gone` did not come up"),
        "{}",
        seen.stderr
    );
    assert!(seen.events.is_empty());
}

#[test]
fn four_if_nothing_is_selected() {
    let seen = suite(&["good"]).check(&["-r", "nothing"]).run();
    expect(&seen, 4);
    assert!(!seen.record.exists());
}

#[test]
fn a_hundred_and_thirty_if_interrupted() {
    let suite = suite(&["slow"]);
    let running = suite.check(&[]).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    expect(&running.finish(), 130);
}

/// Only what forbids something is asked for, and an agent that does nothing keeps to it.
fn forbidding(rules: &str) -> SuiteFixture {
    let suite = SuiteFixture::new(rules, &[]);
    let assertions = json!({
        "toolsNotUsed": [{"server": "fixture", "tool": "fail"}],
        "maxToolCalls": 5,
        "noDuplicateCalls": true,
    });
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("x", &json!({}));
    suite
}

#[test]
fn one_if_the_model_says_nothing_and_calls_nothing() {
    for reply in ["{text: ''}", "{text: \" \\n\\u200b\"}", "{thinking: hm}"] {
        let seen = forbidding(&format!("  - reply: {reply}\n"))
            .check(&[])
            .run();
        expect(&seen, 1);
        assert!(
            seen.stdout
                .contains("the agent gave no answer and called nothing"),
            "{reply}: {}",
            seen.stdout
        );
        assert!(seen.stdout.contains("blame: agent"), "{}", seen.stdout);
    }
    let worked = "  - {when: {results: 0}, reply: {calls: [{tool: echo, arguments: {text: hi}}]}}\n  - reply: {text: ''}\n";
    expect(&forbidding(worked).check(&[]).run(), 0);
    expect(
        &forbidding("  - reply: {text: I won't.}\n").check(&[]).run(),
        0,
    );
}

#[test]
fn two_if_a_check_has_a_key_that_is_not_known() {
    let suite = suite(&["good"]);
    let entry = json!({"server": "fixture", "tool": "echo", "args": {"text": "never"}});
    suite.eval(&json!({}), &json!({"assertions": {"toolsUsed": [entry]}}));
    let seen = suite.check(&[]).run();
    expect(&seen, 2);
    assert!(
        seen.stderr.contains("unknown key `args`"),
        "{}",
        seen.stderr
    );
    assert!(
        seen.stderr.contains("did you mean `arguments`?"),
        "{}",
        seen.stderr
    );
    assert!(!seen.record.exists());
}

#[test]
fn other_unknown_keys_are_in_the_json_and_refused_if_strict() {
    let suite = suite(&[]);
    suite.task("good", &json!({"limit": {"timeout": "1m"}}));
    let seen = suite.check(&["-o", "json"]).run();
    expect(&seen, 0);
    let result: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    let warning = &result["proctor"]["warnings"][0];
    assert_eq!(warning["code"], "unknown-key");
    assert_eq!(warning["message"], "unknown key `limit`");
    assert_eq!(warning["hint"], "did you mean `limits`?");
    assert_eq!(warning["line"], 1);
    let seen = suite.check(&["--strict"]).run();
    expect(&seen, 2);
    assert!(
        seen.stderr.contains("error: unknown key `limit`"),
        "{}",
        seen.stderr
    );
}

#[test]
fn three_if_the_criterion_of_the_judge_turns_out_to_be_empty() {
    let suite = suite(&[]);
    let gullible = "kind: Script\nrules:\n  - reply: {calls: [{tool: verdict, arguments: {reason: fine, evidence: [done], verdict: pass}}]}\n";
    suite.write("judge.yaml", gullible);
    let judge = json!({"ref": {"type": "builtin.llm-agent", "model": "scripted:judge.yaml"}});
    suite.eval(&json!({"llmJudge": judge}), &json!({}));
    let expected = json!([{"llmJudge": {"contains": "{steps.setup_0.stdout}"}}]);
    let setup = json!([{"script": {"inline": "true"}}]);
    suite.task("good", &json!({"setup": setup, "verify": expected}));
    let seen = suite.check(&[]).run();
    expect(&seen, 3);
    assert!(
        seen.stdout.contains("the judge's criterion is empty"),
        "{}",
        seen.stdout
    );
}

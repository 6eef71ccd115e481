//! Who is blamed for a trial that did not pass: only who the record proves to be at fault.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::{SuiteFixture, has_called, with_enough_time};
use proctor_record::event::{Blame, EventKind, Outcome, TrialEnded};
use serde_json::{Value, json};

/// Calls the tool that the task is named after, and is done.
const RULES: &str = r"
  - when: {prompt: echo, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - when: {prompt: fail, results: 0}
    reply: {calls: [{tool: fail, arguments: {}}]}
  - when: {prompt: invented, results: 0}
    reply: {calls: [{tool: make_coffee, arguments: {}}]}
  - reply: {text: done}
";

fn suite(task: &str, server: &[&str], assertions: &Value, spec: &Value) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, server);
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task(task, spec);
    suite
}

#[track_caller]
fn expect(seen: &SessionOutcome, outcome: Outcome, blame: Option<Blame>) -> TrialEnded {
    let Some(EventKind::TrialEnded(ended)) = seen.events.last().map(|event| &event.event) else {
        panic!("no end\n{}\n{}", seen.stdout, seen.stderr)
    };
    let about = format!("{ended:?}\n{}\n{}", seen.stdout, seen.stderr);
    assert_eq!((ended.outcome, ended.blame), (outcome, blame), "{about}");
    ended.clone()
}

/// What can't be reached with one call.
fn many() -> Value {
    json!({"minToolCalls": 5})
}

#[test]
fn the_agent_is_blamed_only_if_all_its_calls_were_answered_without_error() {
    let check = |task: &str, server: &[&str], blame: Option<Blame>| {
        let seen = suite(task, server, &many(), &json!({})).check(&[]).run();
        expect(&seen, Outcome::Failed, blame);
        assert_eq!(
            seen.stdout.contains("cause unclear"),
            blame.is_none(),
            "{}",
            seen.stdout
        );
    };
    check("echo", &[], Some(Blame::Agent));
    check("invented", &[], Some(Blame::Agent));
    check("fail", &[], None);
    check(
        "echo",
        &["--mode", "answer-error=-32603"],
        Some(Blame::Server),
    );
    check("echo", &["--mode", "answer-error=-32000"], None);
    check("echo", &["--mode", "answer-error=-32602"], None);
}

#[test]
fn calls_in_error_and_invented_tools_are_evidence() {
    let json = |task: &str, server: &[&str]| {
        let words = ["-o", "json"];
        let seen = suite(task, server, &many(), &json!({})).check(&words).run();
        let result: Value = serde_json::from_str(&seen.stdout).unwrap();
        result["results"][0]["proctor"].clone()
    };
    let trial = json("echo", &["--mode", "answer-error=-32000"]);
    assert_eq!(trial["blame"], Value::Null);
    assert!(trial.as_object().unwrap().contains_key("blame"));
    assert_eq!(trial["callsInError"][0]["name"], "echo");
    let error = trial["callsInError"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("error -32000"), "{error}");
    let trial = json("invented", &[]);
    assert_eq!(trial["inventedTools"], json!(["make_coffee"]));
    assert_eq!(trial["callsInError"], json!([]));

    let other = json!({"toolsUsed": [{"server": "fixture", "tool": "add"}]});
    let seen = suite("fail", &[], &other, &json!({})).check(&[]).run();
    assert!(seen.stdout.contains("failed calls:"), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("tools/call fixture.fail"),
        "{}",
        seen.stdout
    );
    let seen = suite("invented", &[], &many(), &json!({})).check(&[]).run();
    let expected = "the model called tools that don't exist: `make_coffee`";
    assert!(seen.stdout.contains(expected), "{}", seen.stdout);
}

#[test]
fn a_verify_step_that_names_a_tool_that_does_not_exist_is_the_suites_fault() {
    let requires = json!([{"mcpServer": "fixture"}]);
    for expected in [json!({}), json!({"expect": {"isError": true}})] {
        let mut call = json!({"args": {"text": "hi"}});
        for (key, value) in expected.as_object().unwrap() {
            call[key] = value.clone();
        }
        let verify = json!([{"fixture.ecko": call}]);
        let spec = json!({"requires": requires, "verify": verify});
        let seen = suite("echo", &[], &json!({"minToolCalls": 1}), &spec);
        let seen = seen.check(&[]).run();
        let ended = expect(&seen, Outcome::Errored, Some(Blame::Suite));
        let reason = ended.reason.unwrap();
        let expected = "the server `fixture` has no tool `ecko`; did you mean `echo`?";
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn a_call_that_timed_out_is_shown_with_its_time_whatever_the_outcome() {
    let server = ["--mode", "never-answer"];
    let one = json!({"minToolCalls": 1});
    let suite = suite("echo", &server, &one, &json!({}));
    let within = |limit: &str| suite.check(&["--call-timeout", limit]).run();
    let (_, seen) = with_enough_time(within, has_called);
    let ended = expect(&seen, Outcome::Failed, Some(Blame::Server));
    let reason = ended.reason.unwrap();
    assert!(reason.contains("`echo` got no response within"), "{reason}");
    assert!(seen.stdout.contains("1× unanswered"), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("`echo` got no answer in"),
        "{}",
        seen.stdout
    );
}

#[test]
fn of_noise_the_first_line_that_is_not_blank_is_shown() {
    let server = ["--mode", "blank-lines", "--mode", "log-noise"];
    let one = json!({"minToolCalls": 1});
    let seen = suite("echo", &server, &one, &json!({})).check(&[]).run();
    expect(&seen, Outcome::Passed, None);
    let line = seen.stdout.lines().find(|line| line.contains("noise"));
    let line = line.unwrap_or_default();
    assert!(
        !line.contains("blank") && !line.is_empty(),
        "{}",
        seen.stdout
    );
}

#[test]
fn a_model_that_failed_until_the_time_was_over_is_to_blame() {
    // Waits between attempts are no working time, so that two attempts fit into the limit.
    let within = |(delay, limit): (&str, &str)| {
        let rules = format!(
            "  - reply: {{error: {{kind: unavailable, detail: no, retryAfter: 1ms}}, delay: {delay}}}\n"
        );
        let suite = SuiteFixture::new(&rules, &[]);
        suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
        suite.task("echo", &json!({"limits": {"timeout": limit}}));
        suite.check(&[]).run()
    };
    let has_failed = |seen: &SessionOutcome| {
        let mut events = seen.events.iter();
        events.any(|event| matches!(&event.event, EventKind::ModelFailed(_)))
    };
    let mut limit = "2s";
    let mut seen = within(("800ms", limit));
    if !has_failed(&seen) {
        // A busy machine needs longer to start the server.
        limit = "30s";
        seen = within(("12s", limit));
    }
    let ended = expect(&seen, Outcome::Errored, Some(Blame::Infra));
    let reason = ended.reason.unwrap();
    let expected = format!("the trial timed out after {limit}");
    assert!(reason.starts_with(&expected), "{reason}");
    assert!(reason.contains("and never replied"), "{reason}");
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
}

#[test]
fn the_last_words_of_a_server_are_shown_once() {
    let rules = "  - reply: {calls: [{tool: echo, arguments: {text: hi}}]}\n";
    let modes = ["--mode", "exit-in-call=9", "--mode", "stderr=no state file"];
    let suite = SuiteFixture::new(rules, &modes);
    let used = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": used}));
    suite.task("dies", &json!({}));
    let output = suite.proctor(&["check", "eval.yaml", "-q", "--record", "run"]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(report.matches("no state file").count(), 1, "{report}");
    // The line that says why is not the last one.
    let summary = suite.proctor(&["result", "summary", "run"]);
    let summary = String::from_utf8(summary.stdout).unwrap();
    assert_eq!(summary.matches("no state file").count(), 1, "{summary}");
}

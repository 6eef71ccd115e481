//! What becomes of a trial whose server misbehaves.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::{SuiteFixture, has_called, with_enough_time};
use proctor_record::event::{Blame, EventKind, Outcome, TrialEnded};
use serde_json::{Value, json};

/// Calls what the task is named after, then `echo`, then is done.
const RULES: &str = r"
  - when: {prompt: echo, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - when: {prompt: sleep, results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - when: {prompt: nothing, results: 0}
    reply: {calls: [{tool: nothing, arguments: {}}]}
  - when: {results: 1}
    reply: {calls: [{tool: echo, arguments: {text: again}}]}
  - reply: {text: done}
";

fn run(
    task: &str,
    server: &[&str],
    config: &Value,
    words: &[&str],
) -> (SessionOutcome, TrialEnded) {
    let suite = SuiteFixture::new(RULES, server);
    suite.eval(config, &json!({"assertions": {"minToolCalls": 1}}));
    suite.task(task, &json!({}));
    let seen = suite.check(words).run();
    let ended = ended(&seen);
    (seen, ended)
}

fn ended(seen: &SessionOutcome) -> TrialEnded {
    match seen.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => ended.clone(),
        other => panic!("the trial has no end but {other:?}\n{}", seen.stderr),
    }
}

#[test]
fn a_server_that_dies_in_a_call_fails_the_trial_and_is_to_blame() {
    let (seen, ended) = run("echo", &["--mode", "exit-in-call"], &json!({}), &[]);
    assert_eq!(ended.outcome, Outcome::Failed, "{ended:?}");
    assert_eq!(ended.blame, Some(Blame::Server));
    assert!(ended.reason.unwrap().contains("exited with code"));
    assert_eq!(seen.code, Some(1));
}

#[test]
fn a_server_that_dies_after_its_last_answer_fails_the_trial_too() {
    let suite = SuiteFixture::new(
        "  - {when: {results: 0}, reply: {calls: [{tool: echo, arguments: {text: hi}}]}}\n  - reply: {text: done, delay: 3s}\n",
        &["--mode", "exit-between-calls"],
    );
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("echo", &json!({}));
    let seen = suite.check(&[]).run();
    let ended = ended(&seen);
    assert_eq!(ended.outcome, Outcome::Failed, "{ended:?}");
    assert_eq!(ended.blame, Some(Blame::Server));
}

#[test]
fn a_shared_server_that_makes_noise_fails_strict_trials() {
    for mode in ["banner", "log-noise", "unknown-id"] {
        let config = json!({"isolation": "run"});
        let (seen, ended) = run("echo", &["--mode", mode], &config, &["--strict"]);
        assert_eq!(seen.code, Some(1), "{mode}: {}", seen.stderr);
        assert_eq!(ended.blame, Some(Blame::Server), "{mode}");
    }
}

#[test]
fn a_model_that_refuses_or_is_cut_off_has_not_answered() {
    for (reply, why) in [
        (
            "{refuse: I may not do that.}",
            "refused to answer: I may not",
        ),
        (
            "{text: I was about to, stop: length}",
            "was cut off: I was about to",
        ),
    ] {
        let suite = SuiteFixture::new(&format!("  - reply: {reply}\n"), &[]);
        suite.eval(&json!({}), &json!({"assertions": {"maxToolCalls": 5}}));
        suite.task("any", &json!({}));
        let seen = suite.check(&[]).run();
        let ended = ended(&seen);
        assert_eq!((seen.code, ended.outcome), (Some(1), Outcome::Failed));
        assert_eq!(ended.blame, Some(Blame::Agent));
        assert!(ended.reason.unwrap().contains(why));
    }
}

#[test]
fn a_verify_script_that_crashes_says_nothing() {
    let suite = SuiteFixture::new(RULES, &[]);
    suite.task(
        "echo",
        &json!({"verify": [{"script": {"inline": "kill -SEGV $$"}}]}),
    );
    let seen = suite.check(&[]).run();
    let ended = ended(&seen);
    assert_eq!(
        (seen.code, ended.outcome),
        (Some(3), Outcome::Errored),
        "{ended:?}"
    );
    assert_eq!(ended.blame, Some(Blame::Suite));
}

#[test]
fn a_trial_that_takes_too_long_is_timed_out_and_its_server_ended() {
    let within = |limit: &str| {
        let config = json!({"defaultTaskLimits": {"timeout": limit}});
        run("sleep", &[], &config, &[]).0
    };
    let (limit, seen) = with_enough_time(within, has_called);
    let ended = ended(&seen);
    assert_eq!(ended.outcome, Outcome::TimedOut, "{ended:?}");
    let reason = format!(
        "the trial timed out after {limit}: waiting for `fixture.sleep` in the drive phase"
    );
    assert_eq!(ended.reason, Some(reason));
    assert_eq!(seen.code, Some(1));
}

#[test]
fn noise_is_tolerated_unless_strict() {
    let (seen, ended) = run("echo", &["--mode", "banner"], &json!({}), &[]);
    assert_eq!(
        (seen.code, ended.outcome),
        (Some(0), Outcome::Passed),
        "{}",
        seen.stderr
    );
    let (seen, ended) = run("echo", &["--mode", "banner"], &json!({}), &["--strict"]);
    assert_eq!((seen.code, ended.outcome), (Some(1), Outcome::Failed));
    assert_eq!(ended.blame, Some(Blame::Server));
}

#[test]
fn a_tool_that_is_not_there_is_told_to_the_model_and_work_goes_on() {
    let (seen, ended) = run("nothing", &[], &json!({}), &[]);
    assert_eq!(ended.outcome, Outcome::Passed, "{ended:?}");
    let told = seen.events.iter().any(|event| match &event.event {
        EventKind::ModelAsked(asked) => format!("{:?}", asked.request).contains("unknown tool"),
        _ => false,
    });
    assert!(told);
}

#[test]
fn a_shared_server_serves_all_trials_and_each_record_has_its_own_calls() {
    let suite = SuiteFixture::new(RULES, &[]);
    suite.eval(
        &json!({"isolation": "run"}),
        &json!({"assertions": {"calls": {"mode": "exact", "list": [
            {"server": "fixture", "tool": "echo"},
            {"server": "fixture", "tool": "echo"},
        ]}}}),
    );
    suite.task("echo", &json!({}));
    let seen = suite.check(&["-n", "10", "--jobs", "5"]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
}

#[test]
fn a_program_that_is_not_there_is_told_with_the_name_of_its_server() {
    let suite = SuiteFixture::on(RULES, &json!({"gone": {"command": "no-such-program"}}));
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("echo", &json!({}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let message = "error: the server `gone`: program `no-such-program` was not found in PATH\n";
    assert!(seen.stderr.contains(message), "{}", seen.stderr);
    assert_eq!(seen.events, []);
}

#[test]
fn if_one_server_does_not_come_up_the_others_are_ended_in_peace() {
    let fixture = proctor_e2e::fixture().display().to_string();
    // It is there for the first look, and never again.
    let shy = format!("test -e seen && exit 7; touch seen; exec '{fixture}'");
    let servers = json!({
        "fixture": {"command": fixture},
        "shy": {"command": "sh", "args": ["-c", shy]},
    });
    let suite = SuiteFixture::on(RULES, &servers);
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("echo", &json!({}));
    let seen = suite.check(&[]).run();
    let ended = ended(&seen);
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Errored, Some(Blame::Server))
    );
    let reason = ended.reason.unwrap();
    assert!(
        reason.contains("the server `shy` failed to start"),
        "{reason}"
    );
    let closed = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::ConnectionClosed(closed) => Some(closed.reason.as_str()),
        _ => None,
    });
    let mut closed: Vec<&str> = closed.collect();
    closed.sort_unstable();
    assert_eq!(closed, ["exited with code 0", "exited with code 7"]);
}

#[test]
fn a_trial_that_ends_while_its_server_starts_has_the_end_of_every_connection() {
    let fixture = proctor_e2e::fixture().display().to_string();
    // It is there for the first look, and then never answers.
    let dozy = format!("test -e seen && exec sleep 600; touch seen; exec '{fixture}'");
    let servers = json!({
        "fixture": {"command": fixture},
        "dozy": {"command": "sh", "args": ["-c", dozy]},
    });
    let suite = SuiteFixture::on(RULES, &servers);
    suite.task("echo", &json!({}));
    let within = |limit: &str| {
        let config = json!({"defaultTaskLimits": {"timeout": limit}});
        suite.eval(&config, &json!({"assertions": {"minToolCalls": 1}}));
        let _ = std::fs::remove_file(suite.path("seen"));
        suite.check(&[]).run()
    };
    let count = |seen: &SessionOutcome, is: fn(&EventKind) -> bool| {
        seen.events.iter().filter(|e| is(&e.event)).count()
    };
    let opened =
        |seen: &SessionOutcome| count(seen, |e| matches!(e, EventKind::ConnectionOpened(_)));
    let (_, seen) = with_enough_time(within, |seen| opened(seen) == 2);
    assert_eq!(ended(&seen).outcome, Outcome::TimedOut, "{}", seen.stderr);
    let opened = opened(&seen);
    let closed = count(&seen, |e| matches!(e, EventKind::ConnectionClosed(_)));
    assert_eq!((opened, closed), (2, 2));
}

#[test]
fn a_script_that_takes_too_long_is_told_by_its_phase() {
    let suite = SuiteFixture::new(RULES, &[]);
    let limits = json!({"defaultTaskLimits": {"timeout": "300ms"}});
    suite.eval(&limits, &json!({"assertions": {"minToolCalls": 1}}));
    suite.task(
        "echo",
        &json!({"setup": [{"script": {"inline": "sleep 600"}}]}),
    );
    let ended = ended(&suite.check(&[]).run());
    assert_eq!(
        ended.reason.as_deref(),
        Some("the trial timed out after 300ms: it was in the setup phase")
    );
}

#[test]
fn an_agent_is_not_to_blame_for_a_server_that_does_not_answer() {
    let suite = SuiteFixture::new(RULES, &["--mode", "never-answer=tools/call"]);
    let wanted = json!([{"server": "fixture", "tool": "echo", "isError": false}]);
    suite.eval(&json!({}), &json!({"assertions": {"toolsUsed": wanted}}));
    suite.task("echo", &json!({}));
    let within = |limit: &str| suite.check(&["--call-timeout", limit]).run();
    let (_, seen) = with_enough_time(within, has_called);
    let ended = ended(&seen);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Failed, Some(Blame::Server)),
        "{ended:?}"
    );
    let cancels = |what: &str| format!("{:?}", seen.events).contains(what);
    assert!(cancels("no response in time") && !cancels("no longer wanted"));
}

#[test]
fn a_setup_step_that_the_server_did_not_answer_is_the_servers_fault() {
    let suite = SuiteFixture::new(RULES, &["--mode", "never-answer=tools/call"]);
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    let requires = json!([{"mcpServer": "fixture"}]);
    let setup = json!([{"fixture.echo": {"args": {"text": "hi"}}}]);
    suite.task("echo", &json!({"requires": requires, "setup": setup}));
    let within = |limit: &str| suite.check(&["--call-timeout", limit]).run();
    let ended = ended(&with_enough_time(within, has_called).1);
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Errored, Some(Blame::Server)),
        "{ended:?}"
    );
}

#[test]
fn a_name_that_no_server_lists_is_told_once() {
    let suite = SuiteFixture::new(RULES, &[]);
    let named = |tool: &str| json!([{"server": "fixture", "tool": tool}]);
    let assertions = json!({
        "toolsNotUsed": named("ecko"),
        "toolsUsed": named("echo"),
        "callOrder": [{"type": "tool", "server": "fixture", "name": "echo"}],
        "promptsNotUsed": [{"server": "fixture", "prompt": "no-such-prompt"}],
        "minToolCalls": 1,
    });
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("echo", &json!({}));
    suite.task("nothing", &json!({}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let warnings: Vec<&str> = seen
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning: the server"))
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let expected = "warning: the server `fixture` lists no tool `ecko`, which `echo` refers to; did you mean `echo`?";
    assert!(warnings.contains(&expected), "{warnings:?}");
}

/// A server that holds a port or a file would disturb the next trial.
#[test]
fn a_trial_that_times_out_while_its_server_starts_ends_after_the_server() {
    let fixture = proctor_e2e::fixture().display().to_string();
    // It answers the first time, for the preflight.
    let program = format!(
        "if kill -0 $(cat pid) 2>/dev/null; then touch overlap; fi; echo $$ > pid; \
         if [ -e seen ]; then mode=never-answer=initialize; else mode=banner; fi; touch seen; \
         exec '{fixture}' --era handshake --mode \"$mode\" --mode ignores-sigterm \
         --mode ignores-stdin-close"
    );
    let servers = json!({"slow": {"command": "sh", "args": ["-c", program]}});
    let suite = SuiteFixture::on("  - reply: {text: done}", &servers);
    let assertions = json!({"assertions": {"maxToolCalls": 0}});
    suite.eval(&json!({}), &assertions);
    suite.task("one", &json!({}));
    let seen = suite
        .check(&["-n", "2", "--parallel", "1", "--task-timeout", "1s"])
        .run();
    assert_eq!(seen.code, Some(1), "{}\n{}", seen.stdout, seen.stderr);
    assert!(seen.stdout.contains("timed out"), "{}", seen.stdout);
    assert!(!suite.path("overlap").exists());
}

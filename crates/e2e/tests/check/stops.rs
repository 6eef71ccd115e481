//! Runs that are stopped, by a person or by a limit: what was started is cleaned up, and the record says why.

use std::time::{Duration, Instant};

use proctor_e2e::session::{RunningSession, Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{EventKind, Outcome};
use rustix::process::Signal;
use serde_json::json;

const RULES: &str = r"
  - when: {prompt: slow, results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - when: {prompt: circle}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 90, output: 10}}
  - when: {prompt: quick, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 90, output: 10}}
  - reply: {text: done, usage: {input: 90, output: 10}}
";

fn suite(task: &str, spec: &serde_json::Value) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task(task, spec);
    suite
}

/// Adds a case that waits in its setup until the file `go` exists, and then does not call `echo`.
fn add_waiting(suite: &SuiteFixture) {
    let (begun, go) = (suite.path("begun"), suite.path("go"));
    let (begun, go) = (begun.display(), go.display());
    let wait = format!("touch {begun}; until test -e {go}; do sleep 0.05; done");
    suite.task("waits", &json!({"setup": [{"script": {"inline": wait}}]}));
}

/// Interrupts a run whose waiting case has begun.
fn interrupted(suite: &SuiteFixture, running: RunningSession) -> SessionOutcome {
    let deadline = Instant::now() + Duration::from_mins(3);
    while !suite.path("begun").exists() {
        assert!(Instant::now() < deadline, "the case did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    suite.write("go", "");
    seen
}

fn ends(seen: &SessionOutcome) -> Vec<(Outcome, String)> {
    let ends = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::TrialEnded(ended) => {
            Some((ended.outcome, ended.reason.clone().unwrap_or_default()))
        }
        _ => None,
    });
    ends.collect()
}

#[test]
fn an_interrupted_trial_is_cleaned_up_and_cancelled() {
    let touched = tempfile::tempdir().unwrap();
    let mark = touched.path().join("cleaned");
    let cleanup = json!([{"script": {"inline": format!("touch {}", mark.display())}}]);
    let suite = suite("slow", &json!({"cleanup": cleanup}));
    let running = suite.check(&[]).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(
        ends(&seen),
        [(Outcome::Cancelled, "interrupted".to_owned())]
    );
    assert!(mark.exists());
}

#[test]
fn a_closed_terminal_ends_a_run_as_an_interrupt_does() {
    let touched = tempfile::tempdir().unwrap();
    let mark = touched.path().join("cleaned");
    let cleanup = json!([{"script": {"inline": format!("touch {}", mark.display())}}]);
    let suite = suite("slow", &json!({"cleanup": cleanup}));
    let running = suite.check(&[]).start();
    running.wait_for("tools/call");
    running.signal(Signal::HUP);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(
        ends(&seen),
        [(Outcome::Cancelled, "interrupted".to_owned())]
    );
    assert!(mark.exists());
    let run = std::fs::read_to_string(seen.record.join("run.jsonl")).unwrap();
    assert!(run.contains("runEnded"), "{run}");
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let suite = suite("slow", &json!({}));
    let running = suite.check(&[]).under(&["nohup"]).start();
    running.wait_for("tools/call");
    running.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    // A second stop would have been the first to be heard.
    running.wait_for("interrupted");
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(seen.stderr.matches("stopping").count(), 1);
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_cleanup() {
    let cleanup = json!([{"script": {"inline": "sleep 600"}}]);
    let suite = suite("slow", &json!({"cleanup": cleanup}));
    let running = suite.check(&[]).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    running.wait_for("\"cleanup\"");
    running.signal(Signal::TERM);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(ends(&seen)[0].0, Outcome::Cancelled);
}

#[test]
fn an_interrupted_run_can_be_gone_on_with() {
    let suite = suite("quick", &json!({}));
    add_waiting(&suite);
    let seen = interrupted(&suite, suite.check(&["-n", "2"]).start());
    let hint = format!("proctor check --resume {}", seen.record.display());
    let said: String = seen.stdout.split_whitespace().collect();
    let hint: String = hint.split_whitespace().collect();
    assert!(said.ends_with(&hint), "{}", seen.stdout);
    let again = resumed(&seen.record, &["-o", "json"]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let result: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(result["results"].as_array().unwrap().len(), 4);
    let nothing = resumed(&seen.record, &[]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("nothing to resume"));
    assert!(!nothing.stdout.contains("--resume"), "{}", nothing.stdout);
}

fn resumed(record: &std::path::Path, words: &[&str]) -> SessionOutcome {
    let mut all = vec!["check"];
    all.extend(words);
    proctor_e2e::session::Session::new(&all)
        .resume(record)
        .run()
}

#[test]
fn a_run_that_is_gone_on_with_is_the_same_run() {
    let suite = suite("quick", &json!({}));
    let seen = suite.check(&["-n", "3", "--budget-tokens", "250"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let refused = |words: &[&str], why: &str| {
        let again = resumed(&seen.record, words);
        assert_eq!(again.code, Some(2), "{words:?}: {}", again.stderr);
        assert!(again.stderr.contains(why), "{words:?}: {}", again.stderr);
    };
    refused(&["-n", "7"], "keeps its plan");
    refused(&["--task-timeout", "1s"], "keeps its plan");
    let script = std::fs::read_to_string(suite.path("model.yaml")).unwrap();
    suite.write("model.yaml", &script.replace("done", "finished"));
    refused(&[], "changed since the run started");
    suite.write("model.yaml", &script);
    let servers = std::fs::read_to_string(suite.path("mcp.json")).unwrap();
    suite.write(
        "mcp.json",
        &servers.replace("[]", "[\"--mode\", \"banner\"]"),
    );
    refused(&[], "changed since the run started");
    suite.write("mcp.json", &servers);
    assert_eq!(resumed(&seen.record, &[]).code, Some(0));
}

#[test]
fn a_run_is_not_resumed_with_other_settings_of_its_server() {
    let fixture = proctor_e2e::fixture().display().to_string();
    let suite = suite("quick", &json!({}));
    let servers = |env: &serde_json::Value| {
        let server = json!({"command": fixture, "args": [], "env": env});
        let servers = json!({"mcpServers": {"fixture": server}});
        suite.write("mcp.json", &servers.to_string());
    };
    servers(&json!({"STAGE": "test", "API_KEY": "canary-before", "FROM": "${STAGE_OF_TEST:-x}"}));
    // From the suite's own folder: where somebody stands makes no other server.
    let limited = ["-n", "3", "--budget-tokens", "250"];
    let there = format!("cd '{}' && exec \"$@\"", suite.folder().display());
    let here = [&["check", "eval.yaml"][..], &limited].concat();
    let seen = Session::new(&here).under(&["sh", "-c", &there, "sh"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let refused = |env: serde_json::Value| {
        servers(&env);
        let again = resumed(&seen.record, &[]);
        assert_eq!(again.code, Some(2), "{env}: {}", again.stderr);
        let why = "the server `fixture` changed since the run started";
        assert!(again.stderr.contains(why), "{env}: {}", again.stderr);
    };
    refused(json!({"STAGE": "live", "API_KEY": "canary-before", "FROM": "x"}));
    refused(json!({"STAGE": "test", "API_KEY": "canary-before", "FROM": "y"}));
    // A key that was renewed is another secret of the same server.
    servers(&json!({"STAGE": "test", "API_KEY": "canary-behind", "FROM": "x"}));
    let again = resumed(&seen.record, &[]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[test]
fn a_second_interrupt_in_the_cleanup_cancels_what_had_passed() {
    let suite = suite(
        "quick",
        &json!({"cleanup": [{"script": {"inline": "sleep 600"}}]}),
    );
    let running = suite.check(&[]).start();
    running.wait_for("\"cleanup\"");
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(100));
    running.signal(Signal::TERM);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(ends(&seen)[0].0, Outcome::Cancelled);
}

#[test]
fn the_first_failure_ends_the_run_if_asked_to() {
    let suite = suite("a-failure", &json!({}));
    suite.task("quick", &json!({}));
    let seen = suite.check(&["--fail-fast"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let line = "stopping after the first failure (`--fail-fast`)";
    let last = seen.stderr.lines().last();
    assert_eq!(last, Some(line), "{}", seen.stderr);
    let exit = "\nExit      1: stopped after the first failure (`--fail-fast`)\n";
    assert!(seen.stdout.contains(exit), "{}", seen.stdout);
    assert_eq!(ends(&seen).len(), 1);
}

#[test]
fn a_spent_budget_ends_the_run_and_is_no_failure() {
    let suite = suite("quick", &json!({}));
    let seen = suite.check(&["-n", "5", "--budget-tokens", "250"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let ends = ends(&seen);
    assert_eq!(ends[0].0, Outcome::Passed);
    assert_eq!(ends[1].0, Outcome::Cancelled);
    assert!(ends[1].1.contains("budget"), "{ends:?}");
    assert_eq!(ends.len(), 2);
}

#[test]
fn what_was_spent_before_a_break_counts() {
    let suite = suite("quick", &json!({}));
    let seen = suite.check(&["-n", "5", "--budget-tokens", "250"]).run();
    let again = resumed(&seen.record, &["--budget-tokens", "250"]);
    assert_eq!(again.code, Some(3), "{}", again.stderr);
    let passed = ends(&again)
        .iter()
        .filter(|end| end.0 == Outcome::Passed)
        .count();
    assert_eq!(passed, 1);
    let more = resumed(&seen.record, &["--budget-tokens", "5000"]);
    assert_eq!(more.code, Some(0), "{}", more.stderr);
}

#[test]
fn turns_and_tokens_of_a_trial_are_limited() {
    for (limit, reason) in [
        (json!({"maxTurns": 3}), "not done after 3 turns"),
        (json!({"maxTokens": 150}), "used 200 tokens of 150"),
        (json!({"maxTokens": 99}), "used 100 tokens of 99"),
    ] {
        let seen = suite("circle", &json!({"limits": limit})).check(&[]).run();
        assert_eq!(seen.code, Some(1), "{}", seen.stderr);
        let ends = ends(&seen);
        assert_eq!(ends[0].0, Outcome::TimedOut);
        assert!(ends[0].1.contains(reason), "{ends:?}");
    }
}

#[test]
fn a_run_that_is_gone_on_with_keeps_its_servers() {
    let suite = suite("quick", &json!({}));
    add_waiting(&suite);
    let own = std::fs::read_to_string(suite.path("mcp.json")).unwrap();
    suite.write("other.json", &own);
    suite.write("mcp.json", &own.replace("fixture-server", "no-such-server"));
    let other = suite.path("other.json").display().to_string();
    let running = suite.check(&["--mcp-config-file", &other]).start();
    let seen = interrupted(&suite, running);
    let again = Session::new(&["check"]).resume(&seen.record).run();
    // What waits does not call `echo`.
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(!again.stderr.contains("no-such-server"), "{}", again.stderr);
}

#[test]
fn a_run_is_not_gone_on_with_by_another_judge() {
    let suite = suite("quick", &json!({}));
    let judged = |script: &str| {
        suite.write(script, "kind: Script\nrules:\n  - reply: {text: pass}\n");
        let model = format!("scripted:{script}");
        let judge = json!({"ref": {"type": "builtin.llm-agent", "model": model}});
        let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
        suite.eval(
            &json!({"llmJudge": judge}),
            &json!({"assertions": assertions}),
        );
    };
    judged("one.yaml");
    let seen = suite.check(&["-o", "json"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let result: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(result["proctor"]["run"]["ended"]["exit"], 0, "{result}");
    judged("other.yaml");
    let again = Session::new(&["check"]).resume(&seen.record).run();
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(
        again
            .stderr
            .contains("the judge changed since the run started")
    );
}

#[test]
fn a_run_is_not_gone_on_with_on_another_server() {
    let fixture = proctor_e2e::fixture().display().to_string();
    // What the config says stays; what it starts does not.
    let program = format!("exec '{fixture}' $(cat mode)");
    let servers = json!({"fixture": {"command": "sh", "args": ["-c", program]}});
    let suite = SuiteFixture::on(RULES, &servers);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("quick", &json!({}));
    suite.write("mode", "");
    let seen = suite.check(&["-n", "3", "--budget-tokens", "250"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    suite.write("mode", "--mode no-tools");
    let refused = resumed(&seen.record, &[]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    for part in [
        "changed since the run started",
        "the number of its tools changed from",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    suite.write("mode", "");
    assert_eq!(resumed(&seen.record, &[]).code, Some(0));
}

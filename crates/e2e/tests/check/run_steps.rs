//! The steps of a run: its setup before the servers start, and its cleanup whatever happens.

use std::fs;

use proctor_e2e::session::{RunningSession, SessionOutcome};
use proctor_e2e::suite::{SuiteFixture, UNTIL_READ};
use proctor_record::event::{Event, EventKind, Outcome, Phase};
use proctor_record::record::RunReader;
use proctor_record::verdict::Verdict;
use rustix::process::Signal;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {prompt: slow, results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}], usage: {input: 90, output: 10}}
  - reply: {text: done, usage: {input: 90, output: 10}}
";

fn script(text: &str) -> Value {
    json!({"script": {"inline": text}})
}

/// A suite whose server needs the file `seed` in the suite's folder, and leaves the file `started`.
fn suite(config: &Value) -> SuiteFixture {
    let server = proctor_e2e::fixture();
    let start = format!(
        "touch started; test -f seed || {{ echo no seed >&2; exit 7; }}; exec {}",
        server.display()
    );
    let servers = json!({"fixture": {"command": "sh", "args": ["-c", start]}});
    let suite = SuiteFixture::on(RULES, &servers);
    let used = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(config, &json!({"assertions": used}));
    suite
}

/// A setup that makes the seed, and a cleanup that leaves the file `cleaned`.
fn seeded() -> Value {
    json!({
        "setup": [script("touch seed; echo seeding; echo again >> setups")],
        "cleanup": [script("rm seed; echo sweeping; touch cleaned")],
    })
}

/// The events of the run itself.
fn run_events(seen: &SessionOutcome) -> Vec<Event> {
    let run = RunReader::open(&seen.record).unwrap();
    run.events().unwrap().map(Result::unwrap).collect()
}

/// The steps of the run, with their verdicts.
fn steps(seen: &SessionOutcome) -> Vec<(Phase, Verdict)> {
    let steps = run_events(seen)
        .into_iter()
        .filter_map(|event| match event.event {
            EventKind::StepEnded(step) => Some((step.phase, step.verdict)),
            _ => None,
        });
    steps.collect()
}

fn outcomes(seen: &SessionOutcome) -> Vec<Outcome> {
    let ends = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::TrialEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    ends.collect()
}

/// Waits until a file of the suite exists.
fn wait_for_file(suite: &SuiteFixture, name: &str, running: &RunningSession) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(3);
    while !suite.path(name).exists() {
        assert!(
            std::time::Instant::now() < deadline,
            "{name} in {:?}",
            running.record().display()
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn the_setup_runs_before_the_servers_and_the_cleanup_after_the_last_trial() {
    let suite = suite(&seeded());
    suite.task("one", &json!({"verify": [script("test ! -e cleaned")]}));
    suite.task("two", &json!({"verify": [script("test -e ../seed")]}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    assert!(suite.path("cleaned").exists() && !suite.path("seed").exists());
    let kinds = run_events(&seen)
        .into_iter()
        .filter_map(|event| match event.event {
            EventKind::StepEnded(step) => Some(step.phase.name()),
            EventKind::ServerSeen(_) => Some("server"),
            EventKind::RunEnded(_) => Some("end"),
            _ => None,
        });
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, ["setup", "server", "cleanup", "end"]);
    assert!(
        seen.stdout.contains("setup setup_0 passed"),
        "{}",
        seen.stdout
    );
    let record = seen.record.display().to_string();
    let view = suite.proctor(&["result", "view", &record, "--no-pager"]);
    let view = String::from_utf8_lossy(&view.stdout).into_owned();
    let place = |text: &str| view.find(text).unwrap_or_else(|| panic!("{text}: {view}"));
    assert!(place("| seeding") < place("one") && place("two") < place("| sweeping"));
}

#[test]
fn after_a_failed_setup_no_server_starts_and_no_trial_runs() {
    for (text, timeout, reason) in [
        ("echo no database; exit 7", "1m", "exited with code 7"),
        ("kill -KILL $$", "1m", "signal"),
        ("echo waiting; sleep 600", "300ms", "timed out after 300ms"),
    ] {
        let mut config = seeded();
        config["setup"] = json!([
            script("touch seed"),
            {"script": {"inline": text, "timeout": timeout}},
            script("touch later"),
        ]);
        let suite = suite(&config);
        suite.task("good", &json!({}));
        let seen = suite.check(&[]).run();
        assert_eq!(seen.code, Some(3), "{text}: {}", seen.stderr);
        let expected = "error: before the run, setup step `setup_1` failed: ";
        assert!(seen.stderr.contains(expected), "{}", seen.stderr);
        assert!(seen.stderr.contains(reason), "{}", seen.stderr);
        assert!(!suite.path("started").exists(), "{text}");
        assert!(!suite.path("later").exists(), "{text}");
        assert!(seen.events.is_empty(), "{text}");
        assert!(suite.path("cleaned").exists(), "{text}");
        let verify = suite.proctor(&["result", "verify", &seen.record.display().to_string()]);
        assert_eq!(verify.status.code(), Some(3), "{text}");
    }
}

#[test]
fn a_step_that_may_fail_does_not_end_the_run() {
    let may_fail = |text: &str| json!({"script": {"inline": text, "continueOnError": true}});
    let config = json!({
        "setup": [may_fail("exit 1"), script("touch seed")],
        "cleanup": [may_fail("exit 1")],
    });
    let suite = suite(&config);
    suite.task("good", &json!({}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
}

#[test]
fn a_failed_cleanup_is_never_green() {
    let timed_out = "the cleanup timed out after 500ms";
    let ample = json!({"defaultTaskLimits": {"cleanupTimeout": "2m"}});
    let short = json!({"defaultTaskLimits": {"cleanupTimeout": "500ms"}});
    // Its own timeout counts more than that of the tasks.
    let own = json!({"cleanupTimeout": "500ms", "defaultTaskLimits": {"cleanupTimeout": "1h"}});
    for (text, reason, limits) in [
        (
            "echo in use; exit 1",
            "cleanup step `cleanup_0` failed: the script exited with code 1",
            &ample,
        ),
        ("sleep 600", timed_out, &short),
        ("sleep 600", timed_out, &own),
    ] {
        let mut config = json!({
            "setup": [script("touch seed")],
            "cleanup": [script(text), script("touch cleaned")],
        });
        let limits = limits.as_object().unwrap().clone();
        config.as_object_mut().unwrap().extend(limits);
        let suite = suite(&config);
        suite.task("good", &json!({}));
        let seen = suite.check(&[]).run();
        assert_eq!(outcomes(&seen), [Outcome::Passed]);
        assert_eq!(seen.code, Some(3), "{}\n{}", seen.stdout, seen.stderr);
        let said = format!("after the run, {reason}");
        assert!(
            seen.stderr.contains(&format!("warning: {said}")),
            "{}",
            seen.stderr
        );
        let words: Vec<&str> = seen.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(&said), "{}", seen.stdout);
        // A failed step does not keep the next one from running; the timeout does.
        assert_eq!(suite.path("cleaned").exists(), text != "sleep 600");
        let record = seen.record.display().to_string();
        let verify = suite.proctor(&["result", "verify", &record]);
        assert_eq!(verify.status.code(), Some(3));
        // There is nothing to resume, and the cleanup still failed.
        let again = suite.proctor(&["check", "--resume", &record]);
        assert_eq!(again.status.code(), Some(3));
        let verify = suite.proctor(&["result", "verify", &record]);
        assert_eq!(verify.status.code(), Some(3));
    }
}

#[test]
fn a_failed_cleanup_does_not_hide_a_failed_trial() {
    let config = json!({"setup": [script("touch seed")], "cleanup": [script("exit 1")]});
    let suite = suite(&config);
    suite.task("bad", &json!({"verify": [script("exit 1")]}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    assert!(
        seen.stderr.contains("after the run, cleanup step"),
        "{}",
        seen.stderr
    );
}

#[test]
fn the_cleanup_runs_after_a_server_that_does_not_start() {
    let mut config = seeded();
    config["setup"] = json!([script("true")]);
    let suite = suite(&config);
    suite.task("good", &json!({}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    assert!(seen.stderr.contains("no seed"), "{}", seen.stderr);
    assert!(suite.path("cleaned").exists());
}

#[test]
fn the_cleanup_runs_after_an_interrupt() {
    // In the setup.
    let mut config = seeded();
    let wait = format!("echo before; {UNTIL_READ}; touch waiting; sleep 600");
    config["setup"] = json!([script(&wait)]);
    let interrupted = suite(&config);
    interrupted.task("good", &json!({}));
    let running = interrupted.check(&[]).start();
    wait_for_file(&interrupted, "waiting", &running);
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert!(interrupted.path("cleaned").exists() && !interrupted.path("started").exists());
    let setup = steps(&seen).into_iter().next().unwrap();
    assert_eq!(
        setup,
        (Phase::Setup, Verdict::unknown("the step was interrupted"))
    );
    let record = seen.record.display().to_string();
    let view = interrupted.proctor(&["result", "view", &record, "--no-pager"]);
    assert!(String::from_utf8_lossy(&view.stdout).contains("| before"));

    // In a trial.
    let interrupted = suite(&seeded());
    interrupted.task("slow", &json!({}));
    let running = interrupted.check(&[]).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert!(interrupted.path("cleaned").exists());

    // A second interrupt ends the cleanup, and the run says so.
    let mut config = seeded();
    config["cleanup"] = json!([script("touch waiting; sleep 600"), script("touch cleaned")]);
    let interrupted = suite(&config);
    interrupted.task("slow", &json!({}));
    let running = interrupted.check(&[]).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    wait_for_file(&interrupted, "waiting", &running);
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert!(
        seen.stderr
            .contains("after the run, the cleanup was interrupted")
    );
    assert!(!interrupted.path("cleaned").exists());
}

#[test]
fn the_cleanup_runs_after_a_spent_budget_and_a_full_disk() {
    let stopped = suite(&seeded());
    stopped.task("one", &json!({}));
    stopped.task("two", &json!({}));
    let seen = stopped.check(&["--budget-tokens", "100"]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    assert!(stopped.path("cleaned").exists());

    let stopped = suite(&seeded());
    stopped.task("long", &json!({"prompt": {"inline": "x".repeat(100_000)}}));
    // Enough for the plan, and not for the trial.
    let limited = "ulimit -f 50; exec \"$@\"";
    let seen = stopped
        .check(&[])
        .under(&["bash", "-c", limited, "bash"])
        .run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    assert!(seen.stderr.contains("File too large"), "{}", seen.stderr);
    assert!(stopped.path("cleaned").exists());
}

#[test]
fn a_resumed_run_runs_the_setup_again() {
    let suite = suite(&seeded());
    suite.task("slow", &json!({}));
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let running = suite.check(&[]).record_in(&record).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    fs::remove_file(suite.path("cleaned")).unwrap();
    let resumed = proctor_e2e::session::Session::new(&["check"]).resume(&record);
    let running = resumed.start();
    wait_for_file(&suite, "seed", &running);
    running.wait_for("\"attempt\":2");
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    let setups = fs::read_to_string(suite.path("setups")).unwrap();
    assert_eq!(setups.lines().count(), 2);
    assert!(suite.path("cleaned").exists());

    // Other steps would make another run of it.
    let mut changed = seeded();
    changed["cleanup"] = json!([script("touch cleaned")]);
    suite.eval(&changed, &json!({"assertions": {"minToolCalls": 1}}));
    let refused = suite.proctor(&["check", "--resume", &record.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_process_of_the_setup_runs_until_the_cleanup_and_ends_with_the_run() {
    let config = json!({
        "setup": [script("touch seed; sleep 600 & echo $! > pid")],
        "cleanup": [script("kill -0 $(cat pid)")],
    });
    let suite = suite(&config);
    suite.task(
        "good",
        &json!({"verify": [script("kill -0 $(cat ../pid)")]}),
    );
    // The session checks that no process is left.
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
}

#[test]
fn secrets_of_the_setup_are_redacted_everywhere() {
    let print = json!({"script": {"inline": "echo $DB_PASSWORD; touch seed", "env": {"DB_PASSWORD": "hunter2-hunter2"}}});
    let suite = suite(
        &json!({"setup": [print.clone()], "cleanup": [print, script("echo hunter2-hunter2; exit 1")]}),
    );
    suite.task("good", &json!({"verify": [script("echo hunter2-hunter2")]}));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let texts = [&seen.stdout, &seen.stderr];
    assert!(
        texts.iter().all(|text| !text.contains("hunter2")),
        "{texts:?}"
    );
    let run = fs::read_to_string(seen.record.join("run.jsonl")).unwrap();
    assert!(!run[run.find("stepEnded").unwrap()..].contains("hunter2"));
}

#[test]
fn a_server_that_needs_the_setup_of_a_task_gets_a_hint_and_runs_without_a_preflight() {
    let steps = json!({
        "setup": [script("touch ../seed")],
        "cleanup": [script("rm ../seed")],
    });
    let refused = suite(&json!({}));
    refused.task("good", &steps);
    let seen = refused.check(&[]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    let hint = "hint: the preflight starts the servers before the setup steps of tasks";
    assert!(seen.stderr.contains(hint), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("`config.preflight: false`"),
        "{}",
        seen.stderr
    );

    let started = suite(&json!({"preflight": false}));
    started.task("good", &steps);
    let seen = started.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    assert_eq!(outcomes(&seen), [Outcome::Passed]);

    // Without the setup, the trial has no server.
    let absent = suite(&json!({"preflight": false}));
    absent.task("good", &json!({}));
    let seen = absent.check(&[]).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    assert_eq!(outcomes(&seen), [Outcome::Errored]);
    assert!(seen.stdout.contains("no seed"), "{}", seen.stdout);
}

#[test]
fn without_a_preflight_a_trial_compares_its_names_with_the_server() {
    let suite = suite(&json!({"preflight": false, "setup": [script("touch seed")]}));
    suite.eval(
        &json!({"preflight": false, "setup": [script("touch seed")]}),
        &json!({"assertions": {"minToolCalls": 1, "toolsNotUsed": [{"server": "fixture", "tool": "ecko"}]}}),
    );
    suite.task("good", &json!({}));
    let seen = suite.check(&["-n", "2"]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    let warning = "lists no tool `ecko`, which `good` refers to; did you mean `echo`?";
    assert_eq!(seen.stderr.matches(warning).count(), 1, "{}", seen.stderr);
    // The report learns from the first trial what the preflight would have seen.
    let record = fs::read_to_string(seen.record.join("run.jsonl")).unwrap();
    let servers: Vec<&str> = record
        .lines()
        .filter(|line| line.contains("startedIn"))
        .collect();
    assert_eq!(servers.len(), 1, "{record}");
    let markdown = suite.proctor(&[
        "result",
        "convert",
        seen.record.to_str().unwrap(),
        "--to",
        "markdown",
    ]);
    let markdown = String::from_utf8_lossy(&markdown.stdout).into_owned();
    assert!(markdown.contains("server `fixture "), "{markdown}");
}

#[test]
fn mistakes_in_the_steps_of_a_run_are_errors() {
    for (config, message) in [
        (
            json!({"setup": [{"llmJudge": {"contains": "x"}}]}),
            "`llmJudge` works only in `verify`",
        ),
        (
            json!({"cleanup": [{"script": {"inline": "true", "env": {"A": "{agent.output}"}}}]}),
            "steps of a run have no agent and no trial",
        ),
        (
            json!({"setup": [{"script": {"inline": "true", "env": {"A": "{trial.dir}"}}}]}),
            "steps of a run have no agent and no trial",
        ),
        (
            json!({"setup": [{"fixture.echo": {"args": {"text": "hi"}}}]}),
            "unknown extension `fixture`",
        ),
        (
            json!({"setup": [{"script": {"inline": "true", "env": {"A": "{row.a}"}}}]}),
            "needs rows",
        ),
        (
            json!({"preflight": false, "isolation": "run"}),
            "`preflight: false` conflicts with `isolation: run`",
        ),
        (
            json!({"preflight": false, "surface": {"lock": "surface.lock"}}),
            "`preflight: false` conflicts with `surface`",
        ),
        (json!({"setup": {"script": {"inline": "true"}}}), "setup"),
    ] {
        let suite = suite(&config);
        suite.task("good", &json!({}));
        let seen = suite.proctor(&["validate", "eval.yaml"]);
        let text = String::from_utf8_lossy(&seen.stdout).into_owned();
        assert_eq!(seen.status.code(), Some(2), "{text}");
        assert!(
            text.contains(message) && text.contains("eval.yaml:1:"),
            "{text}"
        );
    }
}

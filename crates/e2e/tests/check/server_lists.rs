//! Servers of a run: those that a task lists, the variables that they get, and how long they take to start.

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Event, EventKind};
use proctor_record::record::RunReader;
use serde_json::{Value, json};

/// Calls `echo`.
const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// A suite on two servers, each of which leaves a line in the file of its name when it starts.
fn suite(config: &Value, set: &Value) -> SuiteFixture {
    let server = |name: &str| {
        let start = format!(
            "echo up >> {name}; exec {}",
            proctor_e2e::fixture().display()
        );
        json!({"command": "sh", "args": ["-c", start]})
    };
    let servers = json!({"near": server("near"), "far": server("far")});
    let suite = SuiteFixture::on(RULES, &servers);
    suite.eval(config, set);
    suite
}

fn starts(suite: &SuiteFixture, name: &str) -> usize {
    let text = std::fs::read_to_string(suite.path(name)).unwrap_or_default();
    text.lines().count()
}

/// The servers of the connections that trials opened.
fn opened(seen: &SessionOutcome) -> Vec<&str> {
    let opened = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::ConnectionOpened(opened) => Some(opened.server.as_str()),
        _ => None,
    });
    opened.collect()
}

fn near(list: &str) -> Value {
    json!({"assertions": {"toolsUsed": [{"server": "near", "tool": "echo"}]}, list: ["near"]})
}

#[test]
fn a_task_starts_only_the_servers_that_it_lists() {
    // In the task set, and in the task.
    let of_set = suite(&json!({}), &near("servers"));
    of_set.task("echo", &json!({}));
    let used = json!({"assertions": {"toolsUsed": [{"server": "near", "tool": "echo"}]}});
    let of_task = suite(&json!({}), &used);
    of_task.task("echo", &json!({"servers": ["near"]}));
    for suite in [of_set, of_task] {
        let seen = suite.check(&["-n", "3"]).run();
        assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
        assert_eq!(opened(&seen), ["near"; 3]);
        // The preflight, and three trials.
        assert_eq!((starts(&suite, "near"), starts(&suite, "far")), (4, 0));
    }
    // Without a list, a trial gets both.
    let all = suite(&json!({}), &used);
    all.task("echo", &json!({}));
    let seen = all.check(&[]).run();
    assert_eq!(opened(&seen).len(), 2);
}

#[test]
fn the_preflight_starts_what_selected_tasks_use_and_no_other_server() {
    let set = json!({"assertions": {"minToolCalls": 1}});
    let suite = suite(&json!({"isolation": "run"}), &set);
    suite.task("echo-near", &json!({"servers": ["near"]}));
    suite.task("echo-far", &json!({"servers": ["far"]}));
    let seen = suite.check(&["-r", "near"]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    assert_eq!((starts(&suite, "near"), starts(&suite, "far")), (1, 0));
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    assert_eq!((starts(&suite, "near"), starts(&suite, "far")), (2, 1));
}

#[test]
fn an_assertion_or_a_step_on_a_server_that_is_not_listed_is_an_error() {
    let far = json!({"toolsNotUsed": [{"server": "far", "tool": "echo"}]});
    let call = json!({
        "requires": [{"mcpServer": "far"}],
        "verify": [{"far.echo": {"args": {"text": "hi"}}}],
    });
    let with_list = |spec: &Value, list: &str| {
        let mut spec = spec.clone();
        spec["servers"] = json!([list]);
        spec
    };
    for (set, spec, file, message) in [
        (
            json!({"assertions": far, "servers": ["near"]}),
            json!({}),
            "eval.yaml",
            "the assertion `toolsNotUsed` (eval.yaml:1) names the server `far`, which `servers` does not list",
        ),
        (
            json!({"assertions": far}),
            json!({"servers": ["near"]}),
            "echo.yaml",
            "the assertion `toolsNotUsed` (eval.yaml:1) names the server `far`, which `servers` does not list",
        ),
        (
            json!({"servers": ["near"]}),
            call.clone(),
            "eval.yaml",
            "the step `verify_0` of `echo` names the server `far`",
        ),
        (
            json!({}),
            with_list(&call, "near"),
            "echo.yaml",
            "the step `verify_0` of `echo` names the server `far`",
        ),
        (
            json!({}),
            with_list(&call, "nearr"),
            "echo.yaml",
            "task names unknown server `nearr`",
        ),
        (
            json!({"servers": ["fra"]}),
            json!({"verify": [{"script": {"inline": "true"}}]}),
            "eval.yaml",
            "did you mean `far`?",
        ),
    ] {
        let suite = suite(&json!({}), &set);
        suite.task("echo", &spec);
        let seen = suite.proctor(&["validate", "eval.yaml"]);
        let text = String::from_utf8_lossy(&seen.stdout).into_owned();
        assert_eq!(seen.status.code(), Some(2), "{set} {spec}: {text}");
        assert!(text.contains(message), "{text}");
        assert!(text.contains(&format!("{file}:1:")), "{text}");
        assert_eq!(text.matches(message).count(), 1, "{text}");
    }
}

#[test]
fn a_server_without_a_proxy_says_which_variables_it_did_not_get() {
    let script = "test -n \"$SSL_CERT_FILE\" || exit 8; test -n \"$HTTPS_PROXY\" || exit 7; exec ";
    let start = format!("{script}{}", proctor_e2e::fixture().display());
    let servers = json!({"fixture": {"command": "sh", "args": ["-c", start]}});
    let suite = SuiteFixture::on(RULES, &servers);
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("echo", &json!({}));
    let with_proxy = |session: Session| {
        session
            .env("HTTPS_PROXY", "http://me:hunter2@localhost:1")
            .env("SSL_CERT_FILE", "/nowhere.pem")
            .run()
    };
    let seen = with_proxy(suite.check(&[]));
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    // Certificates were passed, so the server got to the proxy.
    assert!(
        seen.stderr.contains("exited with code 7"),
        "{}",
        seen.stderr
    );
    assert!(
        seen.stderr.contains("hint: the server did not get "),
        "{}",
        seen.stderr
    );
    assert!(
        seen.stderr.contains("--pass-env HTTPS_PROXY"),
        "{}",
        seen.stderr
    );
    assert!(!seen.stderr.contains("hunter2"), "{}", seen.stderr);
    let seen = with_proxy(suite.check(&["--pass-env", "HTTPS_PROXY"]));
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
}

#[test]
fn a_server_that_starts_slowly_is_reported_once() {
    let start = |seconds: &str| {
        let start = format!("sleep {seconds}; exec {}", proctor_e2e::fixture().display());
        json!({"fixture": {"command": "sh", "args": ["-c", start]}})
    };
    let slow = SuiteFixture::on(RULES, &start("3.1"));
    slow.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    slow.task("echo", &json!({}));
    let seen = slow.check(&["-n", "2"]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    let note = "`fixture` took ";
    assert_eq!(seen.stdout.matches(note).count(), 1, "{}", seen.stdout);
    assert!(seen.stdout.contains(" to start: every trial waits for it"));
    let run = RunReader::open(&seen.record).unwrap();
    let events: Vec<Event> = run.events().unwrap().map(Result::unwrap).collect();
    let time = events.iter().find_map(|event| match &event.event {
        EventKind::ServerSeen(seen) => seen.started_in,
        _ => None,
    });
    assert!(time.unwrap() > 3_000_000, "{time:?}");
}

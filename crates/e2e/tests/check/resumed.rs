//! Trials on a server that closes its event streams before the answer.

use proctor_e2e::Fixture;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{EventKind, Outcome};
use serde_json::json;

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// How a trial with one call ends, which is to be answered with `hi`.
fn outcome(modes: &[&str], call_timeout: &str) -> Outcome {
    let modes = modes.iter().flat_map(|mode| ["--mode", mode]);
    let args: Vec<&str> = ["--era", "handshake"].into_iter().chain(modes).collect();
    let server = Fixture::http(&args);
    let suite = SuiteFixture::on(
        RULES,
        &json!({"fixture": {"type": "http", "url": server.url()}}),
    );
    let answered = json!([{"server": "fixture", "tool": "echo", "isError": false}]);
    let once = json!({"toolsUsed": answered, "minToolCalls": 1, "maxToolCalls": 1});
    suite.eval(&json!({}), &json!({"assertions": once}));
    suite.task("echo", &json!({}));
    let words = ["--strict", "--call-timeout", call_timeout];
    let seen = suite.check(&words).run();
    match seen.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => ended.outcome,
        other => panic!("the trial has no end but {other:?}\n{}", seen.stderr),
    }
}

#[test]
fn a_call_that_is_answered_on_a_resumed_stream_counts_once() {
    for modes in [
        &["closes-stream=3"][..],
        &["closes-stream", "repeats-events"],
    ] {
        assert_eq!(outcome(modes, "2m"), Outcome::Passed, "{modes:?}");
    }
}

#[test]
fn a_call_whose_stream_can_not_be_resumed_does_not_pass() {
    for modes in [
        &["closes-stream", "no-get"][..],
        &["closes-stream", "exit-in-call"],
        &["closes-stream", "truncated-body"],
        &["closes-stream", "never-answer"],
    ] {
        assert_ne!(outcome(modes, "5s"), Outcome::Passed, "{modes:?}");
    }
}

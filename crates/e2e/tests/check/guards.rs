//! Servers that attack the process which guards them.

use std::time::Duration;

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Blame, EventKind, Outcome};
use serde_json::json;

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - reply: {text: done}
";

/// A run on a server that does `attack` while a call is under way, from the second start on: the first
/// is to see what the server offers.
fn attacked(attack: &str, words: &[&str]) -> SessionOutcome {
    let fixture = proctor_e2e::fixture().display().to_string();
    let program = format!(
        "if [ -e seen ]; then (until grep -qs tools/call log; do sleep 0.05; done; {attack}) & fi; \
         touch seen; exec '{fixture}' --log log --mode ignores-stdin-close --mode ignores-sigterm"
    );
    let servers = json!({"fixture": {"command": "sh", "args": ["-c", program]}});
    let suite = SuiteFixture::on(RULES, &servers);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "sleep"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("attack", &json!({}));
    // That nothing is left is checked wherever a session ends.
    suite.check(words).within(Duration::from_mins(5)).run()
}

fn fails(attack: &str, told: &str) {
    fails_with(&[], attack, told);
}

fn fails_with(words: &[&str], attack: &str, told: &str) {
    let seen = attacked(attack, words);
    assert_eq!(seen.code, Some(1), "{}\n{}", seen.stdout, seen.stderr);
    let ended = seen.events.iter().find_map(|event| match &event.event {
        EventKind::TrialEnded(ended) => Some(ended),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.outcome, Outcome::Failed, "{ended:?}");
    assert_eq!(ended.blame, Some(Blame::Server), "{ended:?}");
    let reason = ended.reason.as_deref().unwrap_or_default();
    assert!(reason.contains(told), "{reason}");
}

#[test]
fn a_server_that_stops_its_guard_fails_and_leaves_nothing() {
    fails("kill -STOP $PPID", "the program stopped its guard");
    fails(
        "while kill -STOP $PPID; do :; done",
        "the program stopped its guard",
    );
}

#[test]
fn a_server_that_kills_its_guard_fails_and_leaves_nothing() {
    for signal in ["KILL", "ALRM", "ABRT"] {
        let attack = format!("kill -{signal} $PPID");
        fails(&attack, "the program killed its guard");
    }
}

#[test]
fn a_server_that_kills_the_host_of_its_guard_fails_and_leaves_nothing() {
    fails(
        "kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat)",
        "the guard host was killed",
    );
}

/// The end of the guard is reported only when Proctor ends the server, after the call has timed out.
#[test]
fn a_server_that_stops_the_host_and_kills_its_guard_fails_and_leaves_nothing() {
    fails_with(
        &["--call-timeout", "5s"],
        "kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat); kill -KILL $PPID",
        "`sleep` got no response within 5s",
    );
}

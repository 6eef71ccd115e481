//! Real servers are listed and called, and the record is what an independent tee saw.

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::{EventKind, Outcome, WireKind};
use serde_json::Value;

use crate::servers::{self, EVERYTHING, ListeningServer, RealServer};
use crate::wire::TeedStream;

#[test]
fn everything_is_listed_and_called() {
    check(&servers::everything());
}

#[test]
fn filesystem_is_listed_and_called() {
    let folder = tempfile::tempdir().unwrap();
    check(&servers::filesystem(folder.path()));
}

#[test]
fn memory_is_listed_and_called() {
    let folder = tempfile::tempdir().unwrap();
    check(&servers::memory(folder.path()));
    let kept = std::fs::read_to_string(folder.path().join("memory.jsonl")).unwrap();
    assert!(kept.contains(r#""name":"n""#), "{kept}");
}

#[test]
fn git_is_listed_and_called() {
    let folder = tempfile::tempdir().unwrap();
    check(&servers::git(folder.path()));
}

#[test]
fn time_is_listed_and_called() {
    check(&servers::time());
}

#[test]
fn everything_is_reached_over_streamable_http() {
    reached("streamableHttp", WireKind::Http);
}

#[test]
fn everything_is_reached_over_the_older_transport() {
    reached("sse", WireKind::Sse);
}

fn check(real: &RealServer) {
    let on = |words: &[&str]| {
        let session = match &real.env {
            Some((name, value)) => {
                Session::new(&[words, &["--pass-env", name]].concat()).env(name, value)
            }
            None => Session::new(words),
        };
        let teed = TeedStream::run(session, &real.command);
        teed.check_record();
        well(&teed.seen);
        teed.seen
    };
    let text = on(&["tools"]);
    offers_text(&text.stdout, real.era, real.tools);
    let json = on(&["tools", "-o", "json"]);
    offers_json(&json.stdout, real.era, real.tools);
    let (tool, arguments) = &real.call;
    let called = on(&["call", tool, "--args", &arguments.to_string()]);
    assert!(called.stdout.contains(real.answer), "{}", called.stdout);
}

fn reached(transport: &str, wire: WireKind) {
    let server = ListeningServer::everything(transport);
    let at = |words: &[&str]| {
        let seen = Session::new(words).at(&server.url).run();
        well(&seen);
        // An address is first tried as the newer transport.
        let mut opened = seen.events.iter().filter_map(|event| match &event.event {
            EventKind::ConnectionOpened(opened) => Some(opened.transport),
            _ => None,
        });
        assert_eq!(opened.next_back(), Some(wire));
        seen
    };
    offers_text(&at(&["tools"]).stdout, "handshake", EVERYTHING);
    offers_json(
        &at(&["tools", "-o", "json"]).stdout,
        "handshake",
        EVERYTHING,
    );
    let called = at(&["call", "echo", "--args", r#"{"message": "over HTTP"}"#]);
    assert_eq!(called.stdout, "Echo: over HTTP\n");
}

fn well(seen: &SessionOutcome) {
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(seen.outcome(), Some(Outcome::Passed));
}

fn offers_text(text: &str, era: &str, tools: &[&str]) {
    assert!(text.contains(&format!(" ({era})\n")), "{text}");
    assert!(
        text.contains(&format!("\nTools ({}, about ", tools.len())),
        "{text}"
    );
    for tool in tools {
        assert!(text.contains(&format!("\n  {tool}  ~")), "{tool}: {text}");
    }
}

fn offers_json(text: &str, era: &str, tools: &[&str]) {
    let offer: Value = serde_json::from_str(text).unwrap();
    assert_eq!(offer["era"], era);
    let names: Vec<&str> = offer["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, tools);
}

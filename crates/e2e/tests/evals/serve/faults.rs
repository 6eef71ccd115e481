//! Servers that misbehave behind `evals serve`: it ends as they do, and holds little.

use rustix::process::Signal;
use serde_json::json;

use super::spoken::SpokenSession;
use super::{Shelf, fixture_with};
use crate::ids;

const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"call\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"x\"}}}\n";

fn served(shelf: &Shelf, words: &[&str]) -> SpokenSession {
    let mut all = vec!["--era", "handshake"];
    all.extend(words);
    let mut spoken = SpokenSession::start(&shelf.serving(&fixture_with(&all)));
    spoken.initialize();
    spoken
}

#[test]
fn e35_it_ends_as_the_server_ends() {
    for (mode, code) in [
        ("exit-in-call=5", 5),
        ("exit-between-calls=0", 0),
        ("abort-in-call", 134),
        ("kill-in-call", 137),
        ("torn-line=7", 7),
    ] {
        let shelf = Shelf::of("a");
        let mut spoken = served(&shelf, &["--mode", mode]);
        spoken.send(CALL);
        let seen = spoken.end();
        assert_eq!(seen.code, Some(code), "{mode}: {seen:?}");
        if mode.starts_with("torn") {
            assert!(
                !seen.rest.is_empty() && !seen.rest.ends_with(b"\n"),
                "{seen:?}"
            );
        }
    }
}

#[test]
fn e35_a_server_that_does_not_start_is_an_error() {
    let shelf = Shelf::of("a");
    let seen = SpokenSession::start(&shelf.serving(&["no-such-program".to_owned()])).end();
    assert_eq!(seen.code, Some(2));
    assert!(seen.stderr.contains("no-such-program"), "{}", seen.stderr);
    let seen =
        SpokenSession::start(&shelf.serving(&fixture_with(&["--mode", "exit-before-handshake=3"])));
    assert_eq!(seen.end().code, Some(3));
}

#[test]
fn e35_the_server_has_our_environment_folder_and_stderr() {
    let shelf = Shelf::of("a");
    let script = "echo \"$SECRET in $(pwd)\"; echo to stderr >&2; cat; exit 9";
    let command = ["sh", "-c", script].map(str::to_owned);
    let mut spoken = SpokenSession::start_with(&shelf.serving(&command), &[("SECRET", "hidden")]);
    let here = std::env::current_dir().unwrap();
    let line = String::from_utf8(spoken.line()).unwrap();
    assert_eq!(line, format!("hidden in {}\n", here.display()));
    spoken.send(b"and no end");
    let seen = spoken.finish();
    assert_eq!(seen.code, Some(9));
    assert_eq!(seen.rest, b"and no end");
    assert_eq!(seen.stderr, "to stderr\n");
}

#[test]
fn e35_a_server_that_hangs_keeps_nobody_from_the_evals_and_can_be_ended() {
    let shelf = Shelf::of("a");
    let modes = ["--mode", "never-answer", "--mode", "ignores-stdin-close"];
    let mut spoken = served(&shelf, &modes);
    spoken.send(CALL);
    assert_eq!(ids(&spoken.ask("evals/list", &json!({}))), ["a"]);
    assert_eq!(spoken.terminate().code, Some(143));
    // One that does not listen to that either.
    let mut spoken = served(
        &shelf,
        &["--mode", "ignores-sigterm", "--mode", "ignores-stdin-close"],
    );
    assert_eq!(ids(&spoken.ask("evals/list", &json!({}))), ["a"]);
    spoken.signal(Signal::INT);
    assert_eq!(spoken.finish().code, Some(137));
}

#[test]
fn e35_what_a_server_started_ends_with_it() {
    let shelf = Shelf::of("a");
    let pids = shelf.path("pids");
    let mode = format!("spawns-children={pids}");
    let spoken = served(&shelf, &["--mode", &mode]);
    let pids = std::fs::read_to_string(pids).unwrap();
    spoken.finish();
    for pid in pids.split_whitespace() {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(
            status.is_empty() || status.contains(") Z"),
            "{pid}: {status}"
        );
    }
}

#[test]
fn e35_evals_are_listed_between_the_lines_of_a_server_that_floods() {
    let shelf = Shelf::of("a");
    let mut spoken = served(&shelf, &["--mode", "flood-notifications=100000"]);
    spoken.send(CALL);
    let first = spoken.line();
    assert!(first.starts_with(b"{") && first.ends_with(b"}\n"));
    assert_eq!(ids(&spoken.ask("evals/list", &json!({}))), ["a"]);
    let flood = spoken.until(&json!("call"));
    assert!(!flood.is_empty());
    for line in &flood {
        serde_json::from_slice::<serde_json::Value>(line).unwrap();
    }
    assert!(spoken.peak_kib() < 150 << 10, "{} KiB", spoken.peak_kib());
    spoken.finish();
}

#[test]
fn e35_a_line_without_an_end_passes_in_little_memory() {
    /// A gigabyte, but for the piece that has no end.
    const MOST: usize = 980_000_000;
    let shelf = Shelf::of("a");
    let mut spoken = served(&shelf, &["--mode", "endless-line=1000000000"]);
    spoken.send(CALL);
    assert!(spoken.skip(MOST) >= MOST);
    let peak = spoken.peak_kib();
    assert!(peak < 150 << 10, "{peak} KiB");
    spoken.terminate();
}

#[test]
fn e35_a_client_may_say_a_line_without_an_end_too() {
    let shelf = Shelf::of("a");
    let command = ["wc", "-c"].map(str::to_owned);
    let mut spoken = SpokenSession::start(&shelf.serving(&command));
    let part = vec![b'x'; 1 << 20];
    for _ in 0..1_000 {
        spoken.send(&part);
    }
    let peak = spoken.peak_kib();
    assert!(peak < 150 << 10, "{peak} KiB");
    let seen = spoken.finish();
    let counted = String::from_utf8(seen.rest).unwrap();
    assert_eq!(counted.trim(), (1_000 << 20).to_string());
}

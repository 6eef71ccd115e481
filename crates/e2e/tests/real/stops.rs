//! Sessions that are stopped: the record says so, and nothing is left running.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor_e2e::session::{RunningSession, Session};
use proctor_e2e::{Fixture, fixture};
use proctor_record::event::Outcome;
use rustix::process::Signal;

/// A server that has to be killed, and so do its children.
const STUBBORN: &[&str] = &[
    "--mode",
    "ignores-sigterm",
    "--mode",
    "ignores-stdin-close",
    "--mode",
    "spawns-children",
];

/// A session in the middle of a call that takes ten minutes.
fn calling(arguments: &[&str]) -> RunningSession {
    let running = asleep().on(fixture().to_str().unwrap(), arguments).start();
    running.wait_for("tools/call");
    running
}

fn asleep() -> Session {
    Session::new(&["call", "sleep", "--args", r#"{"ms": 600000}"#])
}

/// Stops it, and checks that it ends as it should, long before its call would.
fn stop(running: RunningSession, signals: &[Signal]) {
    for signal in signals {
        running.signal(*signal);
    }
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(seen.stderr, "error: interrupted\n");
    assert_eq!(seen.outcome(), Some(Outcome::Cancelled));
    assert!(view(&seen.record).contains("run ended with exit code 130"));
}

#[test]
fn an_interrupt_cancels_a_call() {
    stop(calling(&[]), &[Signal::INT]);
}

#[test]
fn a_request_to_end_cancels_a_call() {
    stop(calling(&[]), &[Signal::TERM]);
}

#[test]
fn an_interrupt_ends_a_server_that_does_not_want_to() {
    stop(calling(STUBBORN), &[Signal::INT]);
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_server() {
    let running = calling(STUBBORN);
    running.signal(Signal::INT);
    // Two of one kind that come together are one.
    stop(running, &[Signal::TERM]);
}

#[test]
fn an_interrupt_cancels_a_start() {
    let server = ["--mode", "slow-start=600000"];
    let running = asleep().on(fixture().to_str().unwrap(), &server).start();
    running.wait_for("server/discover");
    stop(running, &[Signal::INT]);
}

#[test]
fn an_interrupt_cancels_a_call_over_http() {
    for start in [Fixture::http, Fixture::sse] {
        let server = start(&[]);
        let running = asleep().at(server.url()).start();
        running.wait_for("tools/call");
        stop(running, &[Signal::INT]);
    }
}

#[test]
fn a_killed_session_leaves_no_process_and_a_trial_that_never_ended() {
    for arguments in [&[][..], STUBBORN] {
        let running = calling(arguments);
        running.signal(Signal::KILL);
        let seen = running.finish();
        assert_eq!(seen.code, None);
        assert!(!seen.has_ended());
        let shown = view(&seen.record);
        assert!(shown.contains("trial sleep (attempt 1), unfinished"));
        assert!(!shown.contains("run ended"), "{shown}");

        // The same, had it been killed in the middle of a write.
        let part = seen.record.join("trials/sleep.1.jsonl.part");
        let written = fs::read(&part).unwrap();
        fs::write(&part, &written[..written.len() - 5]).unwrap();
        let shown = view(&seen.record);
        assert!(
            shown.contains("warning: the last line is truncated"),
            "{shown}"
        );
    }
}

/// What `proctor result view --raw` prints.
fn view(record: &Path) -> String {
    let output = Command::new(proctor_e2e::proctor())
        .args(["result", "view", "--raw"])
        .arg(record)
        .output()
        .unwrap();
    assert!(output.status.success(), "the record can be shown");
    let bytes = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

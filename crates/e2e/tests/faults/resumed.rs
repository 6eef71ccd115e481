//! Event streams that a server closes before the answer, and sessions that it names too early.

use std::time::Duration;

use proctor_e2e::Fixture;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::Direction;
use rustix::process::Signal;

use crate::{BRIEF, SessionExpectation, check, could_not_tell, ok, on_http, unanswered};

fn handshake(modes: &[&str]) -> Vec<String> {
    let mut args = vec!["--era".to_owned(), "handshake".to_owned()];
    for mode in modes {
        args.extend(["--mode".to_owned(), (*mode).to_owned()]);
    }
    args
}

fn called(modes: &[&str], expected: &SessionExpectation) -> SessionOutcome {
    let args = handshake(modes);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let seen = on_http(&args, expected.limits);
    check(&args, &seen, expected);
    seen
}

/// How many messages from the server have this in them.
fn heard(seen: &SessionOutcome, text: &str) -> usize {
    let messages = seen.messages(Direction::ToClient).into_iter();
    messages
        .filter(|message| String::from_utf8_lossy(message).contains(text))
        .count()
}

#[test]
fn a_session_id_counts_only_from_a_successful_initialize() {
    called(&["stray-session"], &ok());
    called(&["stray-session", "sse-responses"], &ok());
}

#[test]
fn a_primed_stream_is_resumed_until_the_answer_has_come_once() {
    for modes in [
        &["closes-stream"][..],
        &["closes-stream=4"],
        &["closes-stream", "no-session"],
        &["closes-stream", "crlf"],
    ] {
        let seen = called(modes, &ok());
        assert_eq!(heard(&seen, "\"hi\""), 1, "{modes:?}");
    }
    let seen = called(&["closes-stream", "repeats-events"], &ok());
    assert_eq!(heard(&seen, "said once"), 1);
    let seen = called(&["closes-stream", "duplicate-answer"], &ok());
    assert_eq!(heard(&seen, "\"hi\""), 1);
}

#[test]
fn a_stream_that_can_not_be_resumed_is_a_call_without_an_answer() {
    let refused = "before the response to `tools/call`, and could not be resumed: HTTP status 405";
    called(&["closes-stream", "no-get"], &could_not_tell(refused));
    // The server primes and closes for ever: time ends it.
    called(
        &["closes-stream=1000000"],
        &unanswered("no response within 700ms", BRIEF),
    );
    // It is resumed, and the server dies.
    called(
        &["closes-stream", "exit-in-call"],
        &could_not_tell("could not be resumed"),
    );
    // What was never primed can't be resumed.
    called(
        &["invalid-json", "sse-responses"],
        &could_not_tell("without an answer"),
    );
}

#[test]
fn the_standing_stream_is_resumed() {
    let server = Fixture::http(&["--era", "handshake", "--mode", "closes-get"]);
    let words = ["call", "sleep", "--args", r#"{"ms":600000}"#];
    let running = Session::new(&words).at(server.url()).start();
    running.wait_for("tools/list_changed");
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(heard(&seen, "tools/list_changed"), 1);
    // One that was not primed and ends is not asked for again.
    let server = Fixture::http(&["--era", "handshake", "--mode", "no-get"]);
    let running = Session::new(&words).at(server.url()).start();
    running.wait_for("405");
    // Nothing shows that nothing happens but time.
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    let seen = running.finish();
    let asked = format!("{:?}", seen.events).matches("GET http").count();
    assert_eq!((seen.code, asked), (Some(130), 1), "{}", seen.stderr);
}

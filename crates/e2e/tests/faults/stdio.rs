//! Servers on stdin and stdout.

use std::time::Duration;

use proctor_e2e::fixture;
use proctor_e2e::session::Session;
use proctor_record::event::{Body, Direction, FindingKind};

use crate::{
    BRIEF, CALL, LENIENT, PATIENT, SessionExpectation, UNCONNECTED, check, check_rows,
    could_not_tell, no_answer, ok, ok_but, on_stdio, unanswered,
};

#[test]
fn a_server_that_exits_ends_as_it_should() {
    check_all(&[
        (&[], ok()),
        (&["--era", "stateless"], ok()),
        (&["--era", "both"], ok()),
        (
            &["--mode", "exit-before-handshake=3"],
            could_not_tell(
                "failed to start: the server exited with code 3; the end of its stderr:\nfixture: exit 3",
            ),
        ),
        (
            &["--mode", "exit-in-handshake=3"],
            could_not_tell("exited with code 3"),
        ),
        (
            &["--mode", "exit-in-call=4"],
            could_not_tell(
                "the server exited with code 4; the end of its stderr:\nfixture: exit 4",
            ),
        ),
        (
            &["--mode", "kill-in-call"],
            could_not_tell("was killed by signal 9 (SIGKILL)"),
        ),
        (
            &["--mode", "abort-in-call"],
            could_not_tell("was killed by signal 6 (SIGABRT)"),
        ),
        (&["--mode", "exit-between-calls=5"], ok()),
    ]);
}

#[test]
fn a_server_without_a_response_or_with_noise_ends_as_it_should() {
    check_all(&[
        // It does not answer.
        (
            &["--mode", "never-answer"],
            unanswered("no response within", BRIEF),
        ),
        (&["--mode", "answer-late=300"], ok()),
        (
            &["--mode", "answer-after-cancel"],
            unanswered("no response within", BRIEF),
        ),
        (
            &["--mode", "flood-progress"],
            unanswered("no response within 6s", LENIENT),
        ),
        (&["--mode", "flood-notifications=5000"], ok()),
        // It makes noise.
        (&["--mode", "banner"], ok_but(FindingKind::Noise)),
        (&["--mode", "log-noise"], ok_but(FindingKind::Noise)),
        (&["--mode", "bom"], ok_but(FindingKind::Noise)),
        (&["--mode", "crlf"], ok_but(FindingKind::Noise)),
        (&["--mode", "blank-lines"], ok_but(FindingKind::Noise)),
        (&["--mode", "split-write"], ok()),
        (
            &["--mode", "torn-line"],
            SessionExpectation {
                code: 3,
                says: "exited with code 3",
                finds: Some(FindingKind::Noise),
                limits: PATIENT,
            },
        ),
    ]);
}

fn check_all(rows: &[(&[&str], SessionExpectation)]) {
    check_rows(rows, on_stdio);
}

#[test]
fn every_wrong_message_is_noted_and_survived() {
    check_all(&[
        (
            &["--mode", "invalid-json"],
            no_answer(FindingKind::Malformed),
        ),
        // 45 texts in each other exhaust the stack of a thread.
        (
            &["--mode", "texts-in-texts=200"],
            no_answer(FindingKind::Malformed),
        ),
        (
            &["--mode", "wrong-shape"],
            SessionExpectation {
                code: 3,
                says: "is not an object",
                finds: Some(FindingKind::Protocol),
                limits: PATIENT,
            },
        ),
        (
            &["--mode", "wrong-shape=content"],
            ok_but(FindingKind::Protocol),
        ),
        (
            &["--mode", "wrong-shape=message"],
            no_answer(FindingKind::Noise),
        ),
        (
            &["--mode", "wrong-shape=version"],
            ok_but(FindingKind::Protocol),
        ),
        (
            &["--mode", "result-and-error"],
            ok_but(FindingKind::ResultAndError),
        ),
        (
            &["--mode", "other-id-type"],
            no_answer(FindingKind::UnknownId),
        ),
        (&["--mode", "unknown-id"], ok_but(FindingKind::UnknownId)),
        (&["--mode", "strange-envelope"], ok()),
        (&["--mode", "invalid-utf8"], ok_but(FindingKind::Malformed)),
        (&["--mode", "lone-surrogate"], ok_but_text()),
        (
            &["--mode", "nul"],
            SessionExpectation {
                code: 0,
                says: "a\\u{0}b",
                finds: None,
                limits: PATIENT,
            },
        ),
    ]);
}

#[test]
fn a_server_that_asks_its_client_gets_an_answer() {
    check_all(&[
        (&["--mode", "asks-client=roots"], ok()),
        (&["--mode", "asks-client=elicitation"], ok()),
        (
            &["--mode", "asks-client=sampling", "--era", "handshake"],
            SessionExpectation {
                code: 0,
                says: "",
                finds: None,
                limits: PATIENT,
            },
        ),
        (
            &["--mode", "asks-client=sampling", "--era", "stateless"],
            could_not_tell("requested input with `sampling/createMessage`"),
        ),
    ]);
}

const fn ok_but_text() -> SessionExpectation {
    SessionExpectation {
        code: 0,
        says: "ud800",
        finds: None,
        limits: PATIENT,
    }
}

#[test]
fn a_server_that_never_reads_is_not_waited_for() {
    let args = ["--mode", "never-reads-stdin"];
    check(
        &args,
        &on_stdio(&args, UNCONNECTED),
        &could_not_tell("failed to start: no response within"),
    );
}

/// Servers that log to stdout are the most common reason of a call without a response.
#[test]
fn what_a_server_says_instead_of_a_response_is_in_the_error() {
    let start = [
        "--mode",
        "never-answer=initialize",
        "--mode",
        "banner",
        "--era",
        "handshake",
    ];
    let seen = on_stdio(&start, UNCONNECTED);
    let says =
        "it broke the protocol: line is not a JSON-RPC message: Fixture server ready on stdio";
    assert!(seen.stderr.contains(says), "{}", seen.stderr);
    let call = ["--mode", "invalid-json"];
    let seen = on_stdio(&call, BRIEF);
    let says = "; the server broke the protocol: not a JSON-RPC message: ";
    assert!(seen.stderr.contains(says), "{}", seen.stderr);
}

#[test]
fn noise_is_an_error_when_strict() {
    let mut call = CALL.to_vec();
    call.push("--strict");
    let seen = Session::new(&call)
        .on(fixture().display().to_string(), &["--mode", "banner"])
        .run();
    assert_eq!(seen.code, Some(1));
    assert!(
        seen.stderr
            .contains("breaks the protocol: line is not a JSON-RPC message"),
        "{}",
        seen.stderr
    );
    let clean = Session::new(&call)
        .on(fixture().display().to_string(), &[])
        .run();
    assert_eq!(clean.code, Some(0), "{}", clean.stderr);
}

#[test]
fn whoever_stops_to_wait_says_so() {
    let seen = on_stdio(&["--mode", "never-answer"], BRIEF);
    let cancelled = seen.frames().any(|frame| {
        frame.direction == Direction::ToServer
            && matches!(&frame.body, Body::Text(text) if text.contains("notifications/cancelled"))
    });
    assert!(cancelled, "{:#?}", seen.events);
}

#[test]
fn what_is_too_large_is_hashed_and_the_next_is_taken() {
    let seen = on_stdio(&["--mode", "big-result=104857600"], PATIENT);
    check(
        &["big-result"],
        &seen,
        &could_not_tell("the response is too large: 104857"),
    );
    let cut = seen.frames().find_map(|frame| match &frame.body {
        Body::Cut { bytes, sha256 } => Some((*bytes, sha256.len())),
        _ => None,
    });
    let (bytes, digits) = cut.expect("the record says what it does not hold");
    assert!(bytes > 104_857_600 && digits == 64);
    assert_eq!(seen.found(FindingKind::TooLarge), 1);
}

#[test]
fn memory_stays_bounded_whatever_comes() {
    let patient = [
        "call",
        "echo",
        "--args",
        r#"{"text":"hi"}"#,
        "--timeout",
        "10m",
        "--total-timeout",
        "10m",
    ];
    let impatient = [
        "call",
        "echo",
        "--args",
        r#"{"text":"hi"}"#,
        "--timeout",
        "5s",
    ];
    let run = |call: &[&str], mode: &str| {
        let args = ["--mode", mode];
        Session::new(call)
            .on(fixture().display().to_string(), &args)
            .within(Duration::from_mins(15))
            .run()
    };
    check(
        &["many-blocks"],
        &run(&patient, "many-blocks=1000000"),
        &SessionExpectation {
            code: 0,
            says: "x",
            finds: None,
            limits: PATIENT,
        },
    );
    check(
        &["deep-nesting"],
        &run(&patient, "deep-nesting=100000"),
        &SessionExpectation {
            code: 0,
            says: "deep",
            finds: None,
            limits: PATIENT,
        },
    );
    check(
        &["endless-line"],
        &run(&impatient, "endless-line=1000000000"),
        &could_not_tell("no response within 5s"),
    );
    check(
        &["stderr-flood"],
        &run(&patient, "stderr-flood=50000000"),
        &ok(),
    );
}

//! Servers over HTTP.

use proctor_core::event::FindingKind;
use proctor_e2e::Fixture;
use proctor_e2e::session::Session;

use crate::{CALL, Expected, check, could_not_tell, ok, ok_but, on_http, patiently_on_http};

#[test]
fn every_fault_ends_as_it_should() {
    let rows: &[(&[&str], Expected)] = &[
        (&[], ok()),
        (&["--era", "stateless"], ok()),
        (&["--era", "both"], ok()),
        (&["--mode", "sse-responses"], ok()),
        (&["--mode", "sse-responses", "--era", "stateless"], ok()),
        (&["--mode", "no-session"], ok()),
        (&["--mode", "no-get"], ok()),
        (
            &["--mode", "never-answer", "--on", "*"],
            could_not_tell("did not come up: no answer within 3s"),
        ),
        (
            &["--mode", "http-status=500"],
            could_not_tell("the server answered with HTTP status 500"),
        ),
        (
            &["--mode", "http-status=404"],
            could_not_tell("the server answered with HTTP status 404"),
        ),
        (
            &["--mode", "redirect=http://127.0.0.1:1/"],
            could_not_tell("the server answered with HTTP status 307"),
        ),
        (
            &["--mode", "truncated-body"],
            could_not_tell("the server closed the connection too early"),
        ),
        (
            &["--mode", "endless-headers"],
            could_not_tell("the headers of the response are too large"),
        ),
        (
            &["--mode", "endless-chunks"],
            could_not_tell("no answer within"),
        ),
        (
            &["--mode", "silent-sse"],
            could_not_tell("no answer within"),
        ),
        (
            &["--mode", "slow-loris"],
            could_not_tell("no answer within"),
        ),
        (
            &["--mode", "never-answer"],
            could_not_tell("no answer within"),
        ),
        (
            &["--mode", "never-answer", "--era", "stateless"],
            could_not_tell("no answer within"),
        ),
        (
            &["--mode", "invalid-json"],
            Expected {
                code: 3,
                says: "without an answer",
                finds: Some(FindingKind::Malformed),
            },
        ),
        (
            &["--mode", "exit-in-call"],
            could_not_tell("the server closed the connection without an answer"),
        ),
        (
            &["--mode", "asks-client=roots", "--mode", "sse-responses"],
            ok(),
        ),
        (
            &[
                "--mode",
                "asks-client=elicitation",
                "--mode",
                "sse-responses",
            ],
            ok(),
        ),
        (
            &["--mode", "flood-progress", "--mode", "sse-responses"],
            could_not_tell("no answer within 2s"),
        ),
        (
            &["--mode", "duplicate-answer", "--mode", "sse-responses"],
            ok_but(FindingKind::DuplicateAnswer),
        ),
    ];
    for (args, expected) in rows {
        check(args, &on_http(args), expected);
    }
}

#[test]
fn a_result_that_is_too_large_is_not_taken_in() {
    let args = ["--mode", "big-result=104857600"];
    let expected = Expected {
        code: 3,
        says: "larger than is taken in",
        finds: Some(FindingKind::TooLarge),
    };
    check(&args, &patiently_on_http(&args), &expected);
}

#[test]
fn an_address_of_the_older_transport_is_found_out() {
    for args in [&[][..], &["--mode", "asks-client=roots"]] {
        let server = Fixture::sse(args);
        let seen = Session::new(&CALL).at(server.url()).run();
        check(args, &seen, &ok());
    }
}

#[test]
fn whoever_stops_to_wait_says_so_before_the_end() {
    for args in [&["--mode", "no-session"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log").display().to_string();
        let mut all = vec![
            "--era",
            "handshake",
            "--mode",
            "never-answer",
            "--log",
            &log,
        ];
        all.extend(args);
        let server = Fixture::http(&all);
        let seen = Session::new(&CALL).at(server.url()).run();
        check(&all, &seen, &could_not_tell("no answer within"));
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.contains("notifications/cancelled"), "{args:?}: {text}");
    }
}

#[test]
fn nobody_there_is_said_at_once() {
    let seen = Session::new(&CALL).at("http://127.0.0.1:1/mcp").run();
    check(&["nobody"], &seen, &could_not_tell("connection refused"));
}

#[test]
fn arguments_marked_for_headers_are_repeated_there() {
    let server = Fixture::http(&["--era", "stateless"]);
    let call = ["call", "env", "--args", r#"{"name":"PATH"}"#];
    let seen = Session::new(&call).at(server.url()).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
}

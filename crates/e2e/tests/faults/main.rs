//! Each row of the fault table that concerns servers and clients, seen through the real binary.
//!
//! Every session is watched (`proctor_e2e::session`): it ends within its bound, its record parses, and
//! no process of it is left. What differs from row to row is in the tables.

mod connecting;
mod http;
mod lists;
mod processes;
mod resumed;
mod stdio;
mod trial_folders;

use proctor_core::event::FindingKind;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::{Fixture, fixture};

/// One call of `echo`, with little patience.
const CALL: [&str; 10] = [
    "call",
    "echo",
    "--args",
    r#"{"text":"hi"}"#,
    "--timeout",
    "700ms",
    "--total-timeout",
    "2s",
    "--connect-timeout",
    "3s",
];

/// The most memory that Proctor may take, whatever a server sends.
const MEMORY_KIB: u64 = 150 * 1024;

fn on_stdio(args: &[&str]) -> SessionOutcome {
    Session::new(&CALL)
        .on(fixture().display().to_string(), args)
        .run()
}

fn patiently_on_stdio(args: &[&str]) -> SessionOutcome {
    Session::new(&patient_call())
        .on(fixture().display().to_string(), args)
        .run()
}

fn patiently_on_http(args: &[&str]) -> SessionOutcome {
    let server = Fixture::http(args);
    Session::new(&patient_call()).at(server.url()).run()
}

/// With all the time that a large message may take on a busy machine.
fn patient_call() -> Vec<&'static str> {
    CALL.into_iter()
        .map(|word| {
            if word.ends_with('s') && word.starts_with(|c: char| c.is_ascii_digit()) {
                "30s"
            } else {
                word
            }
        })
        .collect()
}

fn on_http(args: &[&str]) -> SessionOutcome {
    let server = Fixture::http(args);
    Session::new(&CALL).at(server.url()).run()
}

/// What is expected of a session.
struct SessionExpectation {
    code: i32,
    says: &'static str,
    finds: Option<FindingKind>,
}

const fn ok() -> SessionExpectation {
    SessionExpectation {
        code: 0,
        says: "hi",
        finds: None,
    }
}

const fn ok_but(finds: FindingKind) -> SessionExpectation {
    SessionExpectation {
        code: 0,
        says: "",
        finds: Some(finds),
    }
}

const fn could_not_tell(says: &'static str) -> SessionExpectation {
    SessionExpectation {
        code: 3,
        says,
        finds: None,
    }
}

const fn no_answer(finds: FindingKind) -> SessionExpectation {
    SessionExpectation {
        code: 3,
        says: "no response within",
        finds: Some(finds),
    }
}

#[track_caller]
fn check(args: &[&str], seen: &SessionOutcome, expected: &SessionExpectation) {
    let SessionExpectation { code, says, finds } = expected;
    assert_eq!(seen.code, Some(*code), "{args:?}: {seen:#?}");
    let said = seen.stdout.contains(says) || seen.stderr.contains(says);
    assert!(
        said,
        "{args:?} does not say {says:?}: {} {}",
        seen.stdout, seen.stderr
    );
    if let Some(kind) = finds {
        assert!(
            seen.found(*kind) > 0,
            "{args:?} does not find {kind:?}: {:#?}",
            seen.events
        );
    }
    assert!(seen.has_ended(), "{args:?} has no end");
    assert!(
        seen.peak_kib < MEMORY_KIB,
        "{args:?} took {} KiB",
        seen.peak_kib
    );
}

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

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::{Fixture, fixture};
use proctor_record::event::FindingKind;

/// One call of `echo`, with all the time that a busy machine may need.
const CALL: [&str; 10] = PATIENT.call();

/// The time limits of a call.
#[derive(Clone, Copy, PartialEq)]
struct CallLimits {
    response: &'static str,
    total: &'static str,
    connect: &'static str,
}

const PATIENT: CallLimits = CallLimits {
    response: "2m",
    total: "3m",
    connect: "2m",
};

/// For a server that starts, and does not answer.
const BRIEF: CallLimits = CallLimits {
    response: "700ms",
    total: "2s",
    ..PATIENT
};

/// For a server that does not answer but sends messages, which may be late.
const LENIENT: CallLimits = CallLimits {
    response: "4s",
    total: "6s",
    ..PATIENT
};

/// For a server that does not start.
const UNCONNECTED: CallLimits = CallLimits {
    connect: "3s",
    ..BRIEF
};

impl CallLimits {
    const fn call(self) -> [&'static str; 10] {
        [
            "call",
            "echo",
            "--args",
            r#"{"text":"hi"}"#,
            "--timeout",
            self.response,
            "--total-timeout",
            self.total,
            "--connect-timeout",
            self.connect,
        ]
    }
}

/// The most memory that Proctor may take, whatever a server sends.
const MEMORY_KIB: u64 = 150 * 1024;

fn on_stdio(args: &[&str], limits: CallLimits) -> SessionOutcome {
    Session::new(&limits.call())
        .on(fixture().display().to_string(), args)
        .run()
}

fn on_http(args: &[&str], limits: CallLimits) -> SessionOutcome {
    let server = Fixture::http(args);
    Session::new(&limits.call()).at(server.url()).run()
}

/// What is expected of a session with these limits.
struct SessionExpectation {
    code: i32,
    says: &'static str,
    finds: Option<FindingKind>,
    limits: CallLimits,
}

/// Runs and checks the rows of a table.
fn check_rows(
    rows: &[(&[&str], SessionExpectation)],
    run: fn(&[&str], CallLimits) -> SessionOutcome,
) {
    for (args, expected) in rows {
        let mut seen = run(args, expected.limits);
        let is_found = expected.finds.is_none_or(|kind| seen.found(kind) > 0);
        if !is_found && expected.limits == BRIEF {
            // On a busy machine, the wrong message came after the time limit.
            seen = run(args, LENIENT);
        }
        check(args, &seen, expected);
    }
}

const fn ok() -> SessionExpectation {
    SessionExpectation {
        code: 0,
        says: "hi",
        finds: None,
        limits: PATIENT,
    }
}

const fn ok_but(finds: FindingKind) -> SessionExpectation {
    SessionExpectation {
        code: 0,
        says: "",
        finds: Some(finds),
        limits: PATIENT,
    }
}

const fn could_not_tell(says: &'static str) -> SessionExpectation {
    SessionExpectation {
        code: 3,
        says,
        finds: None,
        limits: PATIENT,
    }
}

const fn unanswered(says: &'static str, limits: CallLimits) -> SessionExpectation {
    SessionExpectation {
        limits,
        ..could_not_tell(says)
    }
}

const fn no_answer(finds: FindingKind) -> SessionExpectation {
    SessionExpectation {
        code: 3,
        says: "no response within",
        finds: Some(finds),
        limits: BRIEF,
    }
}

#[track_caller]
fn check(args: &[&str], seen: &SessionOutcome, expected: &SessionExpectation) {
    let SessionExpectation {
        code, says, finds, ..
    } = expected;
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

//! Servers that can't be reached, or are slow to come up: what is said of them, and what is not held
//! against them.

use std::io::{Read, Write};
use std::net::TcpListener;

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::FindingKind;

use crate::{
    BRIEF, CALL, CallLimits, PATIENT, UNCONNECTED, check, could_not_tell, ok, on_http, on_stdio,
};

const LIBRARY: [&str; 6] = [
    "error sending request",
    "client error",
    "tcp connect error",
    "os error",
    "error reading a body",
    "message completed",
];

/// The last line of what is said, which names the address, what was asked, and the reason.
#[track_caller]
fn says(seen: &SessionOutcome, expected: &[&str]) {
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    for part in expected {
        assert!(seen.stderr.contains(part), "no {part:?}: {}", seen.stderr);
    }
    for word in LIBRARY {
        assert!(!seen.stderr.contains(word), "{word:?}: {}", seen.stderr);
    }
}

fn call_at(url: &str) -> SessionOutcome {
    Session::new(&CALL).at(url).run()
}

/// The address of a server that answers every connection with these bytes.
fn answering(bytes: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(bytes.as_bytes());
        }
    });
    format!("{address}")
}

#[test]
fn a_failure_to_connect_names_the_address_the_request_and_the_reason() {
    let seen = call_at("http://me:sesame@127.0.0.1:1/mcp?key=sesame");
    let whole = "error: the server `server` failed to start: could not connect to \
                 http://127.0.0.1:1/mcp while sending `initialize`: connection refused\n";
    says(&seen, &[whole]);
    assert!(!seen.stderr.contains("sesame"), "{}", seen.stderr);
    let seen = call_at("http://no-such-host.invalid/mcp");
    says(
        &seen,
        &[
            "could not connect to http://no-such-host.invalid/mcp",
            "DNS lookup failed",
        ],
    );
    let plain = answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    says(
        &call_at(&format!("https://{plain}/mcp")),
        &["could not connect to https://", "TLS"],
    );
    let closing = answering("");
    says(
        &call_at(&format!("http://{closing}/mcp")),
        &[
            "no response to `initialize` from http://",
            "closed the connection",
        ],
    );
    let garbage = answering("SSH-2.0-OpenSSH_9.2\r\n");
    says(
        &call_at(&format!("http://{garbage}/mcp")),
        &["the response is not valid HTTP"],
    );
}

#[test]
fn an_error_page_is_reduced_to_its_text() {
    let page = answering(
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n\
         <html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1>\
         <script>alert(1)</script><p>the \x1b[31mpod</p></body></html>",
    );
    let seen = call_at(&format!("http://{page}/mcp"));
    let text = format!(
        "http://{page}/mcp answered `initialize` with HTTP status 502: 502 Bad Gateway the \\u{{1b}}[31mpod\n"
    );
    says(&seen, &[&text]);
}

#[test]
fn a_late_answer_to_our_probe_is_not_held_against_the_server() {
    // The probe gets a third of the time to connect.
    let limits = CallLimits {
        connect: "15s",
        ..PATIENT
    };
    let words: Vec<&str> = limits.call().into_iter().chain(["--strict"]).collect();
    let fixture = proctor_e2e::fixture().display().to_string();
    let args = ["--era", "handshake", "--mode", "slow-start=6000"];
    let seen = Session::new(&words).on(fixture, &args).run();
    check(&args, &seen, &ok());
    assert_eq!(seen.found(FindingKind::LateAnswer), 0);
}

#[test]
fn the_time_that_was_set_is_named_not_what_the_probe_left_of_it() {
    let args = ["--mode", "never-answer", "--on", "*"];
    check(
        &args,
        &on_stdio(&args, UNCONNECTED),
        &could_not_tell("no response within 3s"),
    );
    check(
        &args,
        &on_http(&args, UNCONNECTED),
        &could_not_tell("no response within 3s"),
    );
    let args = ["--mode", "never-answer"];
    check(
        &args,
        &on_stdio(&args, BRIEF),
        &could_not_tell("no response within 700ms"),
    );
}

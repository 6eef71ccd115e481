//! Exchanges pass unchanged but for the capability, and however long they are.

use std::io::Read;
use std::path::Path;

use mcp_evals::{Capability, splice};
use proctor_e2e::{Fixture, log_lines};
use serde_json::Value;

use super::bytes::{ReceivedBytes, open, post};
use super::{JSON, META, ask, initialize, stateless};
use crate::serve::{ListeningServer, Shelf, text};

/// The lines of a body, with the capability in the one that answers.
fn declared(body: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| {
        let start = line.iter().position(|byte| *byte == b'{');
        let spliced = start.and_then(|start| {
            let spliced = splice::declare(&line[start..], &Capability::with_list_changed()).ok()?;
            Some([&line[..start], &spliced].concat())
        });
        spliced.unwrap_or_else(|| line.to_vec())
    };
    let lines: Vec<Vec<u8>> = body.split(|byte| *byte == b'\n').map(line).collect();
    lines.join(&b'\n')
}

/// The head without what differs from exchange to exchange.
fn plain(got: &ReceivedBytes) -> Vec<String> {
    let lines = got.head.lines().filter(|line| {
        let line = line.to_lowercase();
        ![
            "mcp-session-id",
            "content-length",
            "transfer-encoding",
            "connection",
            "date",
        ]
        .iter()
        .any(|name| line.starts_with(name))
    });
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Bodies; whether each is sent in the session; and the method of one without a session.
fn exchanges() -> [(String, bool, Option<&'static str>); 9] {
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let call = r#"{"name":"add","arguments":{"a":12345678901234567890,"b":1e-7}}"#;
    let discover = "server/discover";
    [
        (initialize(), false, None),
        (initialized.to_owned(), true, None),
        (ask("\"é\"", "tools/list", "{}"), true, None),
        (ask("3", "no/such/method", r#"{"n":1.50}"#), true, None),
        (ask("4", "tools/call", call), true, None),
        ("no JSON".to_owned(), true, None),
        (format!("[{}]", ask("5", "evals/list", "{}")), true, None),
        (ask("6", discover, META), false, Some(discover)),
        (ask("7", "evals/list", META), false, Some("tools/list")),
    ]
}

#[test]
fn e35_http_exchanges_are_the_same_but_for_the_capability() {
    for mode in ["json-responses", "sse-responses", "crlf"] {
        let shelf = Shelf::of("a");
        let direct = Fixture::http(&["--mode", mode]);
        let log = shelf.path("log");
        let behind = Fixture::http(&["--mode", mode, "--log", &log]);
        let served = ListeningServer::before(&shelf, behind, &[]);
        let sessions: Vec<String> = [direct.url(), &served.url]
            .iter()
            .map(|url| {
                post(url, &[JSON], &initialize())
                    .header("mcp-session-id")
                    .unwrap()
                    .to_owned()
            })
            .collect();
        for (body, in_session, method) in &exchanges() {
            let both: Vec<ReceivedBytes> = [direct.url(), &served.url]
                .iter()
                .zip(&sessions)
                .map(|(url, session)| {
                    let mut headers = vec![JSON, ("X-Unknown", "kept")];
                    if *in_session {
                        headers.push(("Mcp-Session-Id", session));
                    }
                    if let Some(method) = method {
                        headers = stateless(method).to_vec();
                    }
                    post(url, &headers, body)
                })
                .collect();
            let place = format!("{mode} {body}");
            assert_eq!(plain(&both[1]), plain(&both[0]), "{place}");
            let expected = declared(&both[0].body);
            assert_eq!(text(&both[1].body), text(&expected), "{place}");
            let is_handshake = body.contains("initialize\"") || body.contains("discover");
            assert_eq!(expected != both[0].body, is_handshake, "{place}");
            if let Some(length) = both[1].header("content-length") {
                assert_eq!(
                    length.parse::<usize>().unwrap(),
                    both[1].body.len(),
                    "{place}"
                );
            }
        }
        let seen = served.finish();
        assert_eq!(seen.code, Some(0), "{}", seen.stderr);
        let came: Vec<Value> = log_lines(Path::new(&log));
        let kept = came
            .iter()
            .any(|line| line.to_string().to_lowercase().contains("x-unknown: kept"));
        assert!(kept, "{came:?}");
    }
}

#[test]
fn e35_endless_bodies_pass_in_little_memory() {
    let shelf = Shelf::of("a");
    for sse in ["json-responses", "sse-responses"] {
        let endless = [
            "--mode",
            "endless-line=300000000",
            "--on",
            "*",
            "--mode",
            sse,
        ];
        let served = ListeningServer::before(&shelf, Fixture::http(&endless), &[]);
        // The answer to a handshake is looked at, as far as that goes.
        let mut stream = open(&served.url, "POST", &[JSON], initialize().as_bytes());
        let mut seen = 0;
        let mut buffer = vec![0; 1 << 20];
        while seen < 290_000_000 {
            let read = stream.get_mut().read(&mut buffer).unwrap();
            assert!(read > 0, "{sse}: {seen}");
            seen += read;
        }
        let peak = served.spoken.peak_kib();
        assert!(peak < 150 << 10, "{sse}: {peak} KiB");
        served.finish();
    }
}

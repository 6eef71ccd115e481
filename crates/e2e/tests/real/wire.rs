//! The record is what went over the wire, byte for byte, whatever the server mixes into it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::{Fixture, fixture, log_lines, tee};
use proctor_record::event::{Direction, EventKind};
use serde_json::value::RawValue;

/// A session on a server behind a tee.
pub struct TeedStream {
    pub seen: SessionOutcome,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl TeedStream {
    pub fn run(session: Session, server: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session");
        let mut words = vec![file.to_str().unwrap(), "--"];
        words.extend(server.iter().map(String::as_str));
        let seen = session.on(tee().to_str().unwrap(), &words).run();
        Self {
            seen,
            file,
            _folder: folder,
        }
    }

    /// The record has what the tee saw.
    pub fn check_record(&self) {
        self.check(Direction::ToServer, "in");
        self.check(Direction::ToClient, "out");
    }

    fn check(&self, direction: Direction, extension: &str) {
        let seen = std::fs::read(self.file.with_extension(extension)).unwrap();
        let mut recorded = self.seen.lines(direction);
        // A torn last line has no end.
        if !seen.ends_with(b"\n") {
            recorded.pop();
        }
        assert!(!seen.is_empty(), "the tee saw nothing");
        assert_eq!(
            String::from_utf8_lossy(&recorded),
            String::from_utf8_lossy(&seen),
            "{direction:?}"
        );
        assert_eq!(recorded, seen, "{direction:?}");
    }
}

#[test]
fn every_byte_of_a_fixture_is_recorded() {
    let odd: &[(&str, &[&str])] = &[
        ("plain", &[]),
        ("handshake", &["--era", "handshake"]),
        ("banner", &["--mode", "banner"]),
        ("log noise", &["--mode", "log-noise"]),
        ("CR LF", &["--mode", "crlf"]),
        ("blank lines", &["--mode", "blank-lines"]),
        ("byte order mark", &["--mode", "bom"]),
        ("two writes", &["--mode", "split-write"]),
        ("no UTF-8", &["--mode", "invalid-utf8"]),
        ("NUL", &["--mode", "nul=raw"]),
        ("torn line", &["--mode", "torn-line"]),
        ("a blob", &["--mode", "big-result=100000"]),
    ];
    for (name, modes) in odd {
        let mut server = vec![fixture().to_str().unwrap().to_owned()];
        server.extend(modes.iter().map(ToString::to_string));
        let arguments = r#"{"a": 12345678901234567890, "b":  1e-7}"#;
        // A raw NUL is no answer, so that its time limit ends the call.
        let timeout = if *name == "NUL" { "5s" } else { "2m" };
        let session = Session::new(&["call", "add", "--args", arguments, "--timeout", timeout]);
        let teed = TeedStream::run(session, &server);
        assert!(teed.seen.has_ended(), "{name}: {}", teed.seen.stderr);
        teed.check_record();
    }
}

#[test]
fn every_message_over_streamable_http_is_recorded() {
    // A stream that opens as the session ends may be refused when nobody listens any more.
    let handshake = ["--era", "handshake", "--mode", "no-get"];
    for modes in [&[][..], &handshake, &["--mode", "sse-responses"]] {
        witnessed(modes, Fixture::http);
    }
}

#[test]
fn every_message_over_the_older_transport_is_recorded() {
    witnessed(&[], Fixture::sse);
}

fn witnessed(modes: &[&str], start: impl Fn(&[&str]) -> Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut arguments = vec!["--log", log.to_str().unwrap()];
    arguments.extend(modes);
    let server = start(&arguments);
    let arguments = r#"{"a": 12345678901234567890, "b": 2}"#;
    let seen = Session::new(&["call", "add", "--args", arguments])
        .at(server.url())
        .run();
    assert_eq!(seen.code, Some(0), "{modes:?}: {}", seen.stderr);
    let log = log_lines(&log);
    for (direction, dir) in [(Direction::ToServer, "in"), (Direction::ToClient, "out")] {
        let witnessed = log.iter().filter(|line| line["dir"] == dir);
        let witnessed: Vec<&str> = witnessed
            .filter_map(|line| line["text"].as_str())
            // A request without a body, such as GET, is no message.
            .filter(|text| !text.is_empty())
            .collect();
        let recorded: Vec<String> = seen
            .messages(direction)
            .into_iter()
            .map(|message| String::from_utf8(message).unwrap())
            .collect();
        assert_eq!(recorded, witnessed, "{modes:?} {direction:?}");
    }
    let heads = log.iter().filter_map(|line| line["head"].as_str());
    let witnessed = methods(heads);
    let heads = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::Http(http) if http.direction == Direction::ToServer => Some(http.line.as_str()),
        _ => None,
    });
    assert_eq!(methods(heads), witnessed, "{modes:?}");
}

/// The methods of HTTP requests. A GET may have been given up before it was sent.
fn methods<'a>(heads: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    heads
        .filter_map(|head| head.split_whitespace().next())
        .filter(|method| *method != "GET")
        .collect()
}

#[test]
fn tools_as_json_are_the_words_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let seen = Session::new(&["tools", "-o", "json"])
        .on(
            fixture().to_str().unwrap(),
            &["--log", log.to_str().unwrap()],
        )
        .run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let log = log_lines(&log);
    let tools = log
        .iter()
        .filter_map(|line| line["text"].as_str())
        .find_map(tools_of)
        .unwrap();
    assert_eq!(tools.len(), 8);
    for tool in tools {
        let tool = tool.get();
        assert!(
            seen.stdout.contains(tool),
            "{tool} is not in {}",
            seen.stdout
        );
    }
}

/// The tools that a message lists, as they stand in it.
fn tools_of(message: &str) -> Option<Vec<&RawValue>> {
    let message: BTreeMap<String, &RawValue> = serde_json::from_str(message).ok()?;
    let result: BTreeMap<String, &RawValue> =
        serde_json::from_str(message.get("result")?.get()).ok()?;
    serde_json::from_str(result.get("tools")?.get()).ok()
}

//! The same exchange, direct and through everything that stands on stdio: the same bytes both ways, the
//! same stderr, the same end.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor_e2e::{fixture, proctor, tee};
use proctor_record::event::Direction;

use super::stage::{RecordedRun, Stage, lines};
use crate::stdio::{ProgramOutput, StdioKind, StdioProgram, on_files};

/// What a client says: also things that no client should.
const FIRST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"x\":{}},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}
{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}
\r
{ \"jsonrpc\":\"2.0\", \"method\":\"notifications/of-the-future\",\"x\":12345678901234567890 }\r
{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"no/such\"}
";
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"\xc3\xa9\"}}}
";
/// Not even a line.
const LAST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff";

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyRoute {
    Direct,
    Relay,
    Record,
}

/// What a session came to.
#[derive(Debug, PartialEq, Eq)]
struct SessionTrace {
    said: ProgramOutput,
    /// What the server got.
    got: Vec<u8>,
}

fn talk(command: Command, ends: Option<StdioKind>, answer: &str) -> ProgramOutput {
    let Some(ends) = ends else {
        return on_files(command, &[FIRST, CALL, LAST].concat());
    };
    let mut talk = StdioProgram::start(command, ends);
    talk.say(FIRST);
    talk.hears("\"id\":\"a\" }");
    talk.say(CALL);
    talk.hears(answer);
    talk.say(LAST);
    talk.close();
    talk.end()
}

/// The exchange one way, with what is in its record.
fn exchange(
    way: ProxyRoute,
    talk: &dyn Fn(Command) -> ProgramOutput,
    server: &[&str],
    file: &Path,
) -> (ProgramOutput, Option<RecordedRun>) {
    match way {
        ProxyRoute::Direct => {
            let mut command = Command::new(server[0]);
            command.args(&server[1..]);
            (talk(command), None)
        }
        ProxyRoute::Relay => {
            let stage = Stage::new(server);
            let said = talk(stage.command());
            (said, Some(stage.finish()))
        }
        ProxyRoute::Record => {
            let mut command = Command::new(proctor());
            let out = file.with_extension("runs");
            command.arg("record").arg("--out").arg(&out);
            command.arg("--").args(server);
            let mut said = talk(command);
            // It says what it does, before and after what the server says.
            let own = |line: &&str| !line.starts_with("proctor record: ");
            let lines: Vec<&str> = said.stderr.split_inclusive('\n').filter(own).collect();
            said.stderr = lines.concat();
            if let Some(signal) = said.signal.take() {
                said.code = Some(128 + signal);
            }
            let run = fs::read_dir(&out).expect("runs").next().expect("a run");
            (said, Some(RecordedRun::read(&run.expect("a run").path())))
        }
    }
}

#[track_caller]
fn check(mode: Option<&str>, answer: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    for ends in [Some(StdioKind::Pipes), Some(StdioKind::Sockets), None] {
        let file = |way: ProxyRoute| folder.path().join(format!("{way:?}-{ends:?}"));
        let seen = |way: ProxyRoute| {
            see(way, mode, &file(way), &|command| {
                talk(command, ends, answer)
            })
        };
        let direct = seen(ProxyRoute::Direct);
        for way in [ProxyRoute::Relay, ProxyRoute::Record] {
            assert_same(
                &direct,
                &seen(way),
                ends,
                &format!("{mode:?} {way:?} {ends:?}"),
            );
        }
    }
}

#[track_caller]
fn see(
    way: ProxyRoute,
    mode: Option<&str>,
    file: &Path,
    talk: &dyn Fn(Command) -> ProgramOutput,
) -> SessionTrace {
    let (fixture, tee) = (fixture().display().to_string(), tee().display().to_string());
    let log = file.display().to_string();
    // A witness, but for a server that ends by a signal, which the witness would hide.
    let is_killed = mode == Some("kill-in-call");
    let mut server = vec![tee.as_str(), &log, "--"];
    if is_killed {
        server.clear();
    }
    server.extend([fixture.as_str(), "--era", "handshake"]);
    if let Some(mode) = mode {
        server.extend(["--mode", mode]);
    }
    let (mut said, recorded) = exchange(way, talk, &server, file);
    if way == ProxyRoute::Record && is_killed {
        said.signal = said.code.take().map(|code| code - 128);
    }
    let logged = |end: &str| fs::read(file.with_extension(end)).unwrap_or_default();
    let (got, wrote) = (logged("in"), logged("out"));
    if let Some(recorded) = recorded {
        let answers = recorded.messages(Direction::ToClient);
        assert_eq!(answers, lines(&said.stdout), "{mode:?} {way:?}");
        let sent = recorded.messages(Direction::ToServer);
        let all = lines(&[FIRST, CALL, LAST].concat());
        assert!(all.starts_with(&sent), "{mode:?} {way:?}");
        assert!(lines(&got).len() <= sent.len(), "{mode:?} {way:?}");
    }
    assert!(is_killed || said.stdout == wrote, "{mode:?} {way:?}");
    SessionTrace { said, got }
}

#[track_caller]
fn assert_same(direct: &SessionTrace, seen: &SessionTrace, ends: Option<StdioKind>, what: &str) {
    let stderr = &seen.said.stderr;
    assert_eq!(direct.said.code, seen.said.code, "{what}: {stderr}");
    assert_eq!(direct.said.signal, seen.said.signal, "{what}: {stderr}");
    assert_eq!(&direct.said.stderr, stderr, "{what}");
    // What comes at once is answered in any order; and what comes with the end, or not, by chance.
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<String> = lines(bytes)
            .iter()
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        lines.sort();
        lines
    };
    if ends.is_some() {
        let (expected, found) = (&direct.said.stdout, &seen.said.stdout);
        assert_eq!(sorted(expected), sorted(found), "{what}");
    }
    // How much a server that dies has taken in before is a matter of chance.
    if direct.said.code == Some(0) {
        assert_eq!(direct.got, seen.got, "{what}");
        assert_eq!(seen.got, [FIRST, CALL, LAST].concat(), "{what}");
    }
}

const ANSWER: &str = "\"id\":2 }";

#[test]
fn a_session_is_the_same_through_everything() {
    check(None, ANSWER);
    check(Some("stderr=so it begins"), ANSWER);
    check(Some("big-result=3000000"), ANSWER);
}

#[test]
fn noise_passes_unchanged() {
    for mode in [
        "banner",
        "log-noise",
        "blank-lines",
        "bom",
        "crlf",
        "half-line",
        "split-write",
        "flood-notifications=2000",
    ] {
        check(Some(mode), ANSWER);
    }
}

#[test]
fn wrong_answers_pass_unchanged() {
    for (mode, answer) in [
        ("invalid-json", "\"content\":[}\n"),
        ("wrong-shape=message", "42\n"),
        ("other-id-type", "\"id\":\"2\" }"),
        ("result-and-error", "\"id\":2"),
        ("strange-envelope", "\"id\":2"),
        ("invalid-utf8", ANSWER),
        ("lone-surrogate", ANSWER),
        ("nul=raw", ANSWER),
        ("unknown-id", ANSWER),
        ("duplicate-answer", ANSWER),
    ] {
        check(Some(mode), answer);
    }
}

#[test]
fn ends_pass_unchanged() {
    for mode in [
        "exit-before-handshake=5",
        "exit-in-handshake",
        "exit-in-call=7",
        "exit-between-calls",
        "torn-line=9",
        "kill-in-call",
    ] {
        check(Some(mode), ANSWER);
    }
}

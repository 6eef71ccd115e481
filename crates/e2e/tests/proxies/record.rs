//! `proctor record`: sessions as any client starts them.

mod addresses;
mod lenient;
mod noise;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::session::{MARK, own_peak_kib, survivors};
use proctor_e2e::{fixture, proctor};
use proctor_record::event::{Body, Direction, EventKind, FindingKind, Outcome};
use proctor_record::record::RunReader;
use rustix::process::{Pid, Signal, kill_process};

use crate::relay::stage::RecordedRun;
use crate::stdio::{BOUND, StdioKind, StdioProgram, ended, full};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n";
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"hi\"}}}\n";

/// The most memory that Proctor may take, whatever goes through it, without the pages of its program: four copies of
/// the longest line that is kept.
const MEMORY_KIB: u64 = 4 * 32 * 1024;

/// A folder for recordings, and a mark on what is started.
struct RecordingFolder {
    folder: tempfile::TempDir,
    mark: String,
}

impl RecordingFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = format!("{}-{}", std::process::id(), folder.path().display());
        Self { folder, mark }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// `proctor record` in front of a command.
    fn record(&self, server: &[&str]) -> Command {
        self.under(&[], server)
    }

    /// The same, started by another program.
    fn under(&self, wrapper: &[&str], server: &[&str]) -> Command {
        let proctor = proctor().display().to_string();
        let mut words = wrapper.to_vec();
        words.push(&proctor);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("record").arg("--out");
        command.arg(self.out()).arg("--").args(server);
        command
            .env(MARK, &self.mark)
            .current_dir(self.folder.path());
        command
    }

    /// `proctor record` in front of the fixture.
    fn fixture(&self, modes: &[&str]) -> Command {
        let fixture = fixture().display().to_string();
        let mut server = vec![fixture.as_str(), "--era", "handshake"];
        server.extend(modes);
        self.record(&server)
    }

    fn runs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.out()).expect("the folder is there");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    /// The one recording. Nothing of its session is left.
    fn recorded(&self) -> RecordedRun {
        self.nothing_is_left();
        let [run] = &self.runs()[..] else {
            panic!("there is one recording")
        };
        RecordedRun::read(run)
    }

    fn nothing_is_left(&self) {
        let left = survivors(&self.mark);
        assert!(left.is_empty(), "processes are left: {left:?}");
    }
}

fn outcome(recorded: &RecordedRun) -> Option<Outcome> {
    match recorded.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => Some(ended.outcome),
        _ => None,
    }
}

/// A session in which the server has answered once.
fn talk(command: Command) -> StdioProgram {
    let mut talk = StdioProgram::start(command, StdioKind::Pipes);
    talk.say(PING);
    assert!(talk.hears("\"id\":\"p\" }\n"));
    talk
}

#[test]
fn a_session_is_kept_and_told_of() {
    let place = RecordingFolder::new();
    let mut talk = talk(place.fixture(&["--mode", "stderr=from the server"]));
    talk.close();
    let said = talk.end();
    assert_eq!(said.code, Some(0));
    let run = place.runs().remove(0).display().to_string();
    let expected = format!(
        "proctor record: recording to {run}\nfrom the server\nproctor record: 1 messages sent, 1 received; \
         the server exited with code 0 after its client closed the connection; show it with `proctor result view {run}`\n"
    );
    assert_eq!(said.stderr, expected);
    let view = Command::new(proctor())
        .args(["result", "view", "--raw", &run])
        .output();
    let view = String::from_utf8(view.unwrap().stdout).unwrap();
    for part in [
        "#1 agent connects to fixture-server over stdio",
        "#1 → {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}",
        "#1 closed: exited with code 0 after its client closed the connection; stderr: from the server",
        "trial passed",
    ] {
        assert!(view.contains(part), "`{part}` is not in {view}");
    }
    assert_eq!(outcome(&place.recorded()), Some(Outcome::Passed));
}

#[test]
fn a_recording_ends_as_its_server_does() {
    let check = |server: &[&str], code: i32, expected: Outcome| {
        let place = RecordingFolder::new();
        let mut talk = StdioProgram::start(place.record(server), StdioKind::Pipes);
        talk.close();
        assert_eq!(talk.end().code, Some(code), "{server:?}");
        assert_eq!(outcome(&place.recorded()), Some(expected), "{server:?}");
    };
    // They end after their client has closed the connection.
    check(&["cat"], 0, Outcome::Passed);
    check(&["sh", "-c", "cat; exit 41"], 41, Outcome::Failed);
    check(&["sh", "-c", "cat; kill -9 $$"], 137, Outcome::Failed);
    check(&["/no/such/server"], 3, Outcome::Errored);
    let usage = Command::new(proctor())
        .args(["record", "--out", "x"])
        .output();
    assert_eq!(usage.unwrap().status.code(), Some(2));
}

#[test]
fn the_server_gets_the_whole_environment_and_the_folder() {
    let place = RecordingFolder::new();
    let mut command = place.record(&["sh", "-c", "cat; echo \"$ODD_ONE $OPENAI_API_KEY\"; pwd"]);
    command.env("ODD_ONE", "is here");
    command.env("OPENAI_API_KEY", "sk-not-for-the-record");
    let mut talk = StdioProgram::start(command, StdioKind::Pipes);
    talk.close();
    let said = talk.end();
    let folder = place.folder.path().display();
    let expected = format!("is here sk-not-for-the-record\n{folder}\n");
    assert_eq!(String::from_utf8(said.stdout).unwrap(), expected);
    let kept = place.recorded().messages(Direction::ToClient);
    assert_eq!(kept[0], b"is here [redacted:OPENAI_API_KEY]");
}

#[test]
fn sessions_that_start_together_do_not_collide() {
    let place = RecordingFolder::new();
    let mut talks: Vec<StdioProgram> = (0..6)
        .map(|_| StdioProgram::start(place.record(&["cat"]), StdioKind::Pipes))
        .collect();
    for talk in &mut talks {
        talk.say(PING);
        talk.close();
    }
    for talk in talks {
        assert_eq!(talk.end().code, Some(0));
    }
    place.nothing_is_left();
    assert_eq!(place.runs().len(), 6);
    for run in place.runs() {
        let recorded = RecordedRun::read(&run);
        assert_eq!(recorded.messages(Direction::ToServer).len(), 1);
        assert_eq!(outcome(&recorded), Some(Outcome::Passed));
    }
}

#[test]
fn signals_end_the_server_and_the_record() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let place = RecordingFolder::new();
        let talk = talk(place.fixture(&["--mode", "ignores-stdin-close"]));
        talk.signal(signal);
        let said = talk.end();
        assert_eq!(said.code, Some(143), "{}", said.stderr);
        let recorded = place.recorded();
        let expected = "was killed by signal 15 (SIGTERM); Proctor stopped it";
        assert_eq!(recorded.ends(), [expected]);
        assert_eq!(outcome(&recorded), Some(Outcome::Passed));
    }
}

#[test]
fn what_was_recorded_before_a_kill_can_be_read() {
    let place = RecordingFolder::new();
    let talk = talk(place.fixture(&["--mode", "ignores-sigterm", "--mode", "ignores-stdin-close"]));
    talk.signal(Signal::KILL);
    assert_eq!(talk.end().signal, Some(9));
    let recorded = place.recorded();
    assert_eq!(recorded.messages(Direction::ToServer).len(), 1);
    assert_eq!(recorded.messages(Direction::ToClient).len(), 1);
    assert_eq!(outcome(&recorded), None);
}

#[test]
fn a_client_that_goes_takes_the_server_with_it() {
    let place = RecordingFolder::new();
    let modes = ["--mode", "flood-progress", "--mode", "ignores-stdin-close"];
    let mut child = piped(&mut place.fixture(&modes));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(CALL).unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    assert_eq!(ended(&mut child).code(), Some(143));
    let recorded = place.recorded();
    let ends = recorded.ends();
    assert!(
        ends[0].ends_with("Proctor stopped it because its client disconnected"),
        "{ends:?}"
    );
    assert_eq!(outcome(&recorded), Some(Outcome::Passed));
}

#[test]
fn a_session_goes_on_without_a_record() {
    let check = |place: &RecordingFolder, command: Command, says: &str| {
        let mut talk = StdioProgram::start(command, StdioKind::Pipes);
        // More than a record may take that is limited.
        for _ in 0..200 {
            talk.say(PING);
        }
        talk.close();
        let said = talk.end();
        assert_eq!(said.stdout, PING.repeat(200), "{says}");
        assert_eq!(said.code, Some(3), "{}", said.stderr);
        assert!(said.stderr.contains(says), "{} lacks {says}", said.stderr);
        place.nothing_is_left();
    };
    let place = RecordingFolder::new();
    fs::write(place.out(), "a file where a folder should be").unwrap();
    check(
        &place,
        place.record(&["cat"]),
        "error: can't record the session",
    );
    let place = RecordingFolder::new();
    let limit = ["sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"];
    check(
        &place,
        place.under(&limit, &["cat"]),
        "error: the record is incomplete",
    );
    let [run] = &place.runs()[..] else {
        panic!("there is one recording")
    };
    let trials = RunReader::open(run).unwrap().trials().unwrap();
    assert!(!trials[0].ended, "it does not look whole");
}

#[test]
fn noise_is_found_where_a_server_makes_it() {
    let place = RecordingFolder::new();
    let mut talk = talk(place.fixture(&["--mode", "banner", "--mode", "torn-line"]));
    talk.say(CALL);
    talk.end();
    let recorded = place.recorded();
    let noise = recorded.events.iter().filter(
        |event| matches!(&event.event, EventKind::Finding(finding) if finding.kind == FindingKind::Noise),
    );
    assert_eq!(noise.count(), 2, "{:#?}", recorded.events);
}

/// Passes a line without an end through a session; gives how long it came out, and the peak of memory.
fn endless(child: &mut Child, bytes: u64) -> (u64, u64) {
    let started = Instant::now();
    let mut stdout = child.stdout.take().expect("stdout");
    let reading = std::thread::spawn(move || {
        let (mut chunk, mut total) = (vec![0; 1 << 20], 0);
        while let Ok(read @ 1..) = stdout.read(&mut chunk) {
            total += read as u64;
        }
        total
    });
    let mut stdin = child.stdin.take().expect("stdin");
    let writing = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..bytes >> 20 {
            stdin.write_all(&chunk).expect("it is taken");
        }
    });
    let mut peak = 0;
    while child.try_wait().expect("it is there").is_none() {
        peak = peak.max(own_peak_kib(child.id()).unwrap_or(0));
        assert!(started.elapsed() < 4 * BOUND, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    writing.join().expect("all is written");
    (reading.join().expect("all is read"), peak)
}

#[test]
fn a_gigabyte_without_a_line_feed_passes_in_little_memory() {
    let place = RecordingFolder::new();
    let bytes = 1 << 30;
    let mut child = piped(&mut place.record(&["cat"]));
    let (passed, peak) = endless(&mut child, bytes);
    assert_eq!(passed, bytes);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(peak < MEMORY_KIB, "it took {peak} KiB");
    let recorded = place.recorded();
    let cut = recorded
        .events
        .iter()
        .filter_map(|event| match &event.event {
            EventKind::Frame(frame) => match &frame.body {
                Body::Cut { bytes, sha256 } => Some((frame.direction, *bytes, sha256.as_str())),
                _ => None,
            },
            _ => None,
        });
    let mut directions: Vec<_> = cut.collect();
    directions.sort_by_key(|(direction, ..)| *direction == Direction::ToClient);
    let hash = directions[0].2;
    assert_eq!(
        directions,
        [
            (Direction::ToServer, bytes, hash),
            (Direction::ToClient, bytes, hash)
        ]
    );
}

#[test]
fn lines_as_long_as_are_kept_pass_in_little_memory() {
    let place = RecordingFolder::new();
    // The longest that is kept, with a secret in it, which makes copies; and back again.
    let mut line = vec![b'x'; (32 << 20) - 1];
    let secret = b"sk-proj-0123456789abcdefghijklmnop";
    line[1000..1000 + secret.len()].copy_from_slice(secret);
    line.push(b'\n');
    let mut command = place.record(&["cat"]);
    let mut child = piped(command.env("MY_API_KEY", std::str::from_utf8(secret).unwrap()));
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let sent = line.clone();
    let writing = std::thread::spawn(move || {
        stdin.write_all(&sent).unwrap();
        stdin
    });
    let mut back = vec![0; line.len()];
    stdout.read_exact(&mut back).unwrap();
    let peak = own_peak_kib(child.id()).unwrap();
    // It runs until here: a process that has ended has no memory to look at.
    drop(writing.join().unwrap());
    assert!(back == line, "it comes back as it went");
    assert_eq!(ended(&mut child).code(), Some(0));
    assert!(peak < MEMORY_KIB, "it took {peak} KiB");
    let kept = place.recorded().messages(Direction::ToClient);
    assert!(kept[0].windows(secret.len()).all(|part| part != secret));
}

fn piped(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null()).spawn().expect("it starts")
}

#[test]
fn a_help_text_has_a_configuration_to_copy() {
    let help = Command::new(proctor()).args(["record", "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    assert!(help.contains(r#""args": ["record", "--out""#), "{help}");
    assert!(!Path::new(".proctor/runs").exists());
}

#[test]
fn a_client_that_does_not_read_stderr_can_still_end_a_session() {
    let place = RecordingFolder::new();
    let mut command = place.record(&["sh", "-c", "head -c 1000000 /dev/zero >&2; sleep 100"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut session = command.stderr(Stdio::piped()).spawn().unwrap();
    full(session.stderr.as_ref().unwrap());
    kill_process(Pid::from_child(&session), Signal::TERM).unwrap();
    assert_eq!(ended(&mut session).code(), Some(143));
    assert_eq!(outcome(&place.recorded()), Some(Outcome::Passed));
}

#[test]
fn a_flood_of_short_lines_does_not_keep_a_session_from_ending() {
    let place = RecordingFolder::new();
    let mut command = place.record(&["yes", ""]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut session = command.stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = session.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    ended(&mut session);
    let recorded = place.recorded();
    let ends = recorded.ends();
    assert!(
        ends[0].ends_with("Proctor stopped it because its client disconnected"),
        "{ends:?}"
    );
}

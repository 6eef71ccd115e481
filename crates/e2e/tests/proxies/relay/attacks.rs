//! Those who may not come in, and what they try.

use std::fs::{self, File, Permissions};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use proctor_e2e::fixture;
use proctor_wire::proxy::AdmissionPolicy;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Pid;

use super::stage::Stage;
use crate::stdio::{BOUND, StdioKind, StdioProgram};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n";
/// The first message of a relay.
const HAND_OVER: &[u8] = b"H\0\0\0\0";

fn server() -> Vec<String> {
    let fixture = fixture().display().to_string();
    [fixture.as_str(), "--era", "handshake"]
        .map(str::to_owned)
        .to_vec()
}

fn guarded() -> Stage {
    let server = server();
    Stage::guarded(&server.iter().map(String::as_str).collect::<Vec<_>>())
}

fn open() -> Stage {
    let stage = guarded();
    stage.relay().admit_all(AdmissionPolicy::SameUser);
    stage
}

/// What comes back on a connection before it is closed.
fn answer(stream: &mut UnixStream) -> String {
    stream.set_read_timeout(Some(BOUND)).expect("a time-out");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn connect(stage: &Stage) -> UnixStream {
    UnixStream::connect(stage.socket()).expect("the socket is there")
}

fn hand_over(stream: &UnixStream, streams: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    assert!(streams.is_empty() || rights.push(SendAncillaryMessage::ScmRights(streams)));
    let sent = sendmsg(
        stream,
        &[IoSlice::new(HAND_OVER)],
        &mut rights,
        SendFlags::NOSIGNAL,
    );
    assert_eq!(sent, Ok(HAND_OVER.len()));
}

#[test]
fn a_socket_is_where_nobody_else_can_go() {
    let stage = open();
    let socket = stage.socket();
    let folder = socket.parent().unwrap().to_owned();
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(socket.as_os_str().len() < 100);
    stage.finish();
    assert!(!folder.exists());
}

#[test]
fn those_below_the_agent_are_served_and_strangers_are_not() {
    let stage = guarded();
    // An agent that starts its servers through a shell, twice.
    let (program, args) = stage.relay().command();
    let line = format!(
        "sh -c '{} {}; true'; true",
        program.display(),
        args.join(" ")
    );
    let mut agent = Command::new("sh");
    agent.args(["-c", &line]);
    let mut talk = StdioProgram::start(agent, StdioKind::Pipes);
    // It has come, and waits.
    stage.relay().admit(talk.pid());
    talk.say(PING);
    assert!(talk.hears("\"p\""));
    let mut stranger = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = stranger.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(stranger.wait().unwrap().code(), Some(1));
    let why = format!("process {} is not a descendant of the agent", stranger.id());
    let expected = format!("proctor relay: the run did not start the server: {why}\n");
    assert_eq!(said, expected);
    talk.close();
    assert_eq!(talk.end().code, Some(0));
    let recorded = stage.finish();
    assert_eq!(recorded.refusals(), [why]);
    let closed = "exited with code 0 after its client closed the connection";
    assert_eq!(
        recorded.ends(),
        [closed, "Proctor refused all clients of this connection"]
    );
}

#[test]
fn nobody_is_served_before_somebody_is_admitted() {
    let stage = guarded();
    let mut talk = StdioProgram::start(stage.command(), StdioKind::Pipes);
    talk.say(PING);
    // Nothing shows that nothing happens but time.
    std::thread::sleep(Duration::from_millis(300));
    assert!(talk.child.try_wait().unwrap().is_none(), "it waits");
    stage.relay().admit(Pid::from_child(&talk.child));
    assert!(talk.hears("\"p\""));
    talk.close();
    assert_eq!(talk.end().code, Some(0));
    assert_eq!(stage.finish().refusals(), [""; 0]);
}

#[test]
fn another_user_is_turned_away() {
    let stage = open();
    // Only root can be another user.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let socket = stage.socket();
    // As if somebody had opened the door.
    fs::set_permissions(socket.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&socket, Permissions::from_mode(0o777)).unwrap();
    // A copy, in a place that the other user can reach.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let (program, args) = stage.relay().command();
    let copy = folder.path().join("proctor");
    fs::copy(program, &copy).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(copy)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let recorded = stage.finish();
    assert_eq!(recorded.refusals(), ["it belongs to another user, 65534"]);
}

#[test]
fn what_is_no_relay_is_turned_away() {
    let check = |say: &dyn Fn(&mut UnixStream), expected: &str| {
        let stage = open();
        let mut stream = connect(&stage);
        say(&mut stream);
        let text = answer(&mut stream);
        assert!(text.contains(expected), "{text:?} instead of {expected:?}");
        assert_eq!(stage.finish().refusals(), [expected]);
    };
    let null = File::open("/dev/null").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let nonsense = "unexpected message from the relay";
    check(
        &|stream| stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap(),
        nonsense,
    );
    check(&|stream| stream.write_all(b"{}\n").unwrap(), nonsense);
    check(&|stream| stream.write_all(b"L\0\0\0\0").unwrap(), nonsense);
    check(
        &|stream| hand_over(stream, &[]),
        "it handed over 0 streams, not two",
    );
    check(
        &|stream| hand_over(stream, &[reader.as_fd()]),
        "it handed over 1 streams, not two",
    );
    check(
        &|stream| hand_over(stream, &[reader.as_fd(), writer.as_fd(), null.as_fd()]),
        "it handed over 3 streams, not two",
    );
    check(
        &|stream| hand_over(stream, &[null.as_fd(), writer.as_fd()]),
        "the descriptors that it handed over are not streams",
    );
}

#[test]
fn streams_are_handed_over_once() {
    let stage = open();
    let mut stream = connect(&stage);
    let (theirs, mut ours) = UnixStream::pair().unwrap();
    hand_over(&stream, &[theirs.as_fd(), theirs.as_fd()]);
    ours.write_all(PING).unwrap();
    let mut byte = [0];
    ours.read_exact(&mut byte).unwrap();
    hand_over(&stream, &[theirs.as_fd(), theirs.as_fd()]);
    // The server is ended, and that is told.
    assert!(!answer(&mut stream).is_empty());
    let recorded = stage.finish();
    assert_eq!(recorded.refusals(), ["it handed over streams twice"]);
    let ends = recorded.ends();
    assert!(
        ends[0].contains("because its client disconnected"),
        "{ends:?}"
    );
}

#[test]
fn who_says_nothing_is_in_nobodys_way() {
    let stage = open();
    let silent: Vec<UnixStream> = (0..20).map(|_| connect(&stage)).collect();
    let mut talk = StdioProgram::start(stage.command(), StdioKind::Sockets);
    talk.say(PING);
    assert!(talk.hears("\"p\""));
    talk.close();
    assert_eq!(talk.end().code, Some(0));
    // And the end does not wait for them.
    let recorded = stage.finish();
    assert_eq!(recorded.ends().len(), 1);
    drop(silent);
}

#[test]
fn a_relay_without_a_run_says_so() {
    let stage = open();
    let mut command = stage.command();
    stage.finish();
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("proctor relay: no run listens on `"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
}

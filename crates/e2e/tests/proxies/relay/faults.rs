//! Servers and agents that end when they should not, or do not when they should.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use proctor_contain::process::Spawn;
use proctor_e2e::{fixture, proctor};
use proctor_record::event::Direction;
use rustix::process::{Pid, Signal, kill_process};

use super::stage::Stage;
use crate::stdio::{StdioKind, StdioProgram, ended, full};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n";
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"hi\"}}}\n";

fn stage(args: &[&str]) -> Stage {
    let fixture = fixture().display().to_string();
    let mut command = vec![fixture.as_str(), "--era", "handshake"];
    command.extend(args);
    Stage::new(&command)
}

/// A session in which the server has answered once.
fn talk(stage: &Stage) -> StdioProgram {
    let mut talk = StdioProgram::start(stage.command(), StdioKind::Pipes);
    talk.say(PING);
    assert!(talk.hears("\"id\":\"p\" }\n"));
    talk
}

#[test]
fn a_server_that_died_is_told_from_one_that_was_ended() {
    let stage = stage(&["--mode", "exit-in-call=4"]);
    let mut talk = talk(&stage);
    talk.say(CALL);
    let said = talk.end();
    assert_eq!(said.code, Some(4));
    assert_eq!(stage.finish().ends(), ["exited with code 4"]);
}

#[test]
fn a_relay_that_is_killed_takes_its_server_with_it() {
    let stage = stage(&["--mode", "ignores-stdin-close"]);
    let talk = talk(&stage);
    talk.signal(Signal::KILL);
    stage.recorded("connectionClosed");
    let recorded = stage.finish();
    let ends = recorded.ends();
    assert!(
        ends[0].starts_with("was killed by signal 15")
            && ends[0].ends_with("; Proctor stopped it because its client disconnected"),
        "{ends:?}"
    );
}

#[test]
fn a_relay_that_is_asked_to_end_waits_for_its_server() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let stage = stage(&[]);
        let talk = talk(&stage);
        talk.signal(signal);
        let said = talk.end();
        // It ended as the server did, which ended when its stdin was closed.
        assert_eq!(said.code, Some(0), "{said:?}");
        let recorded = stage.finish();
        let expected = "exited with code 0; Proctor stopped it because its client disconnected";
        assert_eq!(recorded.ends(), [expected]);
    }
}

#[test]
fn an_agent_that_does_not_read_stderr_can_still_end_a_relay() {
    let stage = Stage::new(&["sh", "-c", "head -c 1000000 /dev/zero >&2; sleep 100"]);
    let mut command = stage.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut relay = command.stderr(Stdio::piped()).spawn().unwrap();
    full(relay.stderr.as_ref().unwrap());
    kill_process(Pid::from_child(&relay), Signal::TERM).unwrap();
    ended(&mut relay);
    let recorded = stage.finish();
    let ends = recorded.ends();
    assert!(
        ends[0].ends_with("Proctor stopped it because its client disconnected"),
        "{ends:?}"
    );
}

#[test]
fn a_server_that_hangs_can_be_left() {
    let stage = stage(&["--mode", "never-answer", "--mode", "ignores-sigterm"]);
    let mut talk = talk(&stage);
    talk.say(CALL);
    talk.signal(Signal::TERM);
    talk.end();
    stage.finish();
}

#[test]
fn a_client_that_reads_no_more_ends_a_server_that_writes() {
    let stage = stage(&["--mode", "flood-progress", "--mode", "ignores-stdin-close"]);
    let (program, args) = stage.relay().command();
    // Head goes after one line; the input stays open.
    let script = r#"{ printf '%s\n' "$CALL"; exec sleep 60; } | { "$@"; echo "code $?" >&2; } | head -n 1 >/dev/null"#;
    let mut agent = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(program)
        .args(args)
        .env("CALL", std::str::from_utf8(CALL).unwrap().trim_end())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    stage.recorded("connectionClosed");
    let recorded = stage.finish();
    let ends = recorded.ends();
    assert!(
        ends[0].ends_with("Proctor stopped it because its client disconnected"),
        "{ends:?}"
    );
    // The sleep is the shell's, and no part of this.
    let _ = agent.kill();
    let _ = agent.wait();
}

#[test]
fn all_that_a_flood_brings_is_passed_on_and_kept() {
    let stage = stage(&["--mode", "flood-notifications=20000"]);
    let mut talk = talk(&stage);
    talk.say(CALL);
    assert!(talk.hears("\"id\":2 }"));
    talk.close();
    let said = talk.end();
    assert_eq!(said.code, Some(0));
    let messages = stage.finish().messages(Direction::ToClient);
    assert!(messages.len() > 20_000);
    assert_eq!(super::stage::lines(&said.stdout), messages);
}

#[test]
fn a_server_with_children_is_ended_with_them() {
    let stage = stage(&["--mode", "spawns-children", "--mode", "ignores-sigterm"]);
    let talk = talk(&stage);
    talk.signal(Signal::KILL);
    stage.finish();
}

#[test]
fn an_agent_can_have_two_servers_and_start_one_again() {
    let stage = stage(&[]);
    let mut first = talk(&stage);
    let mut second = talk(&stage);
    first.close();
    assert_eq!(first.end().code, Some(0));
    let third = talk(&stage);
    second.say(PING);
    second.close();
    assert_eq!(second.end().code, Some(0));
    let recorded = stage.finish();
    assert_eq!(recorded.messages(Direction::ToServer).len(), 4);
    let closed = "exited with code 0 after its client closed the connection";
    let stopped = "exited with code 0; Proctor stopped it";
    assert_eq!(recorded.ends(), [closed, closed, stopped]);
    assert_eq!(third.end().code, Some(0), "it is told too");
}

#[test]
fn a_server_that_can_not_be_started_is_told_of() {
    let stage = Stage::new(&["/no/such/server"]);
    let said = StdioProgram::start(stage.command(), StdioKind::Pipes).end();
    assert_eq!(said.code, Some(1));
    let expected = "proctor relay: the run did not start the server: program `/no/such/server`";
    assert!(said.stderr.starts_with(expected), "{}", said.stderr);
    let recorded = stage.finish();
    assert_eq!(recorded.ends().len(), 1);
}

#[test]
fn an_agent_that_is_killed_leaves_nothing_behind() {
    let stage = stage(&[
        "--mode",
        "ignores-sigterm",
        "--mode",
        "ignores-stdin-close",
        "--mode",
        "spawns-children",
    ]);
    let (program, args) = stage.relay().command();
    let script = r#"echo $$ >agent; "$@" & exec sleep 600"#;
    let words = [program.display().to_string()].into_iter().chain(args);
    let agent = Spawn {
        program: "sh".into(),
        args: ["-c", script, "sh"]
            .map(str::to_owned)
            .into_iter()
            .chain(words)
            .map(Into::into)
            .collect(),
        env: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        folder: stage.folder.path().to_owned(),
        guard: proctor(),
        grace: Duration::from_millis(100),
    };
    let agent = stage.inside(|| agent.start()).unwrap();
    stage.relay().admit(agent.guard_pid().unwrap());
    stage.recorded("connectionOpened");
    let pid = std::fs::read_to_string(stage.folder.path().join("agent")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    stage.recorded("connectionClosed");
    let recorded = stage.finish();
    let ends = recorded.ends();
    assert!(ends[0].contains("was killed by signal 9"), "{ends:?}");
}

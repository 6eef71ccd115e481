//! The modes of the process: exits, signals, pipes, children.

use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::wire::{start, start_mode};

/// Waits until something holds, for not too long.
fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_mins(2);
    while Instant::now() < end {
        if holds() {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

fn signal(signal: &str, pid: u32) {
    let script = format!("kill -{signal} {pid}");
    assert!(
        Command::new("sh")
            .args(["-c", &script])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn exits_have_their_code_and_say_why() {
    let (status, _, stderr) = start(&[
        "--mode",
        "exit-before-handshake=7",
        "--mode",
        "stderr=bad config",
    ])
    .end();
    assert_eq!(status.code(), Some(7));
    assert_eq!(
        stderr,
        "bad config\nfixture: exit 7: before the handshake\n"
    );

    let mut server = start_mode("exit-in-handshake");
    server.request(1, "initialize", "{}");
    assert_eq!(server.end().0.code(), Some(3));

    let mut server = start_mode("exit-in-call=0");
    server.echo(1);
    let (status, rest, stderr) = server.end();
    assert_eq!((status.code(), rest.len()), (Some(0), 0));
    assert_eq!(stderr, "fixture: exit 0: in `tools/call`\n");

    let mut server = start_mode("exit-between-calls=5");
    server.echo(1);
    assert_eq!(server.message()["id"], 1);
    assert_eq!(server.end().0.code(), Some(5));
}

#[test]
fn modes_that_would_do_nothing_are_refused() {
    for arguments in [
        &["--mode", "nonsense"][..],
        &["--mode", "big-result"],
        &["--mode", "big-result=many"],
        &["--mode", "banner=1"],
        &["--mode", "asks-client=money"],
        &["--mode", "nul=cooked"],
        &["--mode", "silent-sse"],
        &["--http", "0", "--mode", "banner"],
        &["--mode"],
    ] {
        let (status, _, stderr) = start(arguments).end();
        assert_eq!(status.code(), Some(2), "{arguments:?}");
        assert!(stderr.starts_with("error: "), "{stderr}");
    }
}

#[test]
fn calls_end_by_signals() {
    for (mode, number) in [("kill-in-call", 9), ("abort-in-call", 6)] {
        let mut server = start_mode(mode);
        server.echo(1);
        assert_eq!(server.end().0.signal(), Some(number));
    }
}

#[test]
fn sigterm_ends_a_server_unless_it_ignores_it() {
    let mut server = start(&[]);
    server.echo(1);
    server.line();
    signal("TERM", server.child.id());
    assert_eq!(server.end().0.signal(), Some(15));

    let mut server = start_mode("ignores-sigterm");
    server.echo(1);
    server.line();
    signal("TERM", server.child.id());
    server.echo(2);
    assert_eq!(server.message()["id"], 2);
    server.close_stdin();
    assert!(server.end().0.success());
}

#[test]
fn a_closed_stdin_ends_a_server_unless_it_ignores_it() {
    let mut server = start(&[]);
    server.close_stdin();
    assert!(server.end().0.success());

    let mut server = start_mode("ignores-stdin-close");
    server.close_stdin();
    sleep(Duration::from_millis(100));
    assert!(server.child.try_wait().unwrap().is_none());
}

#[test]
fn children_hold_the_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut server = start_mode(&format!("spawns-children={}", file.display()));
    let pids = || std::fs::read_to_string(&file).unwrap_or_default();
    assert!(eventually(|| pids().lines().count() == 3), "{}", pids());
    let pids: Vec<u32> = pids().lines().map(|pid| pid.parse().unwrap()).collect();
    let stdout = |pid: u32| std::fs::read_link(format!("/proc/{pid}/fd/1")).unwrap();
    let pipe = stdout(server.child.id());
    server.close_stdin();
    assert!(server.child.wait().unwrap().success());
    for pid in pids {
        assert!(eventually(|| Path::new(&format!("/proc/{pid}/fd")).exists()));
        assert_eq!(stdout(pid), pipe);
        signal("KILL", pid);
    }
}

#[test]
fn stdin_is_not_read() {
    let mut server = start_mode("never-reads-stdin=1");
    server.echo(1);
    assert_eq!(server.message()["id"], 1);
    let mut stdin = server.take_stdin();
    let writer = std::thread::spawn(move || stdin.write_all(&vec![b'x'; 1 << 20]));
    sleep(Duration::from_millis(100));
    assert!(!writer.is_finished());
    server.child.kill().unwrap();
    assert_eq!(
        writer.join().unwrap().unwrap_err().kind(),
        ErrorKind::BrokenPipe
    );
}

#[test]
fn stderr_is_flooded_before_the_first_message() {
    let mut server = start_mode("stderr-flood=300000");
    server.close_stdin();
    let (status, _, stderr) = server.end();
    assert!(status.success() && (299_900..=300_000).contains(&stderr.len()));
}

#[test]
fn a_slow_start_is_slow() {
    let begin = Instant::now();
    let mut server = start_mode("slow-start=80");
    server.echo(1);
    server.line();
    assert!(begin.elapsed() >= Duration::from_millis(80));
}

//! What the fixture does to itself as a process: exits, signals, children.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Nothing that was left behind lives longer than this.
const LONGEST: Duration = Duration::from_mins(10);

/// Says why on stderr, and exits.
#[expect(
    clippy::exit,
    reason = "a server that exits at any moment is what is asked for"
)]
pub fn exit(code: u64, why: &str) -> ! {
    complain(&format!("fixture: exit {code}: {why}\n"));
    std::process::exit(i32::try_from(code).unwrap_or(1));
}

pub fn complain(text: &str) {
    // Nobody may be listening, and that must not change what the fixture does.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Ends the process by SIGKILL. Std has no `kill`, and the parent of a shell is the process itself.
pub fn kill_self() -> ! {
    complain("fixture: SIGKILL\n");
    let _ = Command::new("sh").args(["-c", "kill -KILL $PPID"]).status();
    exit(70, "could not kill itself");
}

pub fn abort() -> ! {
    complain("fixture: SIGABRT\n");
    std::process::abort();
}

/// Does nothing for so long that whoever waits gives up, and then exits.
pub fn stay() -> ! {
    sleep(LONGEST);
    exit(71, "stayed for too long");
}

/// Starts the program again with SIGTERM ignored: a disposition that `exec` keeps, and std can't set.
pub fn restart_without_sigterm(arguments: &[String]) -> ! {
    let program = std::env::current_exe().unwrap_or_default();
    let error = Command::new("sh")
        .args(["-c", r#"trap "" TERM; exec "$0" "$@" --sigterm-ignored"#])
        .arg(program)
        .args(arguments)
        .exec();
    exit(72, &format!("could not start again: {error}"));
}

/// A shell with a child of its own, and a grandchild in a session of its own that ignores SIGTERM.
pub fn spawn_children(pids: &str) {
    let tree = r#"echo $$ >>"$0"; sleep 600 & echo $! >>"$0"; wait"#;
    let tree = Command::new("sh").args(["-c", tree, pids]).spawn();
    let stray =
        r#"trap "" TERM HUP INT; exec setsid --fork sh -c 'echo $$ >>"$0"; exec sleep 600' "$0""#;
    let stray = Command::new("sh").args(["-c", stray, pids]).status();
    if let Err(error) = tree.map(drop).and(stray.map(drop)) {
        exit(73, &format!("could not start a child: {error}"));
    }
}

//! Process-level faults: exits, signals, children.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// The maximum lifetime of anything that is left behind.
const LONGEST: Duration = Duration::from_mins(10);

/// Prints the reason to stderr, and exits.
#[expect(clippy::exit, reason = "tests need a server that exits at any moment")]
pub fn exit(code: u64, why: &str) -> ! {
    complain(&format!("fixture: exit {code}: {why}\n"));
    std::process::exit(i32::try_from(code).unwrap_or(1));
}

pub fn complain(text: &str) {
    // A closed stderr must not change the behaviour of the fixture.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Ends the process with SIGKILL. The standard library has no `kill`, so a shell kills its parent.
pub fn kill_self() -> ! {
    complain("fixture: SIGKILL\n");
    let _ = Command::new("sh").args(["-c", "kill -KILL $PPID"]).status();
    exit(70, "could not kill itself");
}

pub fn abort() -> ! {
    complain("fixture: SIGABRT\n");
    std::process::abort();
}

/// Sleeps until any caller has given up, and exits.
pub fn stay() -> ! {
    sleep(LONGEST);
    exit(71, "stayed for too long");
}

/// Starts the program again with SIGTERM ignored: `exec` keeps this setting, and the standard
/// library can't change it.
pub fn restart_without_sigterm(arguments: &[String]) -> ! {
    let program = std::env::current_exe().unwrap_or_default();
    let error = Command::new("sh")
        .args(["-c", r#"trap "" TERM; exec "$0" "$@" --sigterm-ignored"#])
        .arg(program)
        .args(arguments)
        .exec();
    exit(72, &format!("could not start again: {error}"));
}

/// Starts a shell with a child, and a grandchild in its own session that ignores SIGTERM.
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

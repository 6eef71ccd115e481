//! The program behind the hidden command `proctor __guard`: runs one program, and sees to it that
//! nothing of it is left when the program ends, when Proctor asks, or when Proctor is gone, even by
//! SIGKILL.
//!
//! On Linux the guard is a child subreaper: every process that the program starts, however it detaches
//! itself, is a child of the guard in the end. So "no child left" means "no descendant left", and the
//! guard does not end before that. Where there is no subreaper, it looks for what detached itself
//! ([`os`]). It then ends the way the program did: same exit code, same signal.
//!
//! - Asked means SIGTERM to the guard; a second one skips the grace. A signal needs no descriptor that
//!   other processes started at the same time could inherit and keep open.
//! - Proctor's end is noticed by [`os::watch_parent`], which can't mean another process with the same pid.
//! - The guard leads a session of its own and the program a group in it: Ctrl-C reaches neither, and a
//!   program that signals its group misses the guard. There is no terminal to ask for passwords on.
//! - Told to linger, it outlives the program until Proctor asks: what the program left running goes on.
//!   How the program ended it then writes to its own stdin, which is a socket.
//! - A program that stops or kills its guard is killed by Proctor, which watches its guards.
//! - Standard streams are inherited by the program; the guard lets go of its input and output, so
//!   that their ends are the program's to close.
//!
//! Not covered: what left the guard's session, once a program has killed its guard; what a program asks others to start (`docker run`,
//! `systemd-run`, `at`); processes of another user, which are reported on stderr. What macOS doesn't
//! cover besides is in `docs/platforms.md`.

mod order;
mod signals;
mod watch;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitStatus, getpgid, setpgid, setsid};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use thiserror::Error;

pub(crate) use self::order::Order;
use self::signals::GuardSignals;
pub use self::signals::{piped as signal_pipe, take as take_signals};
use self::watch::{GuardOutcome, Watch};
use crate::ended::ProcessExit;
use crate::os;

/// The first argument that turns the binary into a guard.
pub const COMMAND: &str = "__guard";

/// How long the guard goes on after the first SIGKILL before it reports what is left.
pub const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Runs the program that the arguments name: `--grace-ms N --parent PID [--linger] --
/// PROGRAM ARGS…`. A guard that can't do its work says so in one line on stderr, and ends with 127 if the program was
/// not found, 126 if it can't be executed, and 125 for all else.
///
/// To be called first in a process, by nobody who still needs an open file.
pub fn run(args: &[OsString]) -> ExitCode {
    // They may be secret, and a pipe among them would seem open for as long as the program runs. Other MCP
    // clients give their servers none either.
    os::close_inherited();
    let ending = match Order::parse(args).and_then(|order| guard(&order)) {
        Ok(ending) => ending,
        Err(error) => {
            say(&error);
            return error.exit_code().into();
        }
    };
    if !ending.survivors.is_empty() {
        let names = ending.survivors.join(", ");
        say(&format_args!("could not end {names}"));
    }
    for name in &ending.cleared {
        say(&format_args!(
            "{name} cleared its environment: if it detached others, they may still run"
        ));
    }
    ending.status.map_or(FAILED.into(), end_like)
}

fn say(line: &dyn Display) {
    // Nobody may be left to read it.
    let _ = writeln!(io::stderr(), "proctor guard: {line}");
}

/// The exit code of a guard that could not do its work.
const FAILED: u8 = 125;

/// Why a guard could not do its work.
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    #[error("expected `--grace-ms N --parent PID [--linger] -- PROGRAM ARGS…`")]
    Usage,
    #[error("the process that asked for `{program}` is gone")]
    ParentGone { program: String },
    #[error("program `{program}` was not found")]
    NotFound { program: String },
    #[error("program `{program}` names an interpreter that does not exist")]
    NoInterpreter { program: String },
    #[error("program `{program}` can't be executed: {source}")]
    NotExecutable { program: String, source: io::Error },
    #[error("could not {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

impl GuardError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NoInterpreter { .. } | Self::NotExecutable { .. } => 126,
            Self::Usage | Self::ParentGone { .. } | Self::System { .. } => FAILED,
        }
    }
}

/// For `map_err`: what was being done when the system refused.
fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> GuardError {
    move |error| GuardError::System {
        what,
        source: error.into(),
    }
}

fn guard(order: &Order) -> Result<GuardOutcome, GuardError> {
    // First of all, so that a signal can no longer end the guard when there is something to clear.
    let signals = GuardSignals::install().map_err(system("handle signals"))?;
    let gone = || GuardError::ParentGone {
        program: order.program.to_string_lossy().into_owned(),
    };
    let parent = os::watch_parent(order.parent).map_err(system("watch the parent process"))?;
    let parent = parent.ok_or_else(gone)?;
    lead_a_session(order.parent).map_err(system("start a session"))?;
    os::adopt_orphans().map_err(system("prepare to adopt processes"))?;
    let child = start(order)?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let mut watch = Watch::new(child, parent, signals);
    // With its streams still held, the guard would hide that the program closed them.
    let let_go = |null: File| {
        if !order.linger {
            dup2_stdin(&null)?;
        }
        Ok(dup2_stdout(&null)?)
    };
    match null.and_then(let_go) {
        Ok(()) => {
            if let (Some(status), true) = (watch.until_the_end(), order.linger) {
                tell(status);
                watch.until_nothing_is_left();
            }
        }
        Err(error) => {
            watch.end_all(Duration::ZERO);
            return Err(system("let go of the standard streams")(error));
        }
    }
    Ok(watch.end_all(order.grace))
}

/// Proctor starts the guard as the leader of a group, so that Ctrl-C misses it from the first
/// instant. A leader can't start a session: it goes back to its parent's group for a moment, in
/// which the handlers protect it.
fn lead_a_session(parent: Pid) -> rustix::io::Result<Pid> {
    setsid().or_else(|_| {
        setpgid(None, Some(getpgid(Some(parent))?))?;
        setsid()
    })
}

/// Starts the program with empty signal mask and default handlers: the standard library sees to the
/// mask and SIGPIPE, and what the guard handles itself is reset when the program is executed.
#[expect(clippy::disallowed_methods, reason = "the guard starts the program")]
fn start(order: &Order) -> Result<Pid, GuardError> {
    let program = || order.program.to_string_lossy().into_owned();
    let mut command = Command::new(&order.program);
    os::mark(&mut command);
    if order.linger {
        command.stdin(Stdio::null());
    }
    match command.args(&order.args).process_group(0).spawn() {
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The kernel says the same of a script whose first line names nothing.
            let path = Path::new(&order.program);
            Err(if path.is_absolute() && path.exists() {
                GuardError::NoInterpreter { program: program() }
            } else {
                GuardError::NotFound { program: program() }
            })
        }
        // What the system has too little of says nothing of the program.
        Err(error) if is_shortage(&error) => Err(system("start a process")(error)),
        Err(source) => Err(GuardError::NotExecutable {
            program: program(),
            source,
        }),
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE)
    )
}

/// Tells Proctor how the program ended, in one message that [`read_told`] reads.
fn tell(status: WaitStatus) {
    let (word, number) = match status.terminating_signal() {
        Some(signal) => ("signalled", signal),
        None => ("exited", status.exit_status().unwrap_or_default()),
    };
    // If nobody reads it, nobody waits for it.
    let _ = rustix::io::write(
        rustix::stdio::stdin(),
        format!("{word} {number}").as_bytes(),
    );
}

/// How the program of a guard that lingers ended.
pub(crate) fn read_told(message: &[u8]) -> Option<ProcessExit> {
    let (word, number) = std::str::from_utf8(message).ok()?.split_once(' ')?;
    let number = number.parse().ok()?;
    match word {
        "exited" => Some(ProcessExit::Exited(number)),
        "signalled" => Some(ProcessExit::Signalled(number)),
        _ => None,
    }
}

/// Ends this process by a signal. Returns only if the signal ends nothing.
pub fn end_by(signal: i32) {
    os::forbid_core_dump();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Reached for signals that have no name, such as the real-time ones.
    let _ = signal_hook::low_level::raise(signal);
}

/// Ends this process as the program ended, but without a second core dump.
fn end_like(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal() {
        end_by(signal);
    }
    let code = status
        .exit_status()
        .and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(FAILED))
}

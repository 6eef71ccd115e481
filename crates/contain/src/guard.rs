//! The guard: it runs one program, and ends everything that the program started when the program
//! ends, when Proctor asks, or when Proctor ends, even by SIGKILL. Guards are forked by a [`host`]; the
//! hidden command `proctor __guard` is one without a host.
//!
//! On Linux the guard is a child subreaper: every process that the program starts, however it
//! detaches itself, ends up as a child of the guard. So "no child left" means "no descendant left",
//! and the guard does not end before that. Without a subreaper, the guard searches for detached
//! processes ([`os`]). It then ends the way the program did, with the same exit code or signal.
//!
//! - Proctor asks with SIGTERM to the guard; a second one skips the grace period. A signal needs no
//!   descriptor that other processes could inherit and keep open.
//! - The guard notices Proctor's end by the socket of its host, whose other end only Proctor has. Without
//!   a host it uses [`os::watch_parent`].
//! - The guard leads its own session and the program a group in it: Ctrl-C reaches neither, and a
//!   program that signals its group misses the guard. There is no terminal to ask for passwords.
//! - With `--linger` the guard outlives the program, and the processes that the program left keep
//!   running until Proctor asks. The guard reports how the program ended on its own stdin, a socket.
//! - Proctor watches its guards and kills a program that stops or kills its guard.
//! - The program inherits the standard streams. The guard closes its stdin and stdout, so that only
//!   the program keeps them open.
//!
//! Not covered: processes outside the guard's session after the program has killed its guard;
//! processes that a program asks others to start (`docker run`, `systemd-run`, `at`); processes of
//! another user, which the guard reports on stderr. See `docs/platforms.md` for further limits on
//! macOS.

pub mod host;
mod order;
mod report;
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
use rustix::process::{Pid, WaitStatus, getpgid, getppid, setpgid, setsid};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use thiserror::Error;

pub(crate) use self::order::{Order, StartRequest};
pub(crate) use self::report::GuardReport;
use self::signals::GuardSignals;
pub use self::signals::{piped as signal_pipe, take as take_signals};
use self::watch::{GuardOutcome, Lifeline, Watch};
use crate::exit::ProcessExit;
use crate::os;

/// The first argument that makes the binary run as a guard.
pub const COMMAND: &str = "__guard";

/// How long the guard keeps killing after the first SIGKILL before it reports the remaining
/// processes.
pub const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Runs a program: `--grace-ms N --parent PID [--linger] -- PROGRAM ARGS…`. A guard that fails
/// prints one line to stderr and exits with 127 if the program was not found, 126 if it can't be
/// executed, and 125 for any other reason.
///
/// Must be called first in a process: it closes all files that the process inherited.
pub fn run(args: &[OsString]) -> ExitCode {
    // They may be secret, and an inherited pipe would stay open as long as the program runs. Other
    // MCP clients don't pass any to their servers either.
    os::close_inherited();
    let guarded = Order::parse(args).and_then(|(parent, order)| {
        signals::shield().map_err(system("handle signals"))?;
        let null = null().map_err(system("open /dev/null"))?;
        guard(&order, &null, || {
            let parent = os::watch_parent(parent).map_err(system("watch the parent process"))?;
            let parent = parent.ok_or_else(|| GuardError::ParentGone {
                program: order.program.to_string_lossy().into_owned(),
            })?;
            Ok(Lifeline::readable(parent))
        })
    });
    conclude(guarded).into()
}

fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// Says what went wrong, and ends like the program: by its signal, or with the returned code.
fn conclude(ending: Result<GuardOutcome, GuardError>) -> u8 {
    let ending = match ending {
        Ok(ending) => ending,
        Err(error) => {
            say(&error);
            return error.exit_code();
        }
    };
    if !ending.survivors.is_empty() {
        let names = ending.survivors.join(", ");
        say(&format_args!("could not stop {names}"));
    }
    for name in &ending.cleared {
        say(&format_args!(
            "{name} cleared its environment: processes that it detached may still run"
        ));
    }
    ending.status.map_or(FAILED, end_like)
}

fn say(line: &dyn Display) {
    // The reader may have closed the stream.
    let _ = writeln!(io::stderr(), "proctor guard: {line}");
}

/// The exit code of a guard that failed.
const FAILED: u8 = 125;

/// Why a guard failed.
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    #[error("expected `--grace-ms N --parent PID [--linger] -- PROGRAM ARGS…`")]
    Usage,
    #[error("the process that started `{program}` has exited")]
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

/// For `map_err`: names the operation that the system refused.
fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> GuardError {
    move |error| GuardError::System {
        what,
        source: error.into(),
    }
}

fn guard(
    order: &Order,
    null: &File,
    lifeline: impl FnOnce() -> Result<Lifeline, GuardError>,
) -> Result<GuardOutcome, GuardError> {
    // Comes first, so that a signal can't end the guard once there are processes to clean up.
    let signals = GuardSignals::install().map_err(system("handle signals"))?;
    let parent = lifeline()?;
    lead_a_session().map_err(system("start a session"))?;
    os::adopt_orphans().map_err(system("prepare to adopt processes"))?;
    let child = start(order)?;
    let mut watch = Watch::new(child, parent, signals);
    // If the guard kept the streams open, it would hide that the program closed them.
    let let_go = || {
        if !order.linger {
            dup2_stdin(null)?;
        }
        dup2_stdout(null)
    };
    if let Err(error) = let_go() {
        watch.end_all(Duration::ZERO);
        return Err(system("close the standard streams")(error));
    }
    if let (Some(status), true) = (watch.wait_for_end(), order.linger) {
        report_exit(status);
        watch.wait_until_none_is_left();
    }
    Ok(watch.end_all(order.grace))
}

/// Proctor starts the guard host as the leader of a process group, so that Ctrl-C never reaches it. A
/// group leader can't start a session, so the host returns to its parent's group for a moment; its
/// signal handlers protect it meanwhile.
fn lead_a_session() -> rustix::io::Result<Pid> {
    setsid().or_else(|_| {
        setpgid(None, Some(getpgid(getppid())?))?;
        setsid()
    })
}

/// Starts the program with an empty signal mask and default handlers. The standard library resets
/// the mask and SIGPIPE; executing the program resets the handlers of the guard.
#[expect(clippy::disallowed_methods, reason = "the guard starts the program")]
fn start(order: &Order) -> Result<Pid, GuardError> {
    let program = || order.program.to_string_lossy().into_owned();
    let mut command = Command::new(&order.program);
    command.envs(order.env.iter().map(|(name, value)| (name, value)));
    os::mark(&mut command);
    if order.linger {
        command.stdin(Stdio::null());
    }
    match command.args(&order.args).process_group(0).spawn() {
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The kernel returns the same error for a script whose interpreter does not exist.
            let path = Path::new(&order.program);
            Err(if path.is_absolute() && path.exists() {
                GuardError::NoInterpreter { program: program() }
            } else {
                GuardError::NotFound { program: program() }
            })
        }
        // A shortage of system resources is not the program's fault.
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

/// Reports to Proctor how the program ended.
fn report_exit(status: WaitStatus) {
    let report = GuardReport::Ended(exit_of(status)).render();
    // A failed write means that Proctor does not wait for the message.
    let _ = rustix::io::write(rustix::stdio::stdin(), report.as_bytes());
}

fn exit_of(status: WaitStatus) -> ProcessExit {
    match status.terminating_signal() {
        Some(signal) => ProcessExit::Signalled(signal),
        None => status
            .exit_status()
            .map_or(ProcessExit::Unknown, ProcessExit::Exited),
    }
}

/// Ends this process with a signal. Returns only if the signal does not end it.
pub fn end_by(signal: i32) {
    os::forbid_core_dump();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Reached for signals without a name, such as the real-time signals.
    let _ = signal_hook::low_level::raise(signal);
}

/// Ends this process the way the program ended, but without a second core dump.
fn end_like(status: WaitStatus) -> u8 {
    if let Some(signal) = status.terminating_signal() {
        end_by(signal);
    }
    let code = status
        .exit_status()
        .and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(FAILED)
}

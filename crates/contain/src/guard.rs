//! The guard: it runs a program, and ends everything that the program started when the program
//! ends, when Proctor asks, or when Proctor ends, even by SIGKILL. Guards are forked by a [`host`] and run
//! one program after another (`forked`); the hidden command `proctor __guard` is one without a host.
//!
//! On Linux the guard is a child subreaper: every process that the program starts, however it
//! detaches itself, ends up as a child of the guard. So "no child left" means "no descendant left",
//! and only then the guard reports the end. Without a subreaper, the guard searches for detached
//! processes ([`os`]). A guard without a host ends the way the program did, with the same exit code or
//! signal.
//!
//! - Proctor asks with SIGTERM to the guard; a second one skips the grace period. A signal needs no
//!   descriptor that other processes could inherit and keep open.
//! - The guard notices Proctor's end by its channel, whose other end only Proctor has. Without a host it
//!   uses [`os::watch_parent`].
//! - The guard leads its own session and the program a group in it: Ctrl-C reaches neither, and a
//!   program that signals its group misses the guard. There is no terminal to ask for passwords.
//! - A lingering program may leave processes, which keep running until Proctor asks. The guard reports
//!   how the program ended at once.
//! - Proctor watches its guards and kills a program that stops or kills its guard.
//! - The program inherits the standard streams. The guard closes its stdin and stdout, so that only
//!   the program keeps them open.
//!
//! Not covered: processes outside the guard's session after the program has killed its guard;
//! processes that a program asks others to start (`docker run`, `systemd-run`, `at`); processes of
//! another user, which the guard reports on stderr. See `docs/platforms.md` for further limits on
//! macOS.

mod forked;
pub mod host;
mod order;
mod report;
mod signals;
mod watch;

use std::ffi::{CStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use rustix::io::Errno;
use rustix::process::{Pid, WaitStatus, getpgid, getppid, setpgid, setsid};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use thiserror::Error;

use self::order::Order;
pub(crate) use self::order::{LONGEST, StartRequest};
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
    let guarded = Order::parse(args, std::env::vars_os()).and_then(|(parent, order)| {
        signals::shield().map_err(system("handle signals"))?;
        let parent = os::watch_parent(parent).map_err(system("watch the parent process"))?;
        let parent = parent.ok_or_else(|| GuardError::ParentGone {
            program: order.name(),
        })?;
        let null = null().map_err(system("open /dev/null"))?;
        Guard::open(&null, Lifeline::readable(&parent))?.run(&order, |_| ())
    });
    end_like(conclude(guarded))
}

fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// Says what went wrong. Returns how the program ended, or the exit code of a guard that failed.
fn conclude(outcome: Result<GuardOutcome, GuardError>) -> ProcessExit {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            say(&error);
            return ProcessExit::Exited(error.exit_code().into());
        }
    };
    if !outcome.survivors.is_empty() {
        let names = outcome.survivors.join(", ");
        say(&format_args!("could not stop {names}"));
    }
    for name in &outcome.cleared {
        say(&format_args!(
            "{name} cleared its environment: processes that it detached may still run"
        ));
    }
    let failed = ProcessExit::Exited(FAILED.into());
    outcome.status.map_or(failed, exit_of)
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

/// What a guard needs for each of its programs.
struct Guard<'a> {
    null: &'a File,
    parent: Lifeline<'a>,
    signals: GuardSignals,
}

impl<'a> Guard<'a> {
    /// Makes this process a guard.
    fn open(null: &'a File, parent: Lifeline<'a>) -> Result<Self, GuardError> {
        // Comes first, so that a signal can't end the guard once there are processes to clean up.
        let signals = GuardSignals::install().map_err(system("handle signals"))?;
        lead_a_session().map_err(system("start a session"))?;
        os::adopt_orphans().map_err(system("prepare to adopt processes"))?;
        Ok(Self {
            null,
            parent,
            signals,
        })
    }

    /// Runs a program to its end. If it may leave processes and does, `left` is called when the program
    /// itself has ended.
    fn run(
        &self,
        order: &Order<'_>,
        left: impl FnOnce(ProcessExit),
    ) -> Result<GuardOutcome, GuardError> {
        let child = start(order)?;
        let mut watch = Watch::new(child, self.parent, &self.signals);
        // If the guard kept the streams open, it would hide that the program closed them.
        if let Err(error) = dup2_stdin(self.null).and_then(|()| dup2_stdout(self.null)) {
            watch.end_all(Duration::ZERO);
            return Err(system("close the standard streams")(error));
        }
        if let (Some(status), true) = (watch.wait_for_end(), order.linger)
            && watch.is_left()
        {
            left(exit_of(status));
            watch.wait_until_none_is_left();
        }
        Ok(watch.end_all(order.grace))
    }
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

/// Starts the program with an empty signal mask and default handlers; executing it resets the handlers of
/// the guard, but not SIGPIPE, which Rust programs ignore. Unlike the standard library, this copies neither
/// arguments nor variables, which may be secret.
#[expect(clippy::disallowed_methods, reason = "the guard starts the program")]
fn start(order: &Order<'_>) -> Result<Pid, GuardError> {
    let program = order.command.first().ok_or(GuardError::Usage)?;
    let attributes = attributes().map_err(system("prepare a process"))?;
    let files = PosixSpawnFileActions::init().map_err(system("prepare a process"))?;
    let marked = os::mark(&order.env);
    let env: Vec<&CStr> = match &marked {
        Some(marked) => marked.iter().map(AsRef::as_ref).collect(),
        None => order.env.iter().map(AsRef::as_ref).collect(),
    };
    match posix_spawnp(program, &files, &attributes, &order.command, &env) {
        Ok(pid) => Pid::from_raw(pid.as_raw()).ok_or(GuardError::Usage),
        Err(error) => Err(not_started(order, error.into())),
    }
}

fn attributes() -> nix::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
    )?;
    attributes.set_pgroup(nix::unistd::Pid::from_raw(0))?;
    attributes.set_sigmask(&SigSet::empty())?;
    attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE))?;
    Ok(attributes)
}

fn not_started(order: &Order<'_>, error: io::Error) -> GuardError {
    let program = order.name();
    if error.kind() == ErrorKind::NotFound {
        // The kernel returns the same error for a script whose interpreter does not exist.
        let path = Path::new(&program);
        return if path.is_absolute() && path.exists() {
            GuardError::NoInterpreter { program }
        } else {
            GuardError::NotFound { program }
        };
    }
    // A shortage of system resources is not the program's fault.
    if is_shortage(&error) {
        return system("start a process")(error);
    }
    GuardError::NotExecutable {
        program,
        source: error,
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE)
    )
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
fn end_like(exit: ProcessExit) -> ExitCode {
    let code = match exit {
        ProcessExit::Exited(code) => u8::try_from(code).ok(),
        ProcessExit::Signalled(signal) => {
            end_by(signal);
            None
        }
        ProcessExit::Unknown => None,
    };
    code.unwrap_or(FAILED).into()
}

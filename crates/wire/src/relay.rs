//! The hidden command `proctor __relay SOCKET`, which an agent starts instead of a server.
//!
//! It hands its stdin and stdout to the run that listens on the socket, and represents the server
//! to the agent: it writes the server's stderr to its own, and exits like the server. Streams that
//! can't be handed over are copied. It runs as long as the server: if it is asked to end, it has
//! the server ended first; if it is killed, the run notices on the socket.

pub(crate) mod message;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::{dup2_stdin, dup2_stdout};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use self::message::{HEAD, MAX_BODY, RelayMessageKind};
use crate::streams::{copied_in, copied_out};
pub use proctor_contain::guard::{end_by, signal_pipe, take_signals};
use proctor_contain::os::send_descriptors;
use proctor_contain::process::ProcessExit;

/// The first argument that selects the relay.
pub const COMMAND: &str = "__relay";

/// A pipe that is ready for writing accepts at least this many bytes.
const PIPE_BUF: usize = 4096;

/// Represents the server of the run that listens on a socket, whose path is the only argument.
/// Without a run, it prints one line to stderr, and exits with code 1.
///
/// Must be called first in a process, because it takes over the standard streams.
pub fn run(args: &[OsString]) -> ExitCode {
    match relay(args) {
        Ok(ProcessExit::Exited(code)) => {
            u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Ok(ProcessExit::Signalled(signal)) => {
            end_by(signal);
            ExitCode::FAILURE
        }
        Ok(ProcessExit::Unknown) => ExitCode::FAILURE,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

fn say(line: &dyn Display) {
    // Stderr may be closed.
    let _ = writeln!(io::stderr(), "proctor relay: {line}");
}

#[derive(Debug, Error)]
enum RelayError {
    #[error("expected the path of a socket")]
    Usage,
    #[error("no run listens on `{path}`: {source}")]
    NoRun { path: String, source: io::Error },
    #[error("the run did not start the server: {0}")]
    Refused(String),
    #[error("the run has ended")]
    Gone,
    #[error("unexpected message from the run")]
    Unexpected,
    #[error("could not {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

/// For `map_err`: adds the operation that failed.
fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> RelayError {
    move |error| RelayError::System {
        what,
        source: error.into(),
    }
}

fn relay(args: &[OsString]) -> Result<ProcessExit, RelayError> {
    let [path] = args else {
        return Err(RelayError::Usage);
    };
    let control = UnixStream::connect(path).map_err(|source| RelayError::NoRun {
        path: Path::new(path).display().to_string(),
        source,
    })?;
    // Before there is a server that could be left behind.
    let asked = [SIGTERM, SIGINT, SIGHUP].map(signal_pipe);
    let asked: io::Result<Vec<OwnedFd>> = asked.into_iter().collect();
    let asked = asked.map_err(system("handle signals"))?;
    let leaving = hand_over(&control)?;
    let ended = attend(control, &asked);
    if let (Ok(_), Some(leaving)) = (&ended, leaving) {
        // The other end of the pipe is closed: only the server's last output remains.
        let _ = leaving.join();
    }
    ended
}

/// Sends the streams, or pipes in their place, and closes them here, so that the agent sees their
/// end. Returns the thread that copies the output.
fn hand_over(control: &UnixStream) -> Result<Option<JoinHandle<()>>, RelayError> {
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(system("open `/dev/null`"))?;
    let input = copied_in(io::stdin().as_fd()).map_err(system("take stdin"))?;
    let (output, leaving) = copied_out(io::stdout().as_fd()).map_err(system("take stdout"))?;
    let message = message::render(RelayMessageKind::HandOver, &[]);
    match send_descriptors(control, &message, &[input.as_fd(), output.as_fd()]) {
        // A relay that was refused before its first message still reads why.
        Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
        Err(error) => return Err(system("hand over the streams")(error)),
    }
    dup2_stdin(&null).map_err(system("release stdin"))?;
    dup2_stdout(&null).map_err(system("release stdout"))?;
    Ok(leaving)
}

/// Handles messages of the run until the server has ended.
fn attend(control: UnixStream, asked: &[OwnedFd]) -> Result<ProcessExit, RelayError> {
    let mut body = vec![0; MAX_BODY];
    let mut run = RelayRun {
        control,
        asked,
        is_leaving: false,
    };
    loop {
        if !run.wait_for_message()? {
            continue;
        }
        let (kind, body) = receive(&mut run.control, &mut body)?;
        match kind {
            RelayMessageKind::Errors => run.write_errors(body)?,
            RelayMessageKind::Exited | RelayMessageKind::Signalled => {
                let number = message::number(body).ok_or(RelayError::Unexpected)?;
                return Ok(match kind {
                    RelayMessageKind::Exited => ProcessExit::Exited(number),
                    _ => ProcessExit::Signalled(number),
                });
            }
            RelayMessageKind::Refused => {
                let why = String::from_utf8_lossy(body).into_owned();
                return Err(RelayError::Refused(why));
            }
            RelayMessageKind::HandOver | RelayMessageKind::Leave => {
                return Err(RelayError::Unexpected);
            }
        }
    }
}

/// The connection to the run, and the signals that ask this process to end.
struct RelayRun<'a> {
    control: UnixStream,
    asked: &'a [OwnedFd],
    /// Whether the run knows that this process was asked to end.
    is_leaving: bool,
}

impl RelayRun<'_> {
    /// Waits for a message. Returns `false` if this process was asked to end instead, which the run
    /// then knows.
    fn wait_for_message(&mut self) -> Result<bool, RelayError> {
        wait(self.control.as_fd(), PollFlags::IN, self.asked, None)?;
        Ok(!self.tell_if_asked())
    }

    /// Writes to stderr, which may be closed. A full pipe must not keep this process from ending:
    /// then the rest is lost.
    fn write_errors(&mut self, mut bytes: &[u8]) -> Result<(), RelayError> {
        let errors = io::stderr();
        while !bytes.is_empty() {
            let patience = self.is_leaving.then(Timespec::default);
            let may_write = wait(
                errors.as_fd(),
                PollFlags::OUT,
                self.asked,
                patience.as_ref(),
            )?;
            self.tell_if_asked();
            if may_write {
                match rustix::io::write(&errors, &bytes[..bytes.len().min(PIPE_BUF)]) {
                    Ok(written) => bytes = &bytes[written..],
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return Ok(()),
                }
            } else if patience.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn tell_if_asked(&mut self) -> bool {
        let taken = self.asked.iter().map(take_signals);
        let was_asked = taken.fold(false, |any, taken| any | taken);
        if was_asked {
            self.is_leaving = true;
            let leave = message::render(RelayMessageKind::Leave, &[]);
            // If the run has ended, the next read notices.
            let _ = self.control.write_all(&leave);
        }
        was_asked
    }
}

/// Waits until a stream is ready and returns `true`, or until this process is asked to end or the
/// time is over.
fn wait(
    stream: BorrowedFd<'_>,
    ready: PollFlags,
    asked: &[OwnedFd],
    patience: Option<&Timespec>,
) -> Result<bool, RelayError> {
    loop {
        let signals = asked.iter().map(|signal| (signal.as_fd(), PollFlags::IN));
        let mut sources: Vec<PollFd<'_>> = std::iter::once((stream, ready))
            .chain(signals)
            .map(|(source, flags)| PollFd::from_borrowed_fd(source, flags))
            .collect();
        match poll(&mut sources, patience) {
            Ok(_) => return Ok(sources.first().is_some_and(|s| !s.revents().is_empty())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(system("wait for the run")(error)),
        }
    }
}

fn receive<'a>(
    control: &mut UnixStream,
    body: &'a mut [u8],
) -> Result<(RelayMessageKind, &'a [u8]), RelayError> {
    let mut head = [0; HEAD];
    control
        .read_exact(&mut head)
        .map_err(|_| RelayError::Gone)?;
    let (kind, length) = message::read_head(head).ok_or(RelayError::Unexpected)?;
    let body = &mut body[..length];
    control.read_exact(body).map_err(|_| RelayError::Gone)?;
    Ok((kind, body))
}

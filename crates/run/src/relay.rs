//! The program behind the hidden command `proctor __relay SOCKET`: what an agent starts in place of a
//! server.
//!
//! It hands its own stdin and stdout to the run that listens on the socket, and stays to be what the
//! agent sees: it writes the server's stderr to its own, and ends as the server ended. Streams that
//! can't be handed over are copied. It is there for as long as the server is: asked to end, it has
//! the server ended first; killed, it is missed at the other end of the socket.

pub(crate) mod message;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use self::message::{HEAD, Kind, MAX_BODY};
use crate::guard::{end_by, signal_pipe, take_signals};
use crate::process::Ended;
use crate::proxy::{copied_in, copied_out};

/// The first argument that turns the binary into a relay.
pub const COMMAND: &str = "__relay";

/// Stands for the server of the run that listens on a socket, which is the one argument. If there is
/// none it says so in one line on stderr, and ends with 1.
///
/// To be called first in a process, by nobody who still needs its streams.
pub fn run(args: &[OsString]) -> ExitCode {
    match relay(args) {
        Ok(Ended::Exited(code)) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        Ok(Ended::Signalled(signal)) => {
            end_by(signal);
            ExitCode::FAILURE
        }
        Ok(Ended::Unknown) => ExitCode::FAILURE,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

fn say(line: &dyn Display) {
    // Nobody may be left to read it.
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
    #[error("the run is gone")]
    Gone,
    #[error("the run said something that makes no sense")]
    Nonsense,
    #[error("could not {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

/// For `map_err`: what was being done when the system refused.
fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> RelayError {
    move |error| RelayError::System {
        what,
        source: error.into(),
    }
}

fn relay(args: &[OsString]) -> Result<Ended, RelayError> {
    let [path] = args else {
        return Err(RelayError::Usage);
    };
    let control = UnixStream::connect(path).map_err(|source| RelayError::NoRun {
        path: Path::new(path).display().to_string(),
        source,
    })?;
    // Before there is a server to be left behind.
    let asked = [SIGTERM, SIGINT, SIGHUP].map(signal_pipe);
    let asked: io::Result<Vec<OwnedFd>> = asked.into_iter().collect();
    let asked = asked.map_err(system("handle signals"))?;
    let leaving = hand_over(&control)?;
    let ended = attend(control, &asked);
    if let (Ok(_), Some(leaving)) = (&ended, leaving) {
        // The other end of the pipe is closed: all that is left is what the server wrote.
        let _ = leaving.join();
    }
    ended
}

/// Sends the streams, or pipes that stand for them, and lets go of them: else their ends would not be
/// seen. Gives what still copies the output.
fn hand_over(control: &UnixStream) -> Result<Option<JoinHandle<()>>, RelayError> {
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(system("open `/dev/null`"))?;
    let input = copied_in(io::stdin().as_fd()).map_err(system("take stdin"))?;
    let (output, leaving) = copied_out(io::stdout().as_fd()).map_err(system("take stdout"))?;
    match send(control, &[input.as_fd(), output.as_fd()]) {
        // Who was turned away before it could speak still hears why.
        Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
        Err(error) => return Err(system("hand over the streams")(error)),
    }
    dup2_stdin(&null).map_err(system("let go of stdin"))?;
    dup2_stdout(&null).map_err(system("let go of stdout"))?;
    Ok(leaving)
}

fn send(control: &UnixStream, streams: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(streams)) {
        return Err(Errno::NOBUFS);
    }
    let message = message::render(Kind::HandOver, &[]);
    let sent = sendmsg(
        control,
        &[IoSlice::new(&message)],
        &mut rights,
        SendFlags::NOSIGNAL,
    )?;
    // A few bytes into an empty socket are taken whole, or not at all.
    if sent == message.len() {
        Ok(())
    } else {
        Err(Errno::IO)
    }
}

/// Does what the run says until it says how the server ended.
fn attend(mut control: UnixStream, asked: &[OwnedFd]) -> Result<Ended, RelayError> {
    let mut body = vec![0; MAX_BODY];
    loop {
        if was_asked(&control, asked)? {
            let leave = message::render(Kind::Leave, &[]);
            // A run that is gone is noticed below.
            let _ = control.write_all(&leave);
            continue;
        }
        let (kind, body) = receive(&mut control, &mut body)?;
        match kind {
            Kind::Errors => {
                // Nobody may be left to read it.
                let _ = io::stderr().write_all(body);
            }
            Kind::Exited | Kind::Signalled => {
                let number = message::number(body).ok_or(RelayError::Nonsense)?;
                return Ok(match kind {
                    Kind::Exited => Ended::Exited(number),
                    _ => Ended::Signalled(number),
                });
            }
            Kind::Refused => {
                let why = String::from_utf8_lossy(body).into_owned();
                return Err(RelayError::Refused(why));
            }
            Kind::HandOver | Kind::Leave => return Err(RelayError::Nonsense),
        }
    }
}

/// Waits for a message, or until this process is asked to end, which is `true`.
fn was_asked(control: &UnixStream, asked: &[OwnedFd]) -> Result<bool, RelayError> {
    loop {
        let signals = asked.iter().map(AsFd::as_fd);
        let mut sources: Vec<PollFd<'_>> = std::iter::once(control.as_fd())
            .chain(signals)
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        match poll(&mut sources, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(system("wait for the run")(error)),
        }
    }
    let taken = asked.iter().map(take_signals);
    Ok(taken.fold(false, |any, taken| any | taken))
}

fn receive<'a>(
    control: &mut UnixStream,
    body: &'a mut [u8],
) -> Result<(Kind, &'a [u8]), RelayError> {
    let mut head = [0; HEAD];
    control
        .read_exact(&mut head)
        .map_err(|_| RelayError::Gone)?;
    let (kind, length) = message::read_head(head).ok_or(RelayError::Nonsense)?;
    let body = &mut body[..length];
    control.read_exact(body).map_err(|_| RelayError::Gone)?;
    Ok((kind, body))
}

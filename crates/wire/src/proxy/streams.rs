//! Turns a client's descriptors into async streams.
//!
//! Pipes and sockets are used directly. Files and terminals can't be polled, so each goes through a
//! pipe and a thread.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::thread::JoinHandle;

use proctor_contain::os::reopen;
use rustix::fs::{FileType, OFlags};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::session::{ClientInput, ClientStreams, Errors, Output};
use crate::streams::{copied_in, copied_out, kind};

/// Returns the stream to read from a client. Must be called within a tokio runtime.
pub(crate) fn input(descriptor: OwnedFd) -> io::Result<ClientInput> {
    Ok(match kind(&descriptor) {
        Some(FileType::Socket) => Box::new(socket(descriptor)?),
        _ => Box::new(pipe::Receiver::from_owned_fd(reopen(
            descriptor,
            OFlags::RDONLY,
        ))?),
    })
}

/// Returns the stream to write to a client. Must be called within a tokio runtime.
pub(crate) fn output(descriptor: OwnedFd) -> io::Result<Output> {
    Ok(match kind(&descriptor) {
        Some(FileType::Socket) => Box::new(socket(descriptor)?),
        _ => Box::new(pipe::Sender::from_owned_fd(reopen(
            descriptor,
            OFlags::WRONLY,
        ))?),
    })
}

fn socket(descriptor: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdStream::from(descriptor);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// The standard streams of this process.
pub struct ProcessStreams {
    /// The streams for a session.
    pub client: ClientStreams,
    /// Ends when all output is written.
    pub leaving: Option<JoinHandle<()>>,
}

/// Takes over the standard streams of this process for a session. Any other code that reads stdin
/// or writes stdout afterwards uses `/dev/null`. Must be called within a tokio runtime.
pub fn standard() -> io::Result<ProcessStreams> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let from = copied_in(stdin.as_fd())?;
    let (to, leaving) = copied_out(stdout.as_fd())?;
    // If this process kept them open, the other side would not see them close.
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    let client = ClientStreams {
        input: input(from)?,
        output: output(to)?,
        errors: Errors::Own,
    };
    Ok(ProcessStreams { client, leaving })
}

//! A client's descriptors as streams that can be waited for.
//!
//! Pipes and sockets are taken as they are. What can't be waited for (files, terminals) goes through a
//! pipe and a thread of its own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::thread::JoinHandle;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::session::{Client, Errors, Input, Output};

/// Whether a descriptor can be handed to others and waited for.
pub(crate) fn is_stream(descriptor: impl AsFd) -> bool {
    matches!(kind(descriptor), Some(FileType::Fifo | FileType::Socket))
}

fn kind(descriptor: impl AsFd) -> Option<FileType> {
    let stat = fstat(descriptor).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// What a client writes. Must be called within a tokio runtime.
pub(crate) fn input(descriptor: OwnedFd) -> io::Result<Input> {
    Ok(match kind(&descriptor) {
        Some(FileType::Socket) => Box::new(socket(descriptor)?),
        _ => Box::new(pipe::Receiver::from_owned_fd(own(
            descriptor,
            OFlags::RDONLY,
        ))?),
    })
}

/// What a client reads. Must be called within a tokio runtime.
pub(crate) fn output(descriptor: OwnedFd) -> io::Result<Output> {
    Ok(match kind(&descriptor) {
        Some(FileType::Socket) => Box::new(socket(descriptor)?),
        _ => Box::new(pipe::Sender::from_owned_fd(own(
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

/// The same pipe, opened anew: whether it blocks is then nobody else's business. Who can't have that
/// shares it.
fn own(descriptor: OwnedFd, access: OFlags) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).unwrap_or(descriptor)
}

/// The streams of this process.
pub struct Standard {
    /// What they are to a session.
    pub client: Client,
    /// Ends when all that was written to the output has left.
    pub leaving: Option<JoinHandle<()>>,
}

/// Takes the standard streams of this process for a session. What is read from stdin, or written to
/// stdout, by anybody else from here on is lost. Must be called within a tokio runtime.
pub fn standard() -> io::Result<Standard> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let from = copied_in(stdin.as_fd())?;
    let (to, leaving) = copied_out(stdout.as_fd())?;
    // Held here, they would not seem closed when they are.
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    let client = Client {
        input: input(from)?,
        output: output(to)?,
        errors: Errors::Own,
    };
    Ok(Standard { client, leaving })
}

/// The descriptor, or a pipe into which a thread copies what comes from it.
pub(crate) fn copied_in(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let original = descriptor.try_clone_to_owned()?;
    if is_stream(&original) {
        return Ok(original);
    }
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    copy(original, writer)?;
    Ok(reader)
}

/// The descriptor, or a pipe from which a thread copies what comes to it; and when that has ended.
pub(crate) fn copied_out(
    descriptor: BorrowedFd<'_>,
) -> io::Result<(OwnedFd, Option<JoinHandle<()>>)> {
    let original = descriptor.try_clone_to_owned()?;
    if is_stream(&original) {
        return Ok((original, None));
    }
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((writer, Some(copy(reader, original)?)))
}

fn copy(from: OwnedFd, to: OwnedFd) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().spawn(move || {
        // Whoever is at the other end sees that it ended; why is known to nobody.
        let _ = io::copy(&mut File::from(from), &mut File::from(to));
    })
}

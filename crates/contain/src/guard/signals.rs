//! The signals that the guard handles, as pipes that `poll` can wait for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{OFlags, fcntl_setfl};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::{SigId, flag, low_level};

/// Handles the signals that may not end this process before its children: Ctrl-C, a closed terminal,
/// or a stray signal. Handled signals are also reset for programs, so that they don't inherit the
/// ignored SIGINT of a shell's background job.
pub fn shield() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2] {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Tells when a child of this process has changed its state.
#[derive(Debug)]
pub struct ChildSignal {
    pipe: OwnedFd,
    registered: SigId,
}

impl ChildSignal {
    pub fn install() -> io::Result<Self> {
        let (pipe, registered) = register(SIGCHLD)?;
        Ok(Self { pipe, registered })
    }

    /// Readable when the signal has arrived.
    pub fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    /// Stops to use the pipe, which a forked process shares.
    pub fn remove(self) {
        low_level::unregister(self.registered);
    }
}

/// Signals to the guard.
#[derive(Debug)]
pub struct GuardSignals {
    /// Readable when a child has ended.
    pub child_ended: OwnedFd,
    /// Readable when Proctor has asked the guard to end.
    pub asked: OwnedFd,
}

impl GuardSignals {
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            child_ended: piped(SIGCHLD)?,
            asked: piped(SIGTERM)?,
        })
    }
}

/// Empties a pipe. Returns whether a signal had arrived.
pub fn take(pipe: &OwnedFd) -> bool {
    let mut arrived = false;
    let mut bytes = [0; 64];
    while let Ok(1..) = rustix::io::read(pipe, &mut bytes) {
        arrived = true;
    }
    arrived
}

/// Creates a pipe that is readable when a signal has arrived.
pub fn piped(signal: i32) -> io::Result<OwnedFd> {
    Ok(register(signal)?.0)
}

fn register(signal: i32) -> io::Result<(OwnedFd, SigId)> {
    let (reader, writer) = io::pipe()?;
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    for end in [&reader, &writer] {
        fcntl_setfl(end, OFlags::NONBLOCK)?;
    }
    let registered = low_level::pipe::register(signal, writer)?;
    Ok((reader, registered))
}

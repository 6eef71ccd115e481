//! The signals that the guard handles, as pipes that `poll` can wait for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{OFlags, fcntl_setfl};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::{flag, low_level};

/// Signals to the guard. Handled signals are also reset for the program, so that it does not
/// inherit the ignored SIGINT of a shell's background job.
#[derive(Debug)]
pub struct GuardSignals {
    /// Readable when a child has ended.
    pub child_ended: OwnedFd,
    /// Readable when Proctor has asked the guard to end.
    pub asked: OwnedFd,
}

impl GuardSignals {
    pub fn install() -> io::Result<Self> {
        // Neither Ctrl-C nor a closed terminal nor a stray signal may end the guard before its
        // child.
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2] {
            flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
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
    let (reader, writer) = io::pipe()?;
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    for end in [&reader, &writer] {
        fcntl_setfl(end, OFlags::NONBLOCK)?;
    }
    low_level::pipe::register(signal, writer)?;
    Ok(reader)
}

//! The signals that a command which talks to servers listens to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a command, and one that must not.
pub(super) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    /// A file that grows beyond a limit is an error of its write, as long as somebody listens.
    _too_large: Signal,
}

impl Stops {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for Ctrl-C or SIGTERM.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

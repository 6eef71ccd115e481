//! The signals that a command which talks to servers listens to.

use std::io;

use proctor_contain::os::ignores_hangup;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a command, and one that must not.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Nothing for a command that `nohup` started, which outlives its terminal.
    hangup: Option<Signal>,
    /// A file that grows beyond a limit is an error of its write, as long as somebody listens.
    _too_large: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> io::Result<Self> {
        // To listen would undo that it is ignored.
        let hangup = if ignores_hangup() {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
            _too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for Ctrl-C, SIGTERM, or the end of the terminal.
    pub(super) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

//! The signals that stop a command.

use std::io;

use proctor_contain::os::ignores_hangup;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listeners for the signals that stop a command, and for SIGXFSZ, which must not end it.
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`: the command outlives its terminal.
    hangup: Option<Signal>,
    /// With a listener, a write beyond the file size limit returns an error instead of ending the process.
    _too_large: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> io::Result<Self> {
        // A listener would override `nohup`.
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

    /// Waits for Ctrl-C, SIGTERM, or SIGHUP.
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

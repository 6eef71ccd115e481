//! Handles Ctrl-C, SIGTERM and SIGHUP during a run and after it.
//!
//! Its main type is [`RunSignals`]. It has its own thread, so that a blocked stdout can't delay a signal.

use std::io;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::commands::stops::StopSignals;
use crate::exit::Exit;

/// The stage of a run, which decides the effect of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunStage {
    /// Trials run: the runner gets the signal.
    Running,
    /// Proctor writes the end of the record; a second signal ends the process.
    Ending,
    /// Everything is written but the report; a signal ends the process.
    Showing,
}

/// The signal handler of a run.
pub(super) struct RunSignals {
    stage: watch::Sender<RunStage>,
}

impl RunSignals {
    /// Listens from now on. While trials run, each signal is a message on the receiver.
    pub(super) fn listen() -> io::Result<(Self, UnboundedReceiver<()>)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stops = {
            let _inside = runtime.enter();
            StopSignals::listen()?
        };
        let (to, heard) = unbounded_channel();
        let (stage, mut now) = watch::channel(RunStage::Running);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(hear(stops, &to, &mut now)))?;
        Ok((Self { stage }, heard))
    }

    /// Sets the stage of the run.
    pub(super) fn come_to(&self, stage: RunStage) {
        self.stage.send_replace(stage);
    }
}

/// Handles signals until the run is over. With `--watch`, another run follows, which has its own handler.
async fn hear(
    mut stops: StopSignals,
    to: &UnboundedSender<()>,
    now: &mut watch::Receiver<RunStage>,
) {
    let mut is_first = true;
    loop {
        tokio::select! {
            biased;
            () = stops.next() => {}
            () = is_over(now) => return,
        }
        let stage = *now.borrow();
        match stage {
            // The runner gets it as long as it runs.
            RunStage::Running => drop(to.send(())),
            RunStage::Ending if is_first => {}
            RunStage::Ending | RunStage::Showing => Exit::Interrupted.at_once(),
        }
        is_first = false;
    }
}

/// Waits until the owner of the stage is gone.
async fn is_over(now: &mut watch::Receiver<RunStage>) {
    while now.changed().await.is_ok() {}
}

//! Ctrl-C, SIGTERM and SIGHUP, heard at any moment of a run and after it.
//!
//! Its main type is [`RunSignals`]. It has a thread of its own, so that whoever does not read what we write
//! can't keep a signal from being heard.

use std::io;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::commands::stops::StopSignals;
use crate::exit::Exit;

/// How far a run has come, which decides what a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunStage {
    /// The runner decides.
    Running,
    /// The run is over and is written down, which takes a moment; a second signal ends that.
    Ending,
    /// All is written, and whatever is left is for somebody to read.
    Showing,
}

/// The signals of a run.
pub(super) struct RunSignals {
    stage: watch::Sender<RunStage>,
}

impl RunSignals {
    /// Listens from now on. As long as the run goes on, each signal is a message.
    pub(super) fn listen() -> io::Result<(Self, UnboundedReceiver<()>)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stops = {
            let _inside = runtime.enter();
            StopSignals::listen()?
        };
        let (to, heard) = unbounded_channel();
        let (stage, now) = watch::channel(RunStage::Running);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(hear(stops, &to, &now)))?;
        Ok((Self { stage }, heard))
    }

    /// The run has come further.
    pub(super) fn come_to(&self, stage: RunStage) {
        self.stage.send_replace(stage);
    }
}

async fn hear(mut stops: StopSignals, to: &UnboundedSender<()>, now: &watch::Receiver<RunStage>) {
    let mut is_first = true;
    loop {
        stops.next().await;
        let stage = *now.borrow();
        match stage {
            // The runner hears it as long as it runs.
            RunStage::Running => drop(to.send(())),
            RunStage::Ending if is_first => {}
            RunStage::Ending | RunStage::Showing => Exit::Interrupted.at_once(),
        }
        is_first = false;
    }
}

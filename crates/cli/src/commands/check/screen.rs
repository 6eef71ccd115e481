//! The thread that shows how a run goes on.
//!
//! Its main type is [`RunScreen`]. A terminal that is asleep, full or gone holds up nothing but this thread:
//! what it can't take in time is left out, and it says how much that was.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use proctor_core::event::Outcome;
use proctor_run::progress::Progress;

use super::display::Display;

/// How often what moves on the screen does.
const TICK: Duration = Duration::from_millis(200);

/// How much may wait to be shown.
const WAITING: usize = 1024;

/// Shows how a run goes on, as far as somebody looks.
pub(super) struct RunScreen {
    to: SyncSender<ScreenMessage>,
    /// The ends of trials that there was no room for.
    missed: Vec<Outcome>,
    thread: Option<JoinHandle<()>>,
    detailed: bool,
}

/// Something to be shown, after trials whose ends were left out.
struct ScreenMessage {
    missed: Vec<Outcome>,
    progress: Option<Progress>,
}

impl RunScreen {
    pub(super) fn start(display: Display) -> Self {
        let (to, told) = sync_channel(WAITING);
        let detailed = display.is_detailed();
        // Without a thread nothing is shown; the run is worth having all the same.
        let thread = std::thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || show(display, &told))
            .ok();
        Self {
            to,
            missed: Vec::new(),
            thread,
            detailed,
        }
    }

    /// Whether it shows what happens inside trials.
    pub(super) fn is_detailed(&self) -> bool {
        self.detailed
    }

    /// Takes in what happened, and never waits.
    pub(super) fn take(&mut self, progress: Progress) {
        let told = ScreenMessage {
            missed: std::mem::take(&mut self.missed),
            progress: Some(progress),
        };
        if let Err(TrySendError::Full(told) | TrySendError::Disconnected(told)) =
            self.to.try_send(told)
        {
            self.missed = told.missed;
            if let Some(Progress::Ended { ended, .. }) = told.progress {
                self.missed.push(ended.outcome);
            }
        }
    }

    /// Waits until everything is shown, and takes away the lines that move.
    pub(super) fn finish(self) {
        if !self.missed.is_empty() {
            let last = ScreenMessage {
                missed: self.missed,
                progress: None,
            };
            // The thread may have come to a bad end, as a terminal that is gone brings about.
            let _ = self.to.send(last);
        }
        drop(self.to);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

fn show(mut display: Display, told: &Receiver<ScreenMessage>) {
    loop {
        let next = if display.moves() {
            told.recv_timeout(TICK)
        } else {
            told.recv().map_err(RecvTimeoutError::from)
        };
        match next {
            Ok(ScreenMessage { missed, progress }) => {
                display.left_out(&missed);
                if let Some(progress) = progress {
                    display.take(&progress);
                }
            }
            Err(RecvTimeoutError::Timeout) => display.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    display.finish();
}

#[cfg(test)]
mod tests {
    use proctor_core::event::TrialEnded;

    use super::*;

    fn ended(outcome: Outcome) -> Progress {
        Progress::Ended {
            trial: 0,
            ended: TrialEnded {
                outcome,
                reason: None,
                blame: None,
            },
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn ends_that_there_is_no_room_for_are_counted() {
        let (to, told) = sync_channel(1);
        let mut screen = RunScreen {
            to,
            missed: Vec::new(),
            thread: None,
            detailed: true,
        };
        screen.take(Progress::Started { trial: 0 });
        screen.take(ended(Outcome::Passed));
        screen.take(Progress::Started { trial: 1 });
        screen.take(ended(Outcome::Failed));
        assert!(told.recv().unwrap().missed.is_empty());
        screen.take(ended(Outcome::Errored));
        assert_eq!(
            told.recv().unwrap().missed,
            [Outcome::Passed, Outcome::Failed]
        );
        drop(told);
        screen.take(ended(Outcome::Passed));
        assert_eq!(screen.missed, [Outcome::Passed]);
        screen.finish();
    }
}

//! The thread that shows the progress of a run.
//!
//! Its main type is [`RunScreen`]. A blocked or closed terminal blocks only this thread: it skips lines that the
//! terminal does not take in time, and prints how many.

use std::convert::Infallible;
use std::iter;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use proctor_record::event::Outcome;
use proctor_run::progress::Progress;
use tokio::sync::mpsc::UnboundedReceiver;

use super::display::Display;

/// The interval between redraws of the progress bars.
const TICK: Duration = Duration::from_millis(200);

/// How long updates wait for others, to be shown with them.
const FRAME: Duration = Duration::from_millis(5);

/// The maximum number of updates that wait to be shown.
const WAITING: usize = 1024;

/// The maximum number of updates whose lines are written at once, besides the first.
const AT_ONCE: usize = 63;

/// Shows the progress of a run, and never blocks it.
pub(super) struct RunScreen {
    to: SyncSender<ScreenMessage>,
    /// The outcomes of trials whose lines were skipped.
    missed: Vec<Outcome>,
    thread: Option<JoinHandle<()>>,
    detailed: bool,
}

/// An update, and the outcomes of trials whose lines were skipped before it.
struct ScreenMessage {
    missed: Vec<Outcome>,
    progress: Option<Progress>,
}

impl RunScreen {
    pub(super) fn start(display: Display) -> Self {
        let (to, messages) = sync_channel(WAITING);
        let detailed = display.is_detailed();
        // Without a thread there is no progress display, but the run works.
        let thread = std::thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || show(display, &messages))
            .ok();
        Self {
            to,
            missed: Vec::new(),
            thread,
            detailed,
        }
    }

    /// A screen that shows nothing.
    pub(super) fn quiet() -> Self {
        let (to, _) = sync_channel(0);
        Self {
            to,
            missed: Vec::new(),
            thread: None,
            detailed: false,
        }
    }

    /// Whether it shows the phases and calls of trials.
    pub(super) fn is_detailed(&self) -> bool {
        self.detailed
    }

    /// Queues updates as they come, some of them at once: each wakes up two threads.
    pub(super) async fn follow(&mut self, updates: &mut UnboundedReceiver<Progress>) -> Infallible {
        while let Some(progress) = updates.recv().await {
            self.take(progress);
            self.take_all(updates);
            tokio::time::sleep(FRAME).await;
        }
        std::future::pending().await
    }

    /// Queues the updates that are there.
    pub(super) fn take_all(&mut self, updates: &mut UnboundedReceiver<Progress>) {
        while let Ok(progress) = updates.try_recv() {
            self.take(progress);
        }
    }

    /// Queues an update, and never waits.
    fn take(&mut self, progress: Progress) {
        let message = ScreenMessage {
            missed: std::mem::take(&mut self.missed),
            progress: Some(progress),
        };
        if let Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) =
            self.to.try_send(message)
        {
            self.missed = message.missed;
            if let Some(Progress::Ended { ended, .. }) = message.progress {
                self.missed.push(ended.outcome);
            }
        }
    }

    /// Waits until everything is shown, and removes the progress bars.
    pub(super) fn finish(self) {
        if !self.missed.is_empty() {
            let last = ScreenMessage {
                missed: self.missed,
                progress: None,
            };
            // The thread may have panicked, for example if the terminal is gone.
            let _ = self.to.send(last);
        }
        drop(self.to);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

fn show(mut display: Display, messages: &Receiver<ScreenMessage>) {
    display.begin();
    loop {
        let next = if display.moves() {
            messages.recv_timeout(TICK)
        } else {
            messages.recv().map_err(RecvTimeoutError::from)
        };
        match next {
            Ok(first) => {
                // Those that wait are shown with it.
                for ScreenMessage { missed, progress } in
                    iter::once(first).chain(messages.try_iter().take(AT_ONCE))
                {
                    display.skipped(&missed);
                    if let Some(progress) = progress {
                        display.take(&progress);
                    }
                }
                display.flush();
            }
            Err(RecvTimeoutError::Timeout) => display.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    display.finish();
}

#[cfg(test)]
mod tests {
    use proctor_record::event::TrialEnded;

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
    fn skipped_outcomes_are_counted() {
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

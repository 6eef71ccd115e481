//! A program that may leave other programs running, such as a script that starts a server for the
//! rest of a trial.
//!
//! The main type is [`LingeringProcess`].

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Process, ProcessExit};
use crate::guard::KILL_LIMIT;
use crate::tail::{Tail, drain};

/// A process that reports its own exit before the processes that it left running have ended.
/// Dropping it ends all of them.
#[derive(Debug)]
pub struct LingeringProcess {
    process: Process,
    end: Option<ProcessExit>,
    /// Whether Proctor has asked the guard to end everything.
    is_ending: bool,
    stdout: Tail,
    merged: Tail,
    /// The task that reads stdout to its end.
    draining: Option<JoinHandle<()>>,
}

/// How long to wait for the rest of the output after the exit, if another process keeps the streams
/// open.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// What a line of output holds that reports a verdict. It is counted in the whole of stdout, since a verdict
/// that was not kept must not be ignored.
pub const VERDICT_KEY: &[u8] = b"\"verdict\"";

impl LingeringProcess {
    /// `merged` gets stderr already.
    pub(super) fn new(mut process: Process, merged: Tail) -> Self {
        let stdout = Tail::counting(VERDICT_KEY);
        let tails = [stdout.clone(), merged.clone()];
        let stream = process.stdout.take();
        Self {
            process,
            end: None,
            is_ending: false,
            stdout,
            merged,
            draining: stream.map(|stream| tokio::spawn(async move { drain(stream, &tails).await })),
        }
    }

    /// Waits until the process itself has ended. Cancel safe: it may be dropped and called again.
    pub async fn ended(&mut self) -> ProcessExit {
        if let Some(ended) = self.end {
            return ended;
        }
        let ended = self.process.guard.program_ended().await;
        *self.end.insert(ended)
    }

    /// Waits until everything that the process wrote before its exit has been read.
    pub async fn last_words(&mut self) {
        let drained = async {
            for draining in [&mut self.draining, &mut self.process.draining] {
                if let Some(task) = draining {
                    let _ = task.await;
                    *draining = None;
                }
            }
        };
        let _ = timeout(LAST_WORDS, drained).await;
    }

    /// Whether the process and everything that it started have ended.
    pub fn is_over(&self) -> bool {
        self.process.guard.has_ended()
    }

    /// The last 64 KiB of stdout so far.
    pub fn stdout(&self) -> &Tail {
        &self.stdout
    }

    /// The last 64 KiB of stderr so far.
    pub fn stderr(&self) -> &Tail {
        &self.process.stderr
    }

    /// The last 64 KiB of both, in the order in which they were read.
    pub fn merged(&self) -> &Tail {
        &self.merged
    }

    /// Asks the guard to end the process and everything that it left running, and returns at once.
    pub fn end(&mut self) {
        if !self.is_ending {
            self.is_ending = true;
            self.process.end();
        }
    }

    /// Whether [`Self::end`] was called.
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Ends the process and everything that it left running, and waits for that.
    pub async fn stop(self) {
        // A second request would skip the grace period.
        let patience = if self.is_ending {
            self.process.grace + KILL_LIMIT
        } else {
            Duration::ZERO
        };
        self.process.stop(patience).await;
    }
}

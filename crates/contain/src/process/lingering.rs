//! A program that may leave others running: a script that starts a server for the rest of a trial.
//!
//! Its main type is [`LingeringProcess`].

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Process, ProcessExit};
use crate::guard::{self, KILL_LIMIT};
use crate::tail::{Tail, drain};

/// A process whose own end is told apart from the end of what it left running. Dropping it ends both.
#[derive(Debug)]
pub struct LingeringProcess {
    process: Process,
    /// Where the guard says how the process ended.
    told: UnixStream,
    end: Option<ProcessExit>,
    /// Whether the guard has been asked to end it all.
    is_ending: bool,
    stdout: Tail,
    merged: Tail,
    /// Reads stdout to its end.
    draining: Option<JoinHandle<()>>,
}

/// How long what a process wrote before its end may be on its way, if somebody else holds the streams.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl LingeringProcess {
    pub(super) fn watch(guard: Child, grace: Duration, told: UnixStream) -> Self {
        let [stdout, merged] = [Tail::default(), Tail::default()];
        let mut process = Process::watch(guard, grace, Some(&merged));
        let tails = [stdout.clone(), merged.clone()];
        let stream = process.stdout.take();
        Self {
            process,
            told,
            end: None,
            is_ending: false,
            stdout,
            merged,
            draining: stream.map(|stream| tokio::spawn(async move { drain(stream, &tails).await })),
        }
    }

    /// Waits until the process itself has ended. May be dropped and called again.
    pub async fn ended(&mut self) -> ProcessExit {
        if let Some(ended) = self.end {
            return ended;
        }
        let mut message = [0; 64];
        let told = match self.told.read(&mut message).await {
            Ok(read) => guard::read_told(&message[..read]),
            Err(_) => None,
        };
        let ended = match told {
            Some(ended) => ended,
            // The guard is gone, with all that it guarded.
            None => self.process.wait().await,
        };
        *self.end.insert(ended)
    }

    /// Waits until what the process wrote before its end has been read.
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

    /// Whether neither the process nor anything that it started is left.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.process.guard.try_wait(), Ok(None))
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

    /// Asks for the end of the process and all that it left running, without waiting for it.
    pub fn end(&mut self) {
        if !self.is_ending {
            self.is_ending = true;
            self.process.end();
        }
    }

    /// Whether its end has been asked for.
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Ends the process and all that it left running.
    pub async fn stop(self) {
        // To ask again would take the grace that it was given.
        let patience = if self.is_ending {
            self.process.grace + KILL_LIMIT
        } else {
            Duration::ZERO
        };
        self.process.stop(patience).await;
    }
}

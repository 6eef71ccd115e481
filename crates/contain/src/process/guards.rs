//! The guard of one program, as Proctor sees it.
//!
//! The main type is [`Guard`]. [`hosts`](super::hosts) starts guards and keeps those that can be used again.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::sync::watch;

use super::guard_lines::{GuardLine, GuardLines};
use super::hosts::{self, GuardLink};
use super::{ProcessExit, attack};
use crate::guard::GuardReport;
use crate::tail::Tail;

/// A guard that was started.
#[derive(Debug)]
pub(super) struct Guard {
    link: Arc<GuardLink>,
    tenure: Arc<Mutex<Tenure>>,
    state: watch::Receiver<GuardState>,
}

/// Whether the guard still belongs to this program. Only then it may be signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tenure {
    Held,
    /// It got a signal, and so can't be used again: the signal could arrive late.
    Signalled,
    /// It is free for another program.
    Released,
}

/// What is known about the program.
#[derive(Clone, Copy, Debug)]
enum GuardState {
    Running,
    /// The program has ended, but not everything that it started.
    Left(ProcessExit),
    /// Everything has ended.
    Over(ProcessExit),
}

impl Guard {
    /// Starts a guard with a rendered request. Messages about attacks on it go to the tails. Must be
    /// called within a tokio runtime.
    pub(super) fn start(
        program: &Path,
        request: &[u8],
        streams: &[OwnedFd; 3],
        grace: Duration,
        tails: Vec<Tail>,
    ) -> io::Result<Self> {
        let link = hosts::start(program, request, streams)?;
        let tenure = Arc::new(Mutex::new(Tenure::Held));
        let (sender, state) = watch::channel(GuardState::Running);
        let watched = WatchedGuard {
            link: link.clone(),
            tenure: tenure.clone(),
            grace,
            tails,
            state: sender,
        };
        tokio::spawn(watched.follow());
        Ok(Self {
            link,
            tenure,
            state,
        })
    }

    /// Its pid, until everything has ended.
    pub(super) fn pid(&self) -> Option<Pid> {
        (!self.has_ended()).then_some(self.link.pid)
    }

    /// Whether the program and everything that it started have ended.
    pub(super) fn has_ended(&self) -> bool {
        matches!(*self.state.borrow(), GuardState::Over(_))
            || *lock(&self.tenure) == Tenure::Released
    }

    /// Waits until the program has ended. Cancel safe.
    pub(super) async fn program_ended(&mut self) -> ProcessExit {
        self.reached(|state| match state {
            GuardState::Running => None,
            GuardState::Left(exit) | GuardState::Over(exit) => Some(exit),
        })
        .await
    }

    /// Waits until the program and everything that it started have ended. Cancel safe.
    pub(super) async fn ended(&mut self) -> ProcessExit {
        self.reached(|state| match state {
            GuardState::Running | GuardState::Left(_) => None,
            GuardState::Over(exit) => Some(exit),
        })
        .await
    }

    /// What tells when everything has ended, even after this was dropped.
    pub(super) fn end(&self) -> ProcessEnd {
        ProcessEnd(self.state.clone())
    }

    async fn reached(&mut self, exit: fn(GuardState) -> Option<ProcessExit>) -> ProcessExit {
        let reached = self.state.wait_for(|state| exit(*state).is_some()).await;
        // Without its sender, the runtime is shutting down.
        reached
            .ok()
            .and_then(|state| exit(*state))
            .unwrap_or(ProcessExit::Unknown)
    }

    /// Signals the guard, if it still belongs to this program. Returns whether it does.
    pub(super) fn signal(&self, signals: &[Signal]) -> bool {
        let mut tenure = lock(&self.tenure);
        if *tenure == Tenure::Released {
            return false;
        }
        *tenure = Tenure::Signalled;
        for signal in signals {
            self.link.process.signal(*signal);
        }
        true
    }

    /// The process itself, to wait for it after a signal.
    pub(super) fn link(&self) -> &Arc<GuardLink> {
        &self.link
    }
}

/// Tells when a program and everything that it started have ended.
#[derive(Clone, Debug)]
pub struct ProcessEnd(watch::Receiver<GuardState>);

impl ProcessEnd {
    /// Waits for the end.
    pub async fn wait(mut self) {
        let is_over = |state: &GuardState| matches!(state, GuardState::Over(_));
        // Without its sender, the runtime is shutting down.
        let _ = self.0.wait_for(is_over).await;
    }
}

fn lock(tenure: &Mutex<Tenure>) -> MutexGuard<'_, Tenure> {
    tenure.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guard while its program runs.
struct WatchedGuard {
    link: Arc<GuardLink>,
    tenure: Arc<Mutex<Tenure>>,
    grace: Duration,
    /// Where messages about attacks on it go.
    tails: Vec<Tail>,
    state: watch::Sender<GuardState>,
}

impl WatchedGuard {
    /// Reads the reports about a guard until its program has ended, and kills what a killed guard left.
    async fn follow(self) {
        let exit = self.exit().await;
        self.state.send_replace(GuardState::Over(exit));
    }

    async fn exit(&self) -> ProcessExit {
        let mut lines = GuardLines::new(&self.link);
        loop {
            match lines.next().await {
                GuardLine::Guard(GuardReport::Left(exit)) => {
                    self.state.send_replace(GuardState::Left(exit));
                }
                GuardLine::Guard(GuardReport::Ready(exit)) => {
                    self.release();
                    return exit;
                }
                GuardLine::Guard(GuardReport::Ended(exit)) => return exit,
                GuardLine::Guard(GuardReport::Stopped) | GuardLine::Stopped => {
                    *lock(&self.tenure) = Tenure::Signalled;
                    attack::release_stopped(&self.link, &self.tails).await;
                }
                // Without a report of its own: a signal or a panic ended it, and nobody has ended its program.
                GuardLine::Ended(exit) => {
                    attack::clear(self.link.pid, self.tails.clone()).await;
                    // Its exit code says nothing about the program, which may never have run.
                    return match exit {
                        ProcessExit::Exited(_) => ProcessExit::Unknown,
                        ProcessExit::Signalled(_) | ProcessExit::Unknown => exit,
                    };
                }
                GuardLine::HostKilled => {
                    *lock(&self.tenure) = Tenure::Signalled;
                    attack::end_unwatched(&self.link, self.grace, &self.tails).await;
                    attack::clear(self.link.pid, self.tails.clone()).await;
                    return ProcessExit::Unknown;
                }
            }
        }
    }

    /// Keeps the guard for another program, unless it got a signal.
    fn release(&self) {
        let mut tenure = lock(&self.tenure);
        if *tenure == Tenure::Held {
            *tenure = Tenure::Released;
            hosts::keep(&self.link);
        }
    }
}

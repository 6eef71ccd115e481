//! The life of a guard after its child has started: wait for a reason to end, then end everything.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, wait};

use super::KILL_LIMIT;
use super::signals::{GuardSignals, take};
use crate::os::{Descendant, LOOK_AGAIN, Lookout, ProcessIdentity};

/// How often new descendants are looked for during the grace.
const LOOK: Duration = Duration::from_millis(20);
/// How often what is still there is killed again.
const KILL_AGAIN: Duration = Duration::from_millis(5);

/// The guarded child, and all that may end it.
#[derive(Debug)]
pub struct Watch {
    child: Pid,
    status: Option<WaitStatus>,
    parent: OwnedFd,
    signals: GuardSignals,
    lookout: Lookout,
}

/// What is known when the guard has done what it can.
#[derive(Debug)]
pub struct GuardOutcome {
    /// How the child ended, if it did.
    pub status: Option<WaitStatus>,
    /// What could not be ended: processes of another user, or ones that the kernel does not let go.
    pub survivors: Vec<String>,
    /// Processes whose own descendants may have been missed.
    pub cleared: Vec<String>,
}

impl Watch {
    pub fn new(child: Pid, parent: OwnedFd, signals: GuardSignals) -> Self {
        Self {
            child,
            status: None,
            parent,
            signals,
            lookout: Lookout::of(getpid()),
        }
    }

    /// Returns when the child has ended, when Proctor asks, or when Proctor is gone: only in the first
    /// case with how it ended.
    pub fn until_the_end(&mut self) -> Option<WaitStatus> {
        self.until(|watch, _| watch.status.is_some());
        self.status
    }

    /// Returns when nothing that the child started is left, when Proctor asks, or when it is gone.
    pub fn until_nothing_is_left(&mut self) {
        self.until(|watch, has_children| !has_children && !watch.lookout.sees_any());
    }

    fn until(&mut self, is_over: impl Fn(&mut Self, bool) -> bool) {
        let look_again = LOOK_AGAIN.and_then(|pause| Timespec::try_from(pause).ok());
        loop {
            let has_children = self.reap();
            if is_over(self, has_children) {
                return;
            }
            let GuardSignals { child_ended, asked } = &self.signals;
            let mut sources = [child_ended, asked, &self.parent].map(readable);
            match poll(&mut sources, look_again.as_ref()) {
                Ok(0) => {
                    self.lookout.find();
                    continue;
                }
                Ok(_) | Err(Errno::INTR) => {}
                // A guard that can't watch any more must not let its child run on.
                Err(_) => return,
            }
            let parent_gone = !sources[2].revents().is_empty();
            take(child_ended);
            if take(asked) || parent_gone {
                return;
            }
        }
    }

    /// Ends every descendant: SIGTERM, after the grace SIGKILL, until none is left.
    pub fn end_all(&mut self, grace: Duration) -> GuardOutcome {
        let mut kill_from = Instant::now() + grace;
        let mut told = HashSet::new();
        while self.is_left() {
            let now = Instant::now();
            let next = if now < kill_from {
                tell_to_end(&self.lookout.find(), &mut told);
                kill_from.min(now + LOOK)
            } else if now < kill_from + KILL_LIMIT {
                self.lookout.kill_all();
                now + KILL_AGAIN
            } else {
                let left = self.lookout.find();
                return self.ending(survivors(&left));
            };
            if self.pause(next) {
                kill_from = kill_from.min(Instant::now());
            }
        }
        self.ending(Vec::new())
    }

    fn ending(&self, survivors: Vec<String>) -> GuardOutcome {
        GuardOutcome {
            status: self.status,
            survivors,
            cleared: self.lookout.cleared().to_vec(),
        }
    }

    /// Waits for some time, but not longer than something is left. `true` if the guard was asked again.
    fn pause(&mut self, end: Instant) -> bool {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let GuardSignals { child_ended, asked } = &self.signals;
            // A wait that fails is only shorter.
            let _ = poll(
                &mut [child_ended, asked].map(readable),
                Timespec::try_from(left).ok().as_ref(),
            );
            take(child_ended);
            if take(asked) {
                return true;
            }
            if !self.is_left() {
                return false;
            }
        }
        false
    }

    /// Whether anything that the child started is left, or the child itself.
    fn is_left(&mut self) -> bool {
        self.reap() || self.lookout.sees_any()
    }

    /// Waits for the children that have ended; `false` if none is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    // Later its pid may be another one's.
                    if pid == self.child && self.status.is_none() {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Once for each: a program that hears SIGTERM twice may take it for impatience.
fn tell_to_end(found: &[Descendant], told: &mut HashSet<ProcessIdentity>) {
    for process in found {
        if told.insert(process.identity()) {
            process.terminate();
        }
    }
}

/// Enough for one line, however many there are.
fn survivors(left: &[Descendant]) -> Vec<String> {
    const NAMED: usize = 5;
    let mut names: Vec<String> = left.iter().take(NAMED).map(Descendant::describe).collect();
    if left.len() > NAMED {
        names.push(format!("and {} more", left.len() - NAMED));
    }
    names
}

fn readable(source: &OwnedFd) -> PollFd<'_> {
    PollFd::new(source, PollFlags::IN)
}

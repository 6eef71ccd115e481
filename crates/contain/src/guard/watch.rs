//! The main loop of a guard: waits for a reason to end, then ends everything.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, wait};

use super::KILL_LIMIT;
use super::signals::{GuardSignals, take};
use crate::os::{Descendant, LOOK_AGAIN, Lookout, ProcessIdentity};

/// The interval at which the guard looks for new descendants during the grace period.
const LOOK: Duration = Duration::from_millis(20);
/// The interval at which the guard kills the remaining processes again.
const KILL_AGAIN: Duration = Duration::from_millis(5);

/// The guarded child, and everything that can end it.
#[derive(Debug)]
pub struct Watch<'a> {
    child: Pid,
    status: Option<WaitStatus>,
    parent: Lifeline<'a>,
    signals: &'a GuardSignals,
    lookout: Lookout,
    /// Whether the guard was asked to end, Proctor has ended, or the guard can no longer watch.
    must_end: bool,
}

/// A descriptor that tells when Proctor has ended.
#[derive(Clone, Copy, Debug)]
pub struct Lifeline<'a> {
    descriptor: BorrowedFd<'a>,
    events: PollFlags,
}

impl<'a> Lifeline<'a> {
    /// A descriptor that becomes readable.
    pub fn readable(descriptor: &'a OwnedFd) -> Self {
        Self {
            descriptor: descriptor.as_fd(),
            events: PollFlags::IN,
        }
    }

    /// A socket whose other end only Proctor has. What arrives on it is for another process.
    pub fn socket(descriptor: &'a UnixStream) -> Self {
        Self {
            descriptor: descriptor.as_fd(),
            events: PollFlags::empty(),
        }
    }

    fn source(&self) -> PollFd<'_> {
        PollFd::new(&self.descriptor, self.events)
    }
}

/// The result of a guard's work.
#[derive(Debug)]
pub struct GuardOutcome {
    /// The exit status of the child, if it has ended.
    pub status: Option<WaitStatus>,
    /// Processes that could not be ended: they belong to another user, or the kernel keeps them.
    pub survivors: Vec<String>,
    /// Processes whose descendants may have been missed.
    pub cleared: Vec<String>,
    /// Whether the guard was asked to end, or Proctor has ended.
    must_end: bool,
}

impl GuardOutcome {
    /// Whether the program ended by itself and nothing of it is left, so that the guard may run another.
    pub fn is_clean(&self) -> bool {
        self.status.is_some()
            && self.survivors.is_empty()
            && self.cleared.is_empty()
            && !self.must_end
    }
}

impl<'a> Watch<'a> {
    pub fn new(child: Pid, parent: Lifeline<'a>, signals: &'a GuardSignals) -> Self {
        Self {
            child,
            status: None,
            parent,
            signals,
            lookout: Lookout::of(getpid(), child),
            must_end: false,
        }
    }

    /// Returns when the child has ended, when Proctor asks, or when Proctor has ended. Returns the
    /// status only in the first case.
    pub fn wait_for_end(&mut self) -> Option<WaitStatus> {
        self.until(|watch, _| watch.status.is_some());
        self.status
    }

    /// Returns when everything that the child started has ended, when Proctor asks, or when Proctor
    /// has ended.
    pub fn wait_until_none_is_left(&mut self) {
        self.until(|watch, has_children| !has_children && !watch.lookout.sees_any());
    }

    fn until(&mut self, is_over: impl Fn(&mut Self, bool) -> bool) {
        let look_again = LOOK_AGAIN.and_then(|pause| Timespec::try_from(pause).ok());
        loop {
            let has_children = self.reap();
            if is_over(self, has_children) {
                return;
            }
            let GuardSignals { child_ended, asked } = self.signals;
            let mut sources = [readable(child_ended), readable(asked), self.parent.source()];
            match poll(&mut sources, look_again.as_ref()) {
                Ok(0) => {
                    self.lookout.find();
                    continue;
                }
                Ok(_) | Err(Errno::INTR) => {}
                // A guard that can no longer watch must not leave its child running.
                Err(_) => {
                    self.must_end = true;
                    return;
                }
            }
            let parent_gone = !sources[2].revents().is_empty();
            take(child_ended);
            if take(asked) || parent_gone {
                self.must_end = true;
                return;
            }
        }
    }

    /// Ends every descendant: sends SIGTERM, then SIGKILL after the grace period, until none is
    /// left.
    pub fn end_all(&mut self, grace: Duration) -> GuardOutcome {
        let mut kill_from = Instant::now() + grace;
        let mut terminated = HashSet::new();
        while self.is_left() {
            let now = Instant::now();
            let next = if now < kill_from {
                terminate_once(&self.lookout.find(), &mut terminated);
                kill_from.min(now + LOOK)
            } else if now < kill_from + KILL_LIMIT {
                self.lookout.kill_all();
                now + KILL_AGAIN
            } else {
                let left = self.lookout.find();
                return self.ending(survivors(&left));
            };
            if self.pause(next) {
                self.must_end = true;
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
            // The program itself may have sent the signal before it ended.
            must_end: self.must_end || take(&self.signals.asked),
        }
    }

    /// Waits until `end`, or until no process is left. Returns whether Proctor asked again.
    fn pause(&mut self, end: Instant) -> bool {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let GuardSignals { child_ended, asked } = self.signals;
            // A failed wait is only shorter.
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

    /// Whether the child or anything that it started is left.
    pub fn is_left(&mut self) -> bool {
        self.reap() || self.lookout.sees_any()
    }

    /// Reaps the children that have ended. Returns `false` if none is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    // Its pid may be reused later.
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

/// Signals each process only once: some programs treat a second SIGTERM as a request to skip their
/// cleanup. What a signalled process starts while it lives is its cleanup, and gets the whole grace
/// period.
fn terminate_once(found: &[Descendant], terminated: &mut HashSet<ProcessIdentity>) {
    for process in to_terminate(found, terminated) {
        process.terminate();
    }
    terminated.extend(found.iter().map(Descendant::identity));
}

/// The processes that were not found before and are not below one that was.
fn to_terminate<'a>(
    found: &'a [Descendant],
    terminated: &HashSet<ProcessIdentity>,
) -> Vec<&'a Descendant> {
    let all: HashMap<Pid, &Descendant> = found.iter().map(|one| (one.pid(), one)).collect();
    let was_found = |process: &Descendant| terminated.contains(&process.identity());
    let is_cleanup = |process: &Descendant| {
        let parent = |below: &&Descendant| all.get(&below.parent()).copied();
        // Reused pids could form a circle.
        iter::successors(all.get(&process.parent()).copied(), parent)
            .take(all.len())
            .any(was_found)
    };
    let new = found.iter().filter(|process| !was_found(process));
    new.filter(|process| !is_cleanup(process)).collect()
}

/// The names of the remaining processes, at most as many as fit on one line.
fn survivors(left: &[Descendant]) -> Vec<String> {
    const NAMED: usize = 5;
    let mut names: Vec<String> = left.iter().take(NAMED).map(Descendant::describe).collect();
    if left.len() > NAMED {
        names.push(format!("and {} more", left.len() - NAMED));
    }
    names
}

pub fn readable(source: &OwnedFd) -> PollFd<'_> {
    PollFd::new(source, PollFlags::IN)
}

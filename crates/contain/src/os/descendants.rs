//! Finds the processes below a guard in the system's process list, and signals them. The list is
//! never complete, since processes start and end all the time: callers look repeatedly.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::system::{processes, read};

/// A process, as the system lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    /// Its session, by the pid of its leader.
    pub(super) session: i32,
    /// Whether it has ended, but its parent has not waited for it yet.
    pub(super) is_zombie: bool,
    /// The start time, in a unit of the system. Together with the pid it identifies the process.
    pub(super) started: u64,
    pub(super) name: String,
    pub(super) cookie: Cookie,
}

/// Which guards a process is below, according to its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cookie {
    /// The environment was not read, or is not readable.
    Unknown,
    /// The environment does not hold the cookie.
    #[cfg(any(target_os = "macos", feature = "posix"))]
    Absent,
    #[cfg_attr(
        not(any(target_os = "macos", feature = "posix", test)),
        expect(dead_code, reason = "only `posix` reads environments")
    )]
    Guards(Vec<Pid>),
}

/// Identifies a process even if its pid is reused.
pub type ProcessIdentity = (Pid, u64);

impl Descendant {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn parent(&self) -> Pid {
        self.parent
    }

    pub fn identity(&self) -> ProcessIdentity {
        (self.pid, self.started)
    }

    pub fn describe(&self) -> String {
        format!("process {} (`{}`)", self.pid.as_raw_pid(), self.name)
    }

    /// Asks the process to end. Also continues a stopped process, which would not handle the signal
    /// otherwise.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Signals this process, and never a later one with the same pid. Errors are ignored: the next
    /// look shows whether the process is still there.
    pub(super) fn signal(&self, signal: Signal) {
        if read(self.pid).is_some_and(|now| now.started == self.started) {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Whether the process's own data shows that it is below a guard. The guard leads a session.
    fn is_of(&self, guard: Pid) -> bool {
        let carries = matches!(&self.cookie, Cookie::Guards(guards) if guards.contains(&guard));
        self.pid != guard && (self.parent == guard || self.session == guard.as_raw_pid() || carries)
    }
}

/// All processes below a guard, including those that are `known` to be.
pub(super) fn below(guard: Pid, is_known: impl Fn(&Descendant) -> bool) -> Vec<Descendant> {
    members(processes(), |process| {
        process.is_of(guard) || process.pid != guard && is_known(process)
    })
}

/// The processes that are `certain`, everything below them, and everything in sessions that one of
/// them leads.
fn members(all: Vec<Descendant>, is_certain: impl Fn(&Descendant) -> bool) -> Vec<Descendant> {
    let (mut found, mut others): (Vec<Descendant>, Vec<Descendant>) =
        all.into_iter().partition(is_certain);
    let mut next = 0;
    while next < found.len() {
        let pids: HashSet<Pid> = found[next..].iter().map(|process| process.pid).collect();
        next = found.len();
        let leads = |session: i32| Pid::from_raw(session).is_some_and(|pid| pids.contains(&pid));
        let is_new =
            |process: &Descendant| pids.contains(&process.parent) || leads(process.session);
        let (new, rest) = others.into_iter().partition(is_new);
        found.extend::<Vec<Descendant>>(new);
        others = rest;
    }
    found
}

/// Whether a process is `ancestor` or below it.
pub fn is_below(pid: Pid, ancestor: Pid) -> bool {
    // Reused pids could form a circle.
    const DEEPEST: usize = 1000;
    let mut line = std::iter::successors(read(pid), |process| read(process.parent)).take(DEEPEST);
    pid == ancestor || line.any(|process| process.is_of(ancestor))
}

/// How long to keep killing processes that start others faster than they are found.
const KILLING: Duration = Duration::from_secs(5);
/// The interval between two looks for remaining processes.
const LOOK: Duration = Duration::from_millis(2);

/// Kills everything below a guard that is stopped, and so can't do it itself.
pub fn kill_below(guard: Pid) {
    kill_until_none_is_left(|| below(guard, |_| false), || {});
}

/// Kills the processes that a killed guard has left: the members of its session, and everything
/// below them. Calls `notify` first if there are any.
pub fn kill_session(guard: Pid, notify: impl FnOnce()) {
    let look = || {
        // A living process with this pid is another one, and so is the session that it leads.
        if read(guard).is_some_and(|process| !process.is_zombie) {
            return Vec::new();
        }
        below(guard, |_| false)
    };
    kill_until_none_is_left(look, notify);
}

fn kill_until_none_is_left(look: impl Fn() -> Vec<Descendant>, notify: impl FnOnce()) {
    let end = Instant::now() + KILLING;
    let mut notify = Some(notify);
    loop {
        let left = look();
        let are_gone = left.iter().all(|process| process.is_zombie);
        if let Some(notify) = notify.take_if(|_| !are_gone) {
            notify();
        }
        for process in &left {
            // Includes processes that seem to have ended: their first thread may have, while others
            // run.
            process.signal(Signal::KILL);
        }
        if are_gone || Instant::now() > end {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    fn process(raw: i32, parent: i32, session: i32, guards: &[i32]) -> Descendant {
        let guards: Vec<Pid> = guards.iter().copied().map(pid).collect();
        Descendant {
            pid: pid(raw),
            parent: pid(parent),
            session,
            is_zombie: false,
            started: 0,
            name: String::new(),
            cookie: match guards[..] {
                [] => Cookie::Unknown,
                _ => Cookie::Guards(guards),
            },
        }
    }

    #[test]
    fn descendants_are_found_by_parent_session_and_cookie() {
        let check = |all: Vec<Descendant>, expected: &[i32]| {
            let found = members(all, |process| process.is_of(pid(10)));
            let mut found: Vec<i32> = found.iter().map(|p| p.pid.as_raw_pid()).collect();
            found.sort_unstable();
            assert_eq!(found, expected);
        };
        let guard = || process(10, 5, 10, &[]);
        check(vec![guard(), process(11, 10, 10, &[])], &[11]);
        // Its parent ended.
        check(vec![guard(), process(12, 1, 10, &[])], &[12]);
        // Detached, found by the cookie, with its child that cleared its environment.
        let detached = || process(13, 1, 13, &[3, 10]);
        check(vec![process(14, 13, 13, &[]), detached()], &[13, 14]);
        // An orphan in a session that a descendant leads.
        check(vec![process(15, 1, 13, &[]), detached()], &[13, 15]);
        // Only the members of a session whose leader is one of them.
        let foreign = process(16, 1, 2, &[10]);
        check(
            vec![foreign, process(17, 1, 2, &[]), process(2, 1, 2, &[])],
            &[16],
        );
        check(vec![guard(), process(18, 1, 18, &[11])], &[]);
    }

    #[test]
    fn a_process_is_below_itself_and_those_that_started_it() {
        let this = rustix::process::getpid();
        let parent = rustix::process::getppid().unwrap();
        assert!(is_below(this, this));
        assert!(is_below(this, parent));
        assert!(!is_below(parent, this));
        let nobody = pid(i32::MAX);
        assert!(!is_below(nobody, this));
    }
}

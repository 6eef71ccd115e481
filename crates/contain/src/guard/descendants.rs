//! Finds the processes below the guard in `/proc`, and signals them. A look at `/proc` is never
//! complete, since processes come and go meanwhile; whoever uses this looks again until the kernel
//! says that no child is left.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// A living process below the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    pid: Pid,
    parent: Pid,
    /// Its session, by the pid of its leader.
    session: i32,
    /// Whether it has ended, and only waits for its parent to notice.
    is_zombie: bool,
    /// In ticks since boot: together with the pid, which process it is.
    started: u64,
    name: String,
}

/// Which process, whatever becomes of its pid.
pub type Identity = (Pid, u64);

impl Descendant {
    pub fn identity(&self) -> Identity {
        (self.pid, self.started)
    }

    /// For people.
    pub fn describe(&self) -> String {
        format!("process {} (`{}`)", self.pid.as_raw_pid(), self.name)
    }

    /// Asks it to end. A stopped process would not hear it before it is continued.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Signals this process and no later one with its pid. It may be gone, or another user's: the
    /// next look tells.
    fn signal(&self, signal: Signal) {
        if read(self.pid).is_some_and(|now| now.started == self.started) {
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// All living processes below the guard.
pub fn find() -> Vec<Descendant> {
    let mut below = by_parent();
    let children = below.remove(&getpid()).unwrap_or_default();
    with_descendants(children, below)
}

/// How long it takes at most to kill what others may start faster than it is found.
const KILLING: Duration = Duration::from_secs(5);
/// How often what is still there is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// Kills everything below a guard that can't do so itself, since it is stopped.
pub fn kill_below(guard: Pid) {
    let look = || {
        let mut below = by_parent();
        let children = below.remove(&guard).unwrap_or_default();
        with_descendants(children, below)
    };
    kill_until_none_is_left(look, || {});
}

/// Kills what a guard that was killed has left: the processes of its session, and all below them. If
/// there are any, that is `told` first.
pub fn kill_session(guard: Pid, told: impl FnOnce()) {
    let look = || {
        let mut below = by_parent();
        let all = || below.values().flatten();
        // A living process with its pid is another one, and so is the session that it leads.
        if all().any(|process| process.pid == guard && !process.is_zombie) {
            return Vec::new();
        }
        let is_left =
            |process: &&Descendant| process.session == guard.as_raw_pid() && process.pid != guard;
        let left: Vec<Descendant> = all().filter(is_left).cloned().collect();
        for process in &left {
            if let Some(siblings) = below.get_mut(&process.parent) {
                siblings.retain(|sibling| sibling.pid != process.pid);
            }
        }
        with_descendants(left, below)
    };
    kill_until_none_is_left(look, told);
}

fn kill_until_none_is_left(look: impl Fn() -> Vec<Descendant>, told: impl FnOnce()) {
    let end = Instant::now() + KILLING;
    let mut told = Some(told);
    loop {
        let left = look();
        let are_gone = left.iter().all(|process| process.is_zombie);
        if let Some(told) = told.take_if(|_| !are_gone) {
            told();
        }
        for process in &left {
            // Also one that seems to have ended: its first thread may have, and others not.
            process.signal(Signal::KILL);
        }
        if are_gone || Instant::now() > end {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Every process, by its parent.
fn by_parent() -> HashMap<Pid, Vec<Descendant>> {
    let mut below: HashMap<Pid, Vec<Descendant>> = HashMap::new();
    for process in pids().filter_map(read) {
        below.entry(process.parent).or_default().push(process);
    }
    below
}

fn with_descendants(
    mut found: Vec<Descendant>,
    mut below: HashMap<Pid, Vec<Descendant>>,
) -> Vec<Descendant> {
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let children = below.remove(&process.pid).unwrap_or_default();
        found.extend(children);
        next += 1;
    }
    found
}

/// Whether a process is this one, or below it.
pub fn is_below(pid: Pid, ancestor: Pid) -> bool {
    // Pids that are used again could make a circle.
    const DEEPEST: usize = 1000;
    let mut line = std::iter::successors(Some(pid), |pid| Some(read(*pid)?.parent)).take(DEEPEST);
    line.any(|pid| pid == ancestor)
}

/// Kills everything below the guard that can be found now.
pub fn kill_all() {
    kill_children();
    for process in find() {
        process.signal(Signal::KILL);
    }
    kill_children();
}

/// A chain of processes, each of which forks and ends, leaves nothing but a new child of the guard,
/// which lives shorter than a look through all of `/proc` takes. This list is at hand: without it,
/// such a chain outran the guard for seconds. A child's pid stays taken until the guard waits for it.
fn kill_children() {
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    for pid in children.split_whitespace().filter_map(parse_pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| parse_pid(entry.file_name().to_str()?))
}

fn parse_pid(word: &str) -> Option<Pid> {
    Pid::from_raw(word.parse().ok()?)
}

fn read(pid: Pid) -> Option<Descendant> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat))
}

/// Reads `pid (name) state parent …`. The name is any text, with brackets and spaces; nothing
/// behind it has a bracket. What has no parent is not below the guard.
fn parse_stat(pid: Pid, stat: &str) -> Option<Descendant> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    Some(Descendant {
        pid,
        parent: parse_pid(fields.get(1)?)?,
        session: fields.get(3)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        started: fields.get(19)?.parse().ok()?,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_name_is() {
        let rest = "S 3 4 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987 1 1";
        let check = |name: &str| {
            let pid = |raw| Pid::from_raw(raw).unwrap();
            let expected = Descendant {
                pid: pid(12),
                parent: pid(3),
                session: 5,
                is_zombie: false,
                started: 987,
                name: name.to_owned(),
            };
            let stat = format!("12 ({name}) {rest}\n");
            assert_eq!(parse_stat(pid(12), &stat), Some(expected));
        };
        check("sh");
        check("");
        check(") R 1 (1");
        check("a b\n(");
        let this = read(getpid()).unwrap();
        assert_eq!(Some(this.parent), rustix::process::getppid());
    }

    #[test]
    fn a_process_is_below_itself_and_those_that_started_it() {
        let parent = rustix::process::getppid().unwrap();
        assert!(is_below(getpid(), getpid()));
        assert!(is_below(getpid(), parent));
        assert!(!is_below(parent, getpid()));
        let nobody = Pid::from_raw(i32::MAX).unwrap();
        assert!(!is_below(nobody, getpid()));
    }
}

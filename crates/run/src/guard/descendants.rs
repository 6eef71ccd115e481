//! Finds the processes below the guard in `/proc`, and signals them. A look at `/proc` is never
//! complete, since processes come and go meanwhile; whoever uses this looks again until the kernel
//! says that no child is left.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// A living process below the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    pid: Pid,
    parent: Pid,
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
    let mut below: HashMap<Pid, Vec<Descendant>> = HashMap::new();
    for process in pids().filter_map(read) {
        below.entry(process.parent).or_default().push(process);
    }
    let mut found = below.remove(&getpid()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let children = below.remove(&process.pid).unwrap_or_default();
        found.extend(children);
        next += 1;
    }
    found
}

/// Whether a process is this one, or below it.
pub(crate) fn is_below(pid: Pid, ancestor: Pid) -> bool {
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

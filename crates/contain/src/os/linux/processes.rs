//! The processes of the system, from `/proc`.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::os::descendants::{self, Cookie, Descendant};

/// A guard's view of the processes below it.
#[derive(Debug)]
pub struct Lookout {
    own: Pid,
}

impl Lookout {
    /// The view of the guard with this pid. The kernel knows what its program started.
    pub fn of(own: Pid, _program: Pid) -> Self {
        Self { own }
    }

    /// All processes below this one.
    pub fn find(&mut self) -> Vec<Descendant> {
        descendants::below(self.own, |_| false)
    }

    /// Whether a descendant is left that is not a child of this process. Never the case under a
    /// subreaper.
    pub fn sees_any(&mut self) -> bool {
        false
    }

    /// Kills everything below this process that can be found now.
    pub fn kill_all(&mut self) {
        kill_children();
        for process in self.find() {
            process.signal(Signal::KILL);
        }
        kill_children();
    }

    /// Processes whose descendants may have been missed. The kernel misses none.
    pub fn cleared(&self) -> &[String] {
        &[]
    }
}

/// A chain of processes, each of which forks and exits, leaves one new child of the guard that
/// lives shorter than a scan of `/proc` takes. This list is faster: without it, such a chain outran
/// the guard for seconds. A child's pid stays taken until the guard waits for it.
fn kill_children() {
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    for pid in children.split_whitespace().filter_map(parse_pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Every process that has a parent.
pub(in crate::os) fn processes() -> Vec<Descendant> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| parse_pid(entry.file_name().to_str()?));
    pids.filter_map(read).collect()
}

fn parse_pid(word: &str) -> Option<Pid> {
    Pid::from_raw(word.parse().ok()?)
}

pub(in crate::os) fn read(pid: Pid) -> Option<Descendant> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat))
}

/// Parses `pid (name) state parent …`. The name may hold brackets and spaces; the fields after it
/// hold no bracket. Returns `None` for a process without a parent, which can't be below the guard.
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
        cookie: Cookie::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_parsed_with_any_name() {
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
                cookie: Cookie::Unknown,
            };
            let stat = format!("12 ({name}) {rest}\n");
            assert_eq!(parse_stat(pid(12), &stat), Some(expected));
        };
        check("sh");
        check("");
        check(") R 1 (1");
        check("a b\n(");
        let this = read(rustix::process::getpid()).unwrap();
        assert_eq!(Some(this.parent), rustix::process::getppid());
    }
}

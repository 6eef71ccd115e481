//! The processes of the system, from `sysinfo`, and what a guard remembers about them.

use std::collections::HashSet;
use std::ffi::OsString;

use rustix::process::{Pid, Signal, getpgid, kill_process_group, test_kill_process_group};
use sysinfo::{Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use super::COOKIE;
use crate::os::descendants::{self, Cookie, Descendant, ProcessIdentity};

/// How many lists in a row must show no process, and the pause between them.
const LOOKS: u32 = 3;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// A guard's view of the processes below it. It remembers the processes that it has seen, so one
/// that detaches itself later stays known.
#[derive(Debug)]
pub struct Lookout {
    own: Pid,
    known: HashSet<ProcessIdentity>,
    /// The process groups of the program in the guard's session, until they are killed. Their
    /// members may live too short to be listed.
    groups: HashSet<Pid>,
    /// The names of the processes that were seen without the cookie.
    cleared: Vec<String>,
    has_cleared: HashSet<ProcessIdentity>,
}

impl Lookout {
    /// The view of the guard with this pid, whose program leads the group `program`.
    pub fn of(own: Pid, program: Pid) -> Self {
        Self {
            own,
            known: HashSet::new(),
            groups: HashSet::from([program]),
            cleared: Vec::new(),
            has_cleared: HashSet::new(),
        }
    }

    /// All processes below this one.
    pub fn find(&mut self) -> Vec<Descendant> {
        let found =
            descendants::below(self.own, |process| self.known.contains(&process.identity()));
        self.known.extend(found.iter().map(Descendant::identity));
        let of_session =
            |process: &&Descendant| process.session == self.own.as_raw_pid() && !process.is_zombie;
        let of_session = found.iter().filter(of_session);
        let groups = of_session.filter_map(|process| getpgid(Some(process.pid)).ok());
        self.groups
            .extend(groups.filter(|group| *group != self.own));
        for process in &found {
            if process.cookie == Cookie::Absent && self.has_cleared.insert(process.identity()) {
                self.cleared.push(process.describe());
            }
        }
        found
    }

    /// Whether a descendant is left that is not a child of this process.
    pub fn sees_any(&mut self) -> bool {
        // A process that is starting a program shows no environment for an instant.
        let is_listed = (0..LOOKS).any(|look| {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            self.find().iter().any(|process| !process.is_zombie)
        });
        let has_members = |group: &Pid| test_kill_process_group(*group).is_ok();
        is_listed || (self.groups.iter()).any(|group| has_members(group) && self.owns(*group))
    }

    /// Kills everything below this process that can be found now.
    pub fn kill_all(&mut self) {
        let found = self.find();
        // Killing a group is atomic, however fast its members start others.
        for group in std::mem::take(&mut self.groups) {
            if self.owns(group) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        for process in found {
            process.signal(Signal::KILL);
        }
    }

    /// Whether a group is still the one that was seen. The system gives no process the pid of a group
    /// that has members, so a stranger with this pid shows that the group was empty before.
    fn owns(&self, group: Pid) -> bool {
        read(group).is_none_or(|leader| self.known.contains(&leader.identity()))
    }

    /// Processes that had cleared their environment when they were seen. Processes that they
    /// detached may have been missed.
    pub fn cleared(&self) -> &[String] {
        &self.cleared
    }
}

/// Every process that has a parent.
pub(in crate::os) fn processes() -> Vec<Descendant> {
    look(ProcessesToUpdate::All)
}

pub(in crate::os) fn read(pid: Pid) -> Option<Descendant> {
    let pid = sysinfo::Pid::from_u32(pid.as_raw_pid().unsigned_abs());
    look(ProcessesToUpdate::Some(&[pid])).pop()
}

fn look(which: ProcessesToUpdate<'_>) -> Vec<Descendant> {
    let what = ProcessRefreshKind::nothing()
        .without_tasks()
        .with_environ(UpdateKind::Always);
    // A guard starts only if this works.
    let Ok(mut system) = System::new() else {
        return Vec::new();
    };
    system.refresh_processes_specifics(which, true, what);
    system.processes().values().filter_map(descendant).collect()
}

fn descendant(process: &Process) -> Option<Descendant> {
    let pid = own_pid(process.pid())?;
    Some(Descendant {
        pid,
        parent: own_pid(process.parent()?)?,
        session: process
            .session_id()
            .and_then(own_pid)
            .map_or(0, Pid::as_raw_pid),
        is_zombie: matches!(
            process.status(),
            ProcessStatus::Zombie | ProcessStatus::Dead
        ),
        started: process.start_time(),
        name: process.name().to_string_lossy().into_owned(),
        cookie: cookie(process.environ()),
    })
}

fn own_pid(pid: sysinfo::Pid) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid.as_u32()).ok()?)
}

/// Reads the cookie from an environment. macOS shows an empty environment for programs of the
/// system itself.
fn cookie(environment: &[OsString]) -> Cookie {
    if environment.is_empty() {
        return Cookie::Unknown;
    }
    let value = environment.iter().find_map(|entry| {
        let (name, value) = entry.to_str()?.split_once('=')?;
        (name == COOKIE).then_some(value)
    });
    let pids = |value: &str| {
        let words = value.split(':');
        words
            .filter_map(|word| Pid::from_raw(word.parse().ok()?))
            .collect()
    };
    value.map_or(Cookie::Absent, |value| Cookie::Guards(pids(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_listed_with_its_parent_and_session() {
        let this = read(rustix::process::getpid()).unwrap();
        assert_eq!(Some(this.parent), rustix::process::getppid());
        assert_eq!(
            this.session,
            rustix::process::getsid(None).unwrap().as_raw_pid()
        );
        assert!(!this.is_zombie);
        assert!(processes().contains(&this));
    }

    #[test]
    fn the_cookie_is_read_from_an_environment() {
        let check = |environment: &[&str], expected: Cookie| {
            let environment: Vec<OsString> = environment.iter().map(Into::into).collect();
            assert_eq!(cookie(&environment), expected, "{environment:?}");
        };
        let guards = |pids: &[i32]| {
            Cookie::Guards(
                pids.iter()
                    .map(|pid| Pid::from_raw(*pid).unwrap())
                    .collect(),
            )
        };
        check(&[], Cookie::Unknown);
        check(&["A=1", "XPROCTOR_GUARDS=2"], Cookie::Absent);
        check(&["A=1", "PROCTOR_GUARDS=2"], guards(&[2]));
        check(&["PROCTOR_GUARDS=2:30"], guards(&[2, 30]));
        check(&["PROCTOR_GUARDS=x:-:0:7"], guards(&[7]));
    }
}

//! Starts guards, and keeps those that can run another program.
//!
//! The main function is [`start`]. Guards are forked by a guard host, which this module starts with the
//! first program, and again if it was killed. There is one host for each `proctor` binary in use,
//! which is one in all but tests.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::runtime::{Handle, Id};

use crate::guard::{LONGEST, host};
use crate::os::{self, ProcessHandle};

/// How long a host or a guard may take for its next step, on a busy machine, before it is replaced.
const PATIENCE: Duration = Duration::from_mins(1);

/// The interval at which a host that does not answer is continued: a program may have stopped it.
const CONTINUE: Duration = Duration::from_secs(1);

/// How long a host may take to end after its last guard.
const END: Duration = Duration::from_secs(1);

/// Starts a program under a guard: one that is kept, or a new one. Must be called within a tokio runtime.
pub(super) fn start(
    program: &Path,
    request: &[u8],
    streams: &[OwnedFd; 3],
) -> io::Result<Arc<GuardLink>> {
    let length = u32::try_from(request.len()).ok();
    let length = length.filter(|length| *length <= LONGEST);
    let length = length.ok_or(io::ErrorKind::ArgumentListTooLong)?;
    while let Some(kept) = take(program) {
        if kept.is_idle() && kept.send(length, request, streams).is_ok() {
            return Ok(kept);
        }
        // It was killed or stopped meanwhile.
        kept.process.signal(Signal::KILL);
    }
    let new = fork(program)?;
    new.send(length, request, streams)?;
    Ok(Arc::new(new))
}

/// A guard, and the ways in which Proctor hears of it. The guard ends when this is dropped.
#[derive(Debug)]
pub(super) struct GuardLink {
    pub(super) pid: Pid,
    pub(super) process: ProcessHandle,
    /// Requests to the guard, and its reports about programs.
    pub(super) channel: UnixStream,
    /// The host's reports about the guard itself.
    pub(super) report: pipe::Receiver,
    /// The binary, and the process of the host.
    program: PathBuf,
    host: Pid,
    /// The runtime that waits for the descriptors. Tests have several.
    runtime: Id,
}

impl GuardLink {
    /// Whether the guard was not heard of since its last program. Asks the system, since the runtime may not have
    /// noticed yet.
    fn is_idle(&self) -> bool {
        let silent = |from: BorrowedFd<'_>| {
            rustix::io::read(from, &mut [0; 1]).is_err_and(|error| error == Errno::AGAIN)
        };
        silent(self.report.as_fd()) && silent(self.channel.as_fd())
    }

    fn send(&self, length: u32, request: &[u8], streams: &[OwnedFd; 3]) -> io::Result<()> {
        let head = length.to_le_bytes();
        let parts = [IoSlice::new(&head), IoSlice::new(request)];
        let streams = streams.each_ref().map(AsFd::as_fd);
        let sent = os::start_sending_descriptors(&self.channel, &parts, &streams)?;
        // An empty socket takes the head.
        let mut rest = request
            .get(sent.saturating_sub(head.len())..)
            .unwrap_or(&[]);
        while !rest.is_empty() {
            match rustix::io::write(&self.channel, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::AGAIN) => wait_for(self.channel.as_fd(), PollFlags::OUT, || ())?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// A running guard host.
struct Host {
    process: Child,
    control: StdStream,
    /// The guards that can run another program.
    kept: Vec<Arc<GuardLink>>,
}

/// The hosts by their programs. They are state of the process, as its children are.
static HOSTS: Mutex<Option<HashMap<PathBuf, Host>>> = Mutex::new(None);

fn with_hosts<T>(use_hosts: impl FnOnce(&mut HashMap<PathBuf, Host>) -> T) -> T {
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    use_hosts(hosts.get_or_insert_default())
}

/// Keeps a guard for another program.
pub(super) fn keep(link: &Arc<GuardLink>) {
    with_hosts(|hosts| {
        let host = hosts.get_mut(&link.program);
        // The end of a guard can't be noticed any more if its host was killed.
        if let Some(host) = host.filter(|host| host.pid() == link.host) {
            host.kept.push(link.clone());
        }
    });
}

/// Continues the host of a guard, which could not report the end of the guard if a program had stopped it.
pub(super) fn wake_host(link: &GuardLink) {
    with_hosts(|hosts| {
        let host = hosts.get(&link.program);
        if let Some(host) = host.filter(|host| host.pid() == link.host) {
            // An error means that it has ended, which is noticed.
            let _ = kill_process(host.pid(), Signal::CONT);
        }
    });
}

/// Takes the guard that was used last.
fn take(program: &Path) -> Option<Arc<GuardLink>> {
    let runtime = Handle::current().id();
    with_hosts(|hosts| {
        let kept = &mut hosts.get_mut(program)?.kept;
        let last = kept.iter().rposition(|link| link.runtime == runtime)?;
        Some(kept.remove(last))
    })
}

/// Forks a guard, if need be with a new host.
fn fork(program: &Path) -> io::Result<GuardLink> {
    let (channel, theirs) = StdStream::pair()?;
    channel.set_nonblocking(true)?;
    let (report, to) = io::pipe()?;
    let (host, answer) = ask(program, &[theirs.into(), to.into()])?;
    let (pid, process) = answer.into_guard()?;
    Ok(GuardLink {
        pid,
        process,
        channel: UnixStream::from_std(channel)?,
        report: pipe::Receiver::from_owned_fd(report.into())?,
        program: program.to_owned(),
        host,
        runtime: Handle::current().id(),
    })
}

/// Asks the host for a guard with these descriptors. Returns the pid of the host, too.
fn ask(program: &Path, descriptors: &[OwnedFd; host::DESCRIPTORS]) -> io::Result<(Pid, Answer)> {
    let descriptors = descriptors.each_ref().map(AsFd::as_fd);
    with_hosts(|hosts| {
        if let Some(host) = hosts.get(program) {
            match host.ask(&descriptors) {
                Ok(answer) => return Ok((host.pid(), answer)),
                // It was killed or stopped.
                Err(_) => hosts.remove(program).into_iter().for_each(Host::kill),
            }
        }
        let host = Host::open(program)?;
        match host.ask(&descriptors) {
            Ok(answer) => {
                let pid = host.pid();
                hosts.insert(program.to_owned(), host);
                Ok((pid, answer))
            }
            Err(error) => {
                host.kill();
                Err(error)
            }
        }
    })
}

/// Ends the guard hosts of this process, whose guards end too.
pub fn end_hosts() {
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, host) in hosts.take().into_iter().flatten() {
        let Host {
            process,
            control,
            kept,
        } = host;
        // They have no programs, and one that was stopped would not notice that its channel is closed.
        for guard in kept {
            guard.process.signal(Signal::KILL);
        }
        drop(control);
        ProcessHandle::open(Pid::from_child(&process)).wait(END);
        Host::kill_process(process);
    }
}

/// What a host answered: a pid or an error, and a descriptor of the new process.
struct Answer {
    code: i32,
    descriptor: Option<OwnedFd>,
}

impl Answer {
    fn into_guard(self) -> io::Result<(Pid, ProcessHandle)> {
        if self.code < 0 {
            return Err(io::Error::from_raw_os_error(-self.code));
        }
        let pid = Pid::from_raw(self.code).ok_or(io::ErrorKind::InvalidData)?;
        Ok((pid, ProcessHandle::new(pid, self.descriptor)))
    }
}

impl Host {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that starts programs"
    )]
    fn open(program: &Path) -> io::Result<Self> {
        let (control, theirs) = StdStream::pair()?;
        control.set_write_timeout(Some(PATIENCE))?;
        let process = Command::new(program)
            .arg(host::COMMAND)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            // A host that kept the streams of this process open would hide its end.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            process,
            control,
            kept: Vec::new(),
        })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    fn ask(&self, descriptors: &[BorrowedFd<'_>]) -> io::Result<Answer> {
        os::send_descriptors(&self.control, host::FORK, descriptors)?;
        wait_for(self.control.as_fd(), PollFlags::IN, || {
            let _ = kill_process(self.pid(), Signal::CONT);
        })?;
        let mut code = [0; 4];
        let (read, descriptors) = os::receive_descriptors(&self.control, &mut code)?;
        if read != code.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Answer {
            code: i32::from_le_bytes(code),
            descriptor: descriptors.into_iter().next(),
        })
    }

    fn kill(self) {
        drop(self.control);
        Self::kill_process(self.process);
    }

    fn kill_process(mut process: Child) {
        // It may have ended already.
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Waits until a socket is readable or writable, and calls `wake` every second meanwhile.
fn wait_for(socket: BorrowedFd<'_>, events: PollFlags, wake: impl Fn()) -> io::Result<()> {
    let began = Instant::now();
    let interval = Timespec::try_from(CONTINUE).ok();
    let mut sources = [PollFd::from_borrowed_fd(socket, events)];
    while retry_on_intr(|| poll(&mut sources, interval.as_ref()))? == 0 {
        if began.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        wake();
    }
    Ok(())
}

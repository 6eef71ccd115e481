//! Starts guards, and follows their state.
//!
//! The main type is [`Guard`]. Guards are forked by a guard host, which this module starts with the
//! first program, and again if it was killed. There is one host for each `proctor` binary in use,
//! which is one in all but tests.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::{ProcessExit, attack};
use crate::guard::{GuardReport, host};
use crate::os::{self, ProcessHandle};
use crate::tail::Tail;

/// How long a host may take for an answer, on a busy machine, before it is replaced.
const PATIENCE: Duration = Duration::from_mins(1);

/// The interval at which a host that does not answer is continued: a program may have stopped it.
const CONTINUE: Duration = Duration::from_secs(1);

/// How long a host may take to end after its last guard.
const END: Duration = Duration::from_secs(1);

/// A guard that was started.
#[derive(Debug)]
pub(super) struct Guard {
    pid: Pid,
    process: Arc<ProcessHandle>,
    /// How it ended, once it has.
    exit: watch::Receiver<Option<ProcessExit>>,
}

impl Guard {
    /// Starts a guard for a request of the guard host. Messages about attacks on it go to the tails.
    /// Must be called within a tokio runtime.
    pub(super) fn start(
        program: &Path,
        request: &[u8],
        streams: [OwnedFd; 3],
        grace: Duration,
        tails: Vec<Tail>,
    ) -> io::Result<Self> {
        let (report, to) = io::pipe()?;
        let [stdin, stdout, stderr] = streams;
        let (pid, process) = start(program, request, &[stdin, stdout, stderr, to.into()])?;
        let report = pipe::Receiver::from_owned_fd(report.into())?;
        let process = Arc::new(process);
        let (ended, exit) = watch::channel(None);
        let watched = WatchedGuard {
            pid,
            process: process.clone(),
            grace,
            tails,
        };
        tokio::spawn(async move { ended.send_replace(Some(watched.follow(report).await)) });
        Ok(Self { pid, process, exit })
    }

    /// Its pid, until it has ended.
    pub(super) fn pid(&self) -> Option<Pid> {
        (!self.has_ended()).then_some(self.pid)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.exit.borrow().is_some()
    }

    /// Waits for its end. Cancel safe.
    pub(super) async fn ended(&mut self) -> ProcessExit {
        let ended = self.exit.wait_for(Option::is_some).await;
        // Without its sender, the runtime is shutting down.
        ended
            .ok()
            .and_then(|exit| *exit)
            .unwrap_or(ProcessExit::Unknown)
    }

    /// The process itself, to signal it or wait for it.
    pub(super) fn process(&self) -> &Arc<ProcessHandle> {
        &self.process
    }
}

/// A guard while it runs.
struct WatchedGuard {
    pid: Pid,
    process: Arc<ProcessHandle>,
    grace: Duration,
    /// Where messages about attacks on it go.
    tails: Vec<Tail>,
}

impl WatchedGuard {
    /// Reads the reports about a guard until it has ended, and kills what it left.
    async fn follow(self, report: pipe::Receiver) -> ProcessExit {
        let mut lines = BufReader::with_capacity(64, report).split(b'\n');
        loop {
            let line = lines.next_segment().await.ok().flatten();
            match line.and_then(|line| GuardReport::parse(&line)) {
                Some(GuardReport::Stopped) => {
                    attack::release_stopped(self.pid, &self.process, &self.tails).await;
                }
                Some(GuardReport::Ended(exit)) => {
                    if exit == ProcessExit::Signalled(Signal::KILL.as_raw()) {
                        attack::clear(self.pid, self.tails).await;
                    }
                    return exit;
                }
                // The host was killed.
                None => {
                    attack::end_unwatched(&self.process, self.grace, &self.tails).await;
                    attack::clear(self.pid, self.tails).await;
                    return ProcessExit::Unknown;
                }
            }
        }
    }
}

/// A running guard host.
struct Host {
    process: Child,
    control: UnixStream,
}

/// The hosts by their programs. They are state of the process, as its children are.
static HOSTS: Mutex<Option<HashMap<PathBuf, Host>>> = Mutex::new(None);

/// Starts a guard, if need be with a new host.
fn start(
    program: &Path,
    request: &[u8],
    descriptors: &[OwnedFd; host::DESCRIPTORS],
) -> io::Result<(Pid, ProcessHandle)> {
    let length = u32::try_from(request.len()).ok();
    let length = length.filter(|length| *length <= host::LONGEST);
    let length = length.ok_or(io::ErrorKind::ArgumentListTooLong)?;
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    let hosts = hosts.get_or_insert_default();
    if let Some(host) = hosts.get_mut(program) {
        match host.start(length, request, descriptors) {
            Ok(answer) => return answer.into_guard(),
            // It was killed or stopped.
            Err(_) => hosts.remove(program).into_iter().for_each(Host::kill),
        }
    }
    let mut host = Host::open(program)?;
    let answer = host.start(length, request, descriptors);
    if answer.is_ok() {
        hosts.insert(program.to_owned(), host);
    } else {
        host.kill();
    }
    answer?.into_guard()
}

/// Ends the guard hosts of this process, whose guards end too.
pub fn end_hosts() {
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, host) in hosts.take().into_iter().flatten() {
        let Host { process, control } = host;
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
        let (control, theirs) = UnixStream::pair()?;
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
        Ok(Self { process, control })
    }

    fn start(
        &mut self,
        length: u32,
        request: &[u8],
        descriptors: &[OwnedFd; host::DESCRIPTORS],
    ) -> io::Result<Answer> {
        let descriptors = descriptors.each_ref().map(AsFd::as_fd);
        os::send_descriptors(&self.control, &length.to_le_bytes(), &descriptors)?;
        self.control.write_all(request)?;
        self.wait_for_answer()?;
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

    fn wait_for_answer(&self) -> io::Result<()> {
        let began = Instant::now();
        let interval = Timespec::try_from(CONTINUE).ok();
        let mut sources = [PollFd::new(&self.control, PollFlags::IN)];
        while retry_on_intr(|| poll(&mut sources, interval.as_ref()))? == 0 {
            if began.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let _ = kill_process(Pid::from_child(&self.process), Signal::CONT);
        }
        Ok(())
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

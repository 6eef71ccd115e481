//! Starts all processes of Proctor. Each one runs under a [`guard`](crate::guard) with exactly the
//! given environment, and leaves no process behind when its [`Process`] ends.

mod attack;
mod ends;
mod guard_lines;
mod guards;
mod hosts;
mod lingering;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proctor_record::redact::Redactor;
use rustix::process::{Pid, Signal};
use thiserror::Error;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::ends::ProcessEnds;
use self::guards::Guard;
pub use self::guards::ProcessEnd;
pub use self::hosts::end_hosts;
pub use self::lingering::LingeringProcess;
use crate::environment::server_environment;
pub use crate::exit::ProcessExit;
use crate::guard::{KILL_LIMIT, StartRequest};
use crate::program::{self, ProgramError};
use crate::tail::{Tail, drain};

/// The default time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(2);

/// How long Proctor may take to notice the end of a guard on a busy machine.
const SLACK: Duration = Duration::from_secs(1);

/// A process to start.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// A path relative to the folder, or a name to look up in the `PATH` of `env`.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The complete environment; the process inherits no other variable.
    pub env: BTreeMap<String, String>,
    pub folder: PathBuf,
    /// The `proctor` binary, which contains the guard.
    pub guard: PathBuf,
    /// The time between SIGTERM and SIGKILL when the process, or what it left running, has to be
    /// ended.
    pub grace: Duration,
}

/// Why a process could not be started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The working folder does not exist or is not a folder.
    #[error("folder `{0}` does not exist")]
    NoFolder(PathBuf),
    /// The program was not found or can't be executed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The system could not start the guard.
    #[error("could not start the guard `{guard}`: {reason}")]
    Guard { guard: PathBuf, reason: io::Error },
}

impl Spawn {
    /// A server with the given command. Its environment is still empty.
    pub fn server(command: &str, args: &[String], folder: &Path, guard: &Path) -> Self {
        Self {
            // The running Proctor binary, which includes an MCP server.
            program: match command {
                "proctor" => guard.into(),
                other => other.into(),
            },
            args: args.iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            folder: folder.to_owned(),
            guard: guard.to_owned(),
            grace: GRACE,
        }
    }

    /// Sets the environment of a server.
    #[must_use]
    pub fn with_environment(
        mut self,
        inherited: &BTreeMap<String, String>,
        own: &BTreeMap<String, String>,
        pass: &[String],
    ) -> Self {
        self.env = server_environment(inherited, own, pass);
        self
    }

    /// Starts the process with piped streams. Must be called within a tokio runtime.
    pub fn start(self) -> Result<Process, SpawnError> {
        let (stderr, theirs) = io::pipe().map_err(|error| self.refused(error))?;
        let mut process = self.start_writing_to(theirs.into())?;
        process.drain(self.receiver(stderr)?, None);
        Ok(process)
    }

    /// Starts the process with piped stdin and stdout; it inherits stderr. Must be called within a
    /// tokio runtime.
    pub fn start_with_our_stderr(self) -> Result<Process, SpawnError> {
        let ours = rustix::stdio::stderr().try_clone_to_owned();
        let ours = ours.map_err(|error| self.refused(error))?;
        self.start_writing_to(ours)
    }

    /// Like `start`, but the caller must read stderr. [`Process::stderr`] holds what the caller
    /// pushes to it.
    pub fn start_with_stderr(self) -> Result<(Process, pipe::Receiver), SpawnError> {
        let (stderr, theirs) = io::pipe().map_err(|error| self.refused(error))?;
        let process = self.start_writing_to(theirs.into())?;
        Ok((process, self.receiver(stderr)?))
    }

    /// Starts the process without stdin. What it leaves running continues after its exit. Must be
    /// called within a tokio runtime.
    pub fn start_lingering(self) -> Result<LingeringProcess, SpawnError> {
        let refused = |source| self.refused(source);
        let null = File::open("/dev/null").map_err(refused)?;
        let (stdout, out) = io::pipe().map_err(refused)?;
        let (stderr, err) = io::pipe().map_err(refused)?;
        let [stdout, stderr] = [self.receiver(stdout)?, self.receiver(stderr)?];
        let merged = Tail::default();
        let streams = [null.into(), out.into(), err.into()];
        let mut process = self.start_with(&streams, true, Some(&merged))?;
        process.stdout = Some(stdout);
        process.drain(stderr, Some(&merged));
        Ok(LingeringProcess::new(process, merged))
    }

    fn receiver(&self, pipe: PipeReader) -> Result<pipe::Receiver, SpawnError> {
        pipe::Receiver::from_owned_fd(pipe.into()).map_err(|error| self.refused(error))
    }

    fn refused(&self, reason: io::Error) -> SpawnError {
        SpawnError::Guard {
            guard: self.guard.clone(),
            reason,
        }
    }

    /// Starts the process with piped stdin and stdout.
    fn start_writing_to(&self, stderr: OwnedFd) -> Result<Process, SpawnError> {
        let refused = |source| self.refused(source);
        let (theirs, stdin) = io::pipe().map_err(refused)?;
        let (stdout, out) = io::pipe().map_err(refused)?;
        let stdin = pipe::Sender::from_owned_fd(stdin.into()).map_err(refused)?;
        let stdout = self.receiver(stdout)?;
        let mut process = self.start_with(&[theirs.into(), out.into(), stderr], false, None)?;
        (process.stdin, process.stdout) = (Some(stdin), Some(stdout));
        Ok(process)
    }

    fn start_with(
        &self,
        streams: &[OwnedFd; 3],
        linger: bool,
        merged: Option<&Tail>,
    ) -> Result<Process, SpawnError> {
        // The folder of a file that was named without one.
        let folder = if self.folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.folder
        };
        if !folder.is_dir() {
            return Err(SpawnError::NoFolder(self.folder.clone()));
        }
        let refused = |source| self.refused(source);
        // A guard works in another folder.
        let folder = std::path::absolute(folder).map_err(refused)?;
        let guard = std::path::absolute(&self.guard).map_err(refused)?;
        let path = self.env.get("PATH").map(String::as_str);
        let program = program::resolve(&self.program, &folder, path)?;
        let request = StartRequest {
            folder: &folder,
            grace: self.grace,
            linger,
            program: program.as_os_str(),
            args: &self.args,
            env: &self.env,
        };
        let request = request.render().map_err(refused)?;
        let stderr = Tail::default();
        let tails = [Some(&stderr), merged].into_iter().flatten().cloned();
        let guard = Guard::start(&guard, &request, streams, self.grace, tails.collect());
        Ok(Process {
            stdin: None,
            stdout: None,
            guard: guard.map_err(refused)?,
            stderr,
            draining: None,
            grace: self.grace,
            signalled: AtomicBool::new(false),
        })
    }
}

/// A process under its guard. Dropping it ends the process and everything that it started.
#[derive(Debug)]
pub struct Process {
    /// The stdin of the process. Closing it asks the process to exit.
    pub stdin: Option<pipe::Sender>,
    /// The stdout of the process. It reaches its end when the process and everything that it
    /// started have closed it.
    pub stdout: Option<pipe::Receiver>,
    guard: Guard,
    stderr: Tail,
    /// The task that reads stderr to its end.
    draining: Option<JoinHandle<()>>,
    grace: Duration,
    /// Whether Proctor asked the guard to end the process, which sends it a signal.
    signalled: AtomicBool,
}

impl Process {
    /// Reads stderr to its end, and copies it into `merged` too.
    fn drain(&mut self, stderr: pipe::Receiver, merged: Option<&Tail>) {
        let tails = [Some(&self.stderr), merged].into_iter().flatten().cloned();
        let tails: Vec<Tail> = tails.collect();
        self.draining = Some(tokio::spawn(async move { drain(stderr, &tails).await }));
    }

    /// Whether Proctor sent the process a signal before it ended. Closing its stdin doesn't count.
    pub fn was_signalled(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }

    /// The last 64 KiB of stderr so far, without secrets. Complete once `wait` has returned.
    pub fn stderr_tail(&self, redactor: &Redactor) -> String {
        self.stderr.redacted(redactor)
    }

    /// A handle to stderr that outlives the process.
    pub fn stderr(&self) -> Tail {
        self.stderr.clone()
    }

    /// Waits until the process and everything that it started have ended, without ending them.
    /// Cancel safe: it may be dropped and called again.
    pub async fn wait(&mut self) -> ProcessExit {
        let ended = self.guard.ended().await;
        if let Some(draining) = &mut self.draining {
            // Only a process that even the guard could not end still holds the stream.
            let _ = timeout(SLACK, draining).await;
            self.draining = None;
        }
        ended
    }

    /// Asks the guard to end the process and everything that it started, and returns at once. A
    /// second call skips the grace period.
    pub fn end(&self) {
        // A stopped guard receives no other signal.
        if !self.guard.has_ended() && self.guard.signal(&[Signal::TERM, Signal::CONT]) {
            self.signalled.store(true, Ordering::Relaxed);
        }
    }

    /// The pid of the guard, until it has ended. Everything that the process starts is below it.
    pub fn guard_pid(&self) -> Option<Pid> {
        self.guard.pid()
    }

    /// What tells when the process and everything that it started have ended, even after it was dropped.
    pub fn ending(&self) -> ProcessEnd {
        self.guard.end()
    }

    /// Closes stdin, gives the process `patience` to exit, then ends it. Returns within `patience`,
    /// the grace period and seven seconds.
    pub async fn stop(mut self, patience: Duration) -> ProcessExit {
        self.stdin = None;
        if let Some(mut stdout) = self.stdout.take() {
            // Otherwise the process could block on its last output, or die of SIGPIPE.
            tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await });
        }
        self.stopped(patience).await
    }

    /// Like [`Self::stop`], for a process whose stdin and stdout belong to another task.
    pub async fn stopped(&mut self, patience: Duration) -> ProcessExit {
        if let Ok(ended) = timeout(patience, self.wait()).await {
            return ended;
        }
        // On a busy machine both may complete at once.
        self.end();
        let limit = self.grace + KILL_LIMIT + SLACK;
        if let Ok(ended) = timeout(limit, self.wait()).await {
            return ended;
        }
        // The guard does not end: it is stopped repeatedly, or gets no CPU time.
        if !self.guard.has_ended() {
            attack::release(self.guard.link()).await;
        }
        if let Ok(ended) = timeout(SLACK, self.wait()).await {
            return ended;
        }
        self.guard.signal(&[Signal::KILL]);
        hosts::wake_host(self.guard.link());
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        if self.guard.has_ended() {
            return;
        }
        let guard = self.guard.link().clone();
        // The runtime waits for this task before it shuts down, so Proctor does not exit before the
        // processes that it started.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let limit = self.grace + KILL_LIMIT + SLACK;
            runtime.spawn_blocking(move || guard.process.wait(limit));
        }
    }
}

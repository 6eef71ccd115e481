//! Starts all processes of Proctor. Each one runs under a [`guard`] with exactly the
//! given environment, and leaves no process behind when its [`Process`] ends.

mod attack;
mod lingering;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proctor_core::redact::Redactor;
use rustix::process::{Pid, Signal, getpid, kill_process};
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::lingering::LingeringProcess;
use crate::environment::server_environment;
pub use crate::exit::ProcessExit;
use crate::guard::{self, KILL_LIMIT, Order};
pub use crate::os::wait_for;
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
    /// The `proctor` binary, which contains the guard or lies beside it.
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
        let child = self.spawn(Stdio::piped(), Stdio::piped(), false)?;
        Ok(Process::watch(child, self.grace, None))
    }

    /// Starts the process with piped stdin and stdout; it inherits stderr. Must be called within a
    /// tokio runtime.
    pub fn start_with_our_stderr(self) -> Result<Process, SpawnError> {
        let child = self.spawn(Stdio::piped(), Stdio::inherit(), false)?;
        Ok(Process::watch(child, self.grace, None))
    }

    /// Like `start`, but the caller must read stderr. [`Process::stderr`] holds what the caller
    /// pushes to it.
    pub fn start_with_stderr(self) -> Result<(Process, ChildStderr), SpawnError> {
        let mut child = self.spawn(Stdio::piped(), Stdio::piped(), false)?;
        let none = || self.refused(io::Error::other("the pipe could not be opened"));
        let stderr = child.stderr.take().ok_or_else(none)?;
        Ok((Process::watch(child, self.grace, None), stderr))
    }

    /// Starts the process without stdin. What it leaves running continues after its exit. Must be
    /// called within a tokio runtime.
    pub fn start_lingering(self) -> Result<LingeringProcess, SpawnError> {
        let refused = |source| self.refused(source);
        let (ours, guards) = StdStream::pair().map_err(refused)?;
        ours.set_nonblocking(true).map_err(refused)?;
        let exit_report = UnixStream::from_std(ours).map_err(refused)?;
        let child = self.spawn(OwnedFd::from(guards).into(), Stdio::piped(), true)?;
        Ok(LingeringProcess::watch(child, self.grace, exit_report))
    }

    fn refused(&self, reason: io::Error) -> SpawnError {
        SpawnError::Guard {
            guard: self.guard.clone(),
            reason,
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that starts programs"
    )]
    fn spawn(&self, stdin: Stdio, stderr: Stdio, linger: bool) -> Result<Child, SpawnError> {
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
        // A relative path would be looked up after the guard has changed into the folder.
        let folder = std::path::absolute(folder).map_err(refused)?;
        let guard = std::path::absolute(guard::program(&self.guard)).map_err(refused)?;
        let path = self.env.get("PATH").map(String::as_str);
        let order = Order {
            parent: getpid(),
            grace: self.grace,
            linger,
            program: program::resolve(&self.program, &folder, path)?.into(),
            args: self.args.clone(),
        };
        Command::new(guard)
            .args(order.render())
            .env_clear()
            .envs(&self.env)
            .current_dir(folder)
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(refused)
    }
}

/// A process under its guard. Dropping it ends the process and everything that it started.
#[derive(Debug)]
pub struct Process {
    /// The stdin of the process. Closing it asks the process to exit.
    pub stdin: Option<ChildStdin>,
    /// The stdout of the process. It reaches its end when the process and everything that it
    /// started have closed it.
    pub stdout: Option<ChildStdout>,
    guard: Child,
    stderr: Tail,
    /// The task that reads stderr to its end.
    draining: Option<JoinHandle<()>>,
    grace: Duration,
    /// Whether Proctor asked the guard to end the process, which sends it a signal.
    signalled: AtomicBool,
}

impl Process {
    /// Copies stderr into `merged` too.
    fn watch(mut guard: Child, grace: Duration, merged: Option<&Tail>) -> Self {
        let stderr = Tail::default();
        let tails: Vec<Tail> = [Some(&stderr), merged]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let stream = guard.stderr.take();
        if let Some(pid) = pid_of(&guard) {
            attack::watch(pid, tails.clone());
        }
        Self {
            stdin: guard.stdin.take(),
            stdout: guard.stdout.take(),
            draining: stream.map(|stream| tokio::spawn(async move { drain(stream, &tails).await })),
            guard,
            stderr,
            grace,
            signalled: AtomicBool::new(false),
        }
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
        let guard = self.guard_pid();
        let status = self.guard.wait().await;
        let ended = status.map_or(ProcessExit::Unknown, ProcessExit::from);
        attack::clear_after(guard, ended, &self.stderr).await;
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
        if let Some(pid) = self.guard_pid() {
            self.signalled.store(true, Ordering::Relaxed);
            let _ = kill_process(pid, Signal::TERM);
            // A stopped guard receives no other signal.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// The pid of the guard, until it has been waited for. Everything that the process starts is
    /// below it.
    pub fn guard_pid(&self) -> Option<Pid> {
        pid_of(&self.guard)
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
        if !matches!(self.guard.try_wait(), Ok(Some(_))) {
            self.end();
        }
        let limit = self.grace + KILL_LIMIT + SLACK;
        if let Ok(ended) = timeout(limit, self.wait()).await {
            return ended;
        }
        // The guard does not end: it is stopped repeatedly, or gets no CPU time.
        if let Some(pid) = self.guard_pid() {
            attack::release(pid).await;
        }
        if let Ok(ended) = timeout(SLACK, self.wait()).await {
            return ended;
        }
        let _ = self.guard.start_kill();
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        let Some(guard) = self.guard_pid() else {
            return;
        };
        // The runtime waits for this task before it shuts down, so Proctor does not exit before the
        // processes that it started.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let limit = self.grace + KILL_LIMIT + SLACK;
            runtime.spawn_blocking(move || wait_for(guard, limit));
        }
    }
}

fn pid_of(guard: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(guard.id()?).ok()?)
}

//! Starts an agent's program, and keeps what it writes.
//!
//! Main types: [`Post`], which is where an agent works, [`RunningAgent`], and [`AgentOutput`], its stdout. The
//! program and all that it starts end when the [`RunningAgent`] is dropped.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use data_encoding::BASE64;
use proctor_core::event::{AgentClaimed, AgentEnded, AgentStarted, Body, EventKind, Purpose};
use rustix::process::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};

use super::cli::OutputReader;
use super::{AgentReport, Launch};
use crate::agent::ToolCallNotice;
use proctor_contain::process::{GRACE, Process, ProcessExit, Spawn, SpawnError};
use proctor_wire::recorder::Recorder;
use proctor_wire::transport::frames::{LineReader, StreamLine};

/// The longest line that an agent may write to be understood.
const LONGEST_LINE: usize = 32 << 20;

/// The longest line that is kept whole.
const LONGEST_KEPT: usize = 256 << 10;

/// How much of what an agent writes is kept; of what comes later, only sizes and hashes.
const KEPT: usize = 64 << 20;

/// How much of the end of stderr is kept.
const STDERR: usize = 16 << 10;

/// Where an agent works, and who takes note of it.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    /// The trial's record.
    pub(crate) recorder: &'a Recorder,
    /// What it works for.
    pub(crate) purpose: Purpose,
    /// The `proctor` binary, which the guard is a part of.
    pub(crate) guard: &'a Path,
    /// The agent's working folder.
    pub(crate) folder: &'a Path,
    /// Is told the number of the process under which everything that the agent starts lives: the taps
    /// let nobody else in.
    pub(crate) admit: &'a (dyn Fn(Pid) + Send + Sync),
    /// The version that the agent gives itself.
    pub(crate) version: Option<&'a str>,
    /// The agent's tool that loads skills, if it is known.
    pub(crate) skill_tool: Option<&'a str>,
    /// Is told of the calls that the agent tells of.
    pub(crate) watch: &'a (dyn Fn(ToolCallNotice) + Send + Sync),
}

/// Why an agent's program is not running.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentStartError {
    /// A file that it needs can't be written.
    #[error("`{}` could not be written: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system has a limit for arguments and variables.
    #[error("its command line is too long for the system: the prompt is part of it")]
    TooLong,
    /// It can't be started.
    #[error(transparent)]
    Spawn(SpawnError),
    /// The system gave no pipes.
    #[error("can't open its pipes")]
    NoPipes,
}

impl From<SpawnError> for AgentStartError {
    fn from(error: SpawnError) -> Self {
        match error {
            SpawnError::Guard { reason, .. }
                if reason.kind() == std::io::ErrorKind::ArgumentListTooLong =>
            {
                Self::TooLong
            }
            other => Self::Spawn(other),
        }
    }
}

/// An agent's program that runs. Dropping it ends the program and all that it started.
pub(crate) struct RunningAgent {
    /// What the program reads.
    pub(crate) stdin: ChildStdin,
    /// What it writes.
    pub(crate) stdout: AgentOutput,
    /// The program itself.
    pub(crate) process: Process,
}

impl RunningAgent {
    /// Writes the files of a launch and starts its program. What `launch.stdin` holds is for the caller
    /// to write.
    pub(crate) fn start(launch: &Launch, post: &Post<'_>) -> Result<Self, AgentStartError> {
        for (path, text) in &launch.files {
            write(path, text).map_err(|source| AgentStartError::File {
                path: path.clone(),
                source,
            })?;
        }
        let command = std::iter::once(&launch.program).chain(&launch.args);
        post.recorder.record(EventKind::AgentStarted(AgentStarted {
            command: command.cloned().collect(),
            version: post.version.map(str::to_owned),
            skill_tool: post.skill_tool.map(str::to_owned),
            purpose: post.purpose,
        }));
        let mut process = Spawn {
            program: launch.program.clone().into(),
            args: launch.args.iter().map(Into::into).collect(),
            env: launch.env.clone(),
            folder: post.folder.to_owned(),
            guard: post.guard.to_owned(),
            grace: GRACE,
        }
        .start()?;
        if let Some(guard) = process.guard_pid() {
            (post.admit)(guard);
        }
        match (process.stdin.take(), process.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok(Self {
                stdin,
                stdout: AgentOutput::new(stdout, post.recorder),
                process,
            }),
            _ => Err(AgentStartError::NoPipes),
        }
    }
}

impl Post<'_> {
    /// Writes what the agent says of a call.
    pub(crate) fn claimed(&self, claim: AgentClaimed) {
        (self.watch)(ToolCallNotice {
            server: String::new(),
            name: claim.tool.clone(),
        });
        self.recorder.record(EventKind::AgentClaimed(claim));
    }

    /// Writes how the agent ended.
    pub(crate) fn ended(&self, ended: ProcessExit, told: &AgentReport, stderr: &str) {
        let from = stderr.ceil_char_boundary(stderr.len().saturating_sub(STDERR));
        let stderr = Some(&stderr[from..]).filter(|text| !text.trim().is_empty());
        self.recorder.record(EventKind::AgentEnded(AgentEnded {
            how: ended.to_string(),
            usage: told
                .usage
                .map(|usage| self.recorder.believed_usage("the agent", usage)),
            turns: told.turns,
            stderr: stderr.map(str::to_owned),
        }));
    }
}

/// What an agent writes to its stdout, line by line. Every line is in the record before it is read.
pub(crate) struct AgentOutput {
    lines: LineReader<ChildStdout>,
    recorder: Recorder,
    /// How much more is kept.
    room: usize,
}

impl AgentOutput {
    fn new(stdout: ChildStdout, recorder: &Recorder) -> Self {
        Self {
            lines: LineReader::new(stdout, LONGEST_LINE),
            recorder: recorder.clone(),
            room: KEPT,
        }
    }

    /// The next line that can be understood, without its line break; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            self.recorder.room().await;
            match self.lines.next().await {
                Ok(Some(StreamLine::Whole(line) | StreamLine::Torn(line))) => {
                    self.keep(&line);
                    return Some(line);
                }
                Ok(Some(StreamLine::Oversized(cut))) => self.record(Body::Cut {
                    bytes: cut.bytes,
                    sha256: cut.sha256,
                }),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn keep(&mut self, line: &[u8]) {
        if line.len() > LONGEST_KEPT.min(self.room) {
            let mut passed = proctor_wire::transport::frames::DiscardedBytes::default();
            passed.take(line);
            let cut = passed.end();
            return self.record(Body::Cut {
                bytes: cut.bytes,
                sha256: cut.sha256,
            });
        }
        self.room -= line.len();
        self.record(match str::from_utf8(line) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Base64(BASE64.encode(line)),
        });
    }

    fn record(&self, line: Body) {
        self.recorder.record(EventKind::AgentWrote { line });
    }
}

/// Writes a file that only its owner can read, in a folder that may have to be made.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// How long a program may take to end once it is asked to.
const PATIENCE: Duration = Duration::from_millis(500);

/// Runs a program to its end. Whoever drops this ends it.
pub(crate) async fn run(
    launch: &Launch,
    mut reader: OutputReader,
    post: &Post<'_>,
) -> Result<AgentReport, AgentStartError> {
    let RunningAgent {
        mut stdin,
        mut stdout,
        mut process,
    } = RunningAgent::start(launch, post)?;
    let feeding = async {
        if let Some(text) = &launch.stdin {
            // A program that does not read it has ended, or will say so.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        drop(stdin);
    };
    let is_hopeless = {
        let mut reading = pin!(read(&mut stdout, &mut reader, post));
        tokio::select! {
            biased;
            is_hopeless = &mut reading => is_hopeless,
            () = feeding => reading.await,
        }
    };
    let stderr = process.stderr();
    let ended = if is_hopeless {
        process.stop(PATIENCE).await
    } else {
        process.wait().await
    };
    let stderr = stderr.redacted(post.recorder.redactor());
    let told = reader.end(ended, &stderr);
    post.ended(ended, &told, &stderr);
    Ok(told)
}

/// Reads until the end, or until there is no hope.
async fn read(stdout: &mut AgentOutput, reader: &mut OutputReader, post: &Post<'_>) -> bool {
    while let Some(line) = stdout.next().await {
        for claim in reader.line(&line) {
            post.claimed(claim);
        }
        if reader.hopeless().is_some() {
            return true;
        }
    }
    false
}

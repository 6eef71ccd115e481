//! Starts an agent's program and records its output.
//!
//! Main types: [`Post`] for the agent's working conditions, [`RunningAgent`], and [`AgentOutput`]
//! for its stdout. Dropping the [`RunningAgent`] ends the program and everything that it started.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use data_encoding::BASE64;
use proctor_record::event::{AgentClaimed, AgentEnded, AgentStarted, Body, EventKind, Purpose};
use rustix::process::Pid;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

use super::cli::OutputReader;
use super::{AgentReport, Launch};
use crate::agent::ToolCallNotice;
use proctor_contain::process::{GRACE, Process, ProcessEnd, ProcessExit, Spawn, SpawnError};
use proctor_wire::recorder::Recorder;
use proctor_wire::transport::frames::{LineReader, StreamLine};

/// The longest line of an agent that is parsed.
const LONGEST_LINE: usize = 32 << 20;

/// The longest line that is recorded in full.
const LONGEST_KEPT: usize = 256 << 10;

/// How much of an agent's output is recorded; of the rest, only sizes and hashes.
const KEPT: usize = 64 << 20;

/// How much of the end of stderr is kept.
const STDERR: usize = 16 << 10;

/// The working conditions of an agent, and the receivers of its events.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    pub(crate) recorder: &'a Recorder,
    pub(crate) purpose: Purpose,
    /// The `proctor` binary, which contains the guard.
    pub(crate) guard: &'a Path,
    pub(crate) folder: &'a Path,
    /// Called with the pid below which all processes of the agent live, and with what tells when they have
    /// ended. The taps accept connections only from these.
    pub(crate) admit: &'a (dyn Fn(Pid, ProcessEnd) + Send + Sync),
    /// The version that the agent reports.
    pub(crate) version: Option<&'a str>,
    /// The agent's tool that loads skills, if known.
    pub(crate) skill_tool: Option<&'a str>,
    /// Called for each call that the agent reports.
    pub(crate) watch: &'a (dyn Fn(ToolCallNotice) + Send + Sync),
}

/// Why an agent's program did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentStartError {
    #[error("`{}` could not be written: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The command line exceeds the system's limit.
    #[error("its command line is too long for the system: the prompt is part of it")]
    TooLong,
    #[error(transparent)]
    Spawn(SpawnError),
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

/// A running agent program. Dropping it ends the program and everything that it started.
pub(crate) struct RunningAgent {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: AgentOutput,
    pub(crate) process: Process,
}

impl RunningAgent {
    /// Writes the files of a launch and starts its program. The caller writes `launch.stdin`.
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
            (post.admit)(guard, process.ending());
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
    /// Records a call that the agent reports.
    pub(crate) fn claimed(&self, claim: AgentClaimed) {
        (self.watch)(ToolCallNotice {
            server: String::new(),
            name: claim.tool.clone(),
        });
        self.recorder.record(EventKind::AgentClaimed(claim));
    }

    /// Records the end of the agent.
    pub(crate) fn ended(&self, ended: ProcessExit, report: &AgentReport, stderr: &str) {
        let from = stderr.ceil_char_boundary(stderr.len().saturating_sub(STDERR));
        let stderr = Some(&stderr[from..]).filter(|text| !text.trim().is_empty());
        self.recorder.record(EventKind::AgentEnded(AgentEnded {
            how: ended.to_string(),
            usage: report
                .usage
                .map(|usage| self.recorder.believed_usage("the agent", usage)),
            turns: report.turns,
            stderr: stderr.map(str::to_owned),
        }));
    }
}

/// The stdout of an agent, line by line. Every line is recorded before it is returned.
pub(crate) struct AgentOutput {
    lines: LineReader<pipe::Receiver>,
    recorder: Recorder,
    /// How many more bytes are recorded.
    room: usize,
}

impl AgentOutput {
    fn new(stdout: pipe::Receiver, recorder: &Recorder) -> Self {
        Self {
            lines: LineReader::new(stdout, LONGEST_LINE),
            recorder: recorder.clone(),
            room: KEPT,
        }
    }

    /// The next line that is not too long, without its line break; `None` at the end.
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

/// Writes a file that only its owner can read, and creates its folder.
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

/// The grace period for a program that is asked to end.
const EXIT_WAIT: Duration = Duration::from_millis(500);

/// Runs a program to its end. Dropping the future ends it.
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
            // A program that does not read its stdin has exited, or will report that.
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
        process.stop(EXIT_WAIT).await
    } else {
        process.wait().await
    };
    let stderr = stderr.redacted(post.recorder.redactor());
    let report = reader.end(ended, &stderr);
    post.ended(ended, &report, &stderr);
    Ok(report)
}

/// Reads until the end, or until it is pointless to wait.
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

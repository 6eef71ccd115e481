//! What happened, as it is written to the record: owned, versioned, one JSON object a line.
//!
//! Its main type is [`Event`]. A later version of Proctor reads every earlier one, so a variant is
//! never removed and a field never changes its meaning; new ones are optional. An earlier version
//! reads what it knows of a later one, and skips the rest. Enums are tagged from outside: other tagging
//! buffers numbers, which loses digits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod agent;
mod config;
mod context;
mod ends;
mod planned;
mod unknown;
mod work;

pub use crate::phase::StepPhase;

pub use self::ends::{ConnectionEnd, EndedBy, HttpFailure, ProcessEnd};

pub use self::agent::{AgentClaimed, AgentEnded, AgentStarted, Claim};
pub use self::config::{AgentConfig, RunConfig, ServerConfig, TaskSetConfig, TimeoutConfig};
pub use self::context::SourceContext;
pub use self::planned::{
    NotRunOutcome, PlannedAgent, PlannedCase, PlannedEval, PlannedLimits, PlannedOptions,
    PlannedWarning, RunKind, RunPlanned, ServerSeen, SkippedEval, Surface,
};
pub use self::unknown::UnknownEvent;
pub use self::work::{
    CheckEvaluated, CheckId, ModelAsked, ModelFailed, ModelReplied, Purpose, StepEnded,
};

/// The version of the record that this program writes. It is raised only for what an earlier version
/// must not read at all; whatever is added is known by the version of Proctor that wrote it.
pub const RECORD_VERSION: u32 = 1;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number within its file, from one, without gaps.
    pub seq: u64,
    /// When: microseconds of a monotonic clock since the run started.
    pub at: u64,
    /// What.
    #[serde(serialize_with = "unknown::serialize")]
    pub event: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// A run started. First in `run.jsonl`.
    RunStarted(RunStarted),
    /// A run ended.
    RunEnded(RunEnded),
    /// A trial started. First in its file.
    TrialStarted(TrialStarted),
    /// A trial came to another phase.
    PhaseStarted {
        /// Which one.
        phase: StepPhase,
    },
    /// A trial ended. Last in its file, before the file is renamed.
    TrialEnded(TrialEnded),
    /// Somebody connected to a server.
    ConnectionOpened(ConnectionOpened),
    /// A connection ended.
    ConnectionClosed(ConnectionClosed),
    /// A message went over a connection, or what was meant to be one.
    Frame(Frame),
    /// The head of an HTTP request or response.
    Http(HttpHead),
    /// Something about a connection that should not be so.
    Finding(Finding),
    /// What a run will do. In `run.jsonl`, before the first trial.
    RunPlanned(RunPlanned),
    /// What a server said of itself before the first trial. In `run.jsonl`.
    ServerSeen(ServerSeen),
    /// The agent was asked to do its task.
    Prompted {
        /// What it was asked.
        text: Body,
    },
    /// The tools that a model is offered from here on, as a JSON array.
    ToolsOffered {
        /// The tools; always a blob, since most trials offer the same.
        tools: Body,
    },
    /// A model was asked.
    ModelAsked(ModelAsked),
    /// A model was asked in vain, and may be asked again.
    ModelFailed(ModelFailed),
    /// A model replied.
    ModelReplied(ModelReplied),
    /// The reply to a question was taken from the record of an earlier run.
    Replayed {
        /// Which question.
        ask: u64,
        /// Whether it is another one than it was then.
        drifted: bool,
    },
    /// The agent was done.
    AgentAnswered {
        /// Its final answer.
        text: Body,
    },
    /// An external agent was started.
    AgentStarted(AgentStarted),
    /// An external agent wrote this: a line of its output, as it came.
    AgentWrote {
        /// The line.
        line: Body,
    },
    /// What an external agent says of a call.
    AgentClaimed(AgentClaimed),
    /// An external agent ended.
    AgentEnded(AgentEnded),
    /// A step came to its end.
    StepEnded(StepEnded),
    /// A check was evaluated.
    Graded(CheckEvaluated),
    /// Something that only a newer version knows.
    #[serde(skip)]
    Unknown(UnknownEvent),
}

impl EventKind {
    /// About how many bytes its long texts have.
    pub fn text_bytes(&mut self) -> usize {
        let others = match self {
            Self::StepEnded(step) => step.outputs.values().map(String::len).sum(),
            Self::Graded(graded) => graded.notes.iter().map(String::len).sum(),
            _ => 0,
        };
        let bodies = self.bodies().into_iter().map(|body| match body {
            Body::Text(text) | Body::Base64(text) => text.len(),
            Body::Blob { .. } | Body::Cut { .. } => 0,
        });
        bodies.sum::<usize>() + others
    }

    /// The bodies that may be too long for a line.
    pub(crate) fn bodies(&mut self) -> Vec<&mut Body> {
        match self {
            Self::Frame(frame) => vec![&mut frame.body],
            Self::Prompted { text } | Self::AgentAnswered { text } => vec![text],
            Self::ToolsOffered { tools } => vec![tools],
            Self::ModelAsked(asked) => vec![&mut asked.request],
            Self::ModelReplied(replied) => {
                let raw = replied.raw.iter_mut();
                std::iter::once(&mut replied.turn).chain(raw).collect()
            }
            Self::StepEnded(step) => step.output.iter_mut().collect(),
            Self::AgentWrote { line } => vec![line],
            Self::AgentClaimed(claim) => claim.arguments.iter_mut().collect(),
            Self::ServerSeen(seen) => {
                let surface = seen.surface.iter_mut();
                seen.tool_list.iter_mut().chain(surface).collect()
            }
            Self::RunStarted(_)
            | Self::RunEnded(_)
            | Self::TrialStarted(_)
            | Self::PhaseStarted { .. }
            | Self::TrialEnded(_)
            | Self::ConnectionOpened(_)
            | Self::ConnectionClosed(_)
            | Self::Http(_)
            | Self::Finding(_)
            | Self::RunPlanned(_)
            | Self::ModelFailed(_)
            | Self::Replayed { .. }
            | Self::AgentStarted(_)
            | Self::AgentEnded(_)
            | Self::Graded(_)
            | Self::Unknown(_) => Vec::new(),
        }
    }
}

/// What a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// The version of the record.
    pub record: u32,
    /// The version of Proctor.
    pub proctor: String,
    /// The wall clock, RFC 3339.
    pub started: String,
    /// What is run.
    pub name: String,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// The commit and the CI job that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<SourceContext>,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    /// The exit code.
    pub exit: u8,
    /// Why, if it did not end by itself.
    pub reason: Option<String>,
    /// The trials, by the stem of their files, whose outcome in the record differs from the outcome that
    /// the run saw. Such a record decides nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub changed_trials: BTreeSet<String>,
}

/// Which trial it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialStarted {
    /// The case.
    pub case: String,
    /// The agent, where there is one.
    pub agent: Option<String>,
    /// Which of the case's trials by that agent, from one.
    pub repeat: u32,
    /// Which attempt at it, from one.
    pub attempt: u32,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialEnded {
    /// In which outcome.
    pub outcome: Outcome,
    /// Why, unless it passed.
    pub reason: Option<String>,
    /// Who is to blame, if it failed or could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
}

/// Who is to blame for a trial that failed or could not be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The server under test.
    Server,
    /// The agent, or its model.
    Agent,
    /// The suite: its steps, or a case without checks.
    Suite,
    /// The judge.
    Judge,
    /// Everything around: the network, a key, an outage, the disk.
    Infra,
}

/// A trial's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every check passed, and there was at least one.
    Passed,
    /// A check failed, or the server did.
    Failed,
    /// A limit of the trial ended it.
    TimedOut,
    /// We could not tell.
    Errored,
    /// It was stopped from outside.
    Cancelled,
}

/// A connection, by its number within its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// No connection: they are counted from 1.
    pub const NONE: Self = Self(0);
}

/// Somebody connected to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionOpened {
    /// The connection.
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    /// Who connected.
    pub actor: Actor,
    /// How.
    pub transport: WireKind,
    /// The command or address, as it was written.
    pub target: String,
}

/// Who speaks to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// An external agent, through the tap.
    Agent,
    /// Proctor's own loop.
    Loop,
    /// A step of a case.
    Step,
    /// Proctor itself, before anything is run.
    Preflight,
    /// A person at the command line.
    Person,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WireKind {
    /// A process, on its stdin and stdout.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// The older HTTP with server-sent events.
    Sse,
}

/// A connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionClosed {
    /// The connection.
    pub conn: ConnectionId,
    /// Why, in words: `exited with code 1`, `was closed`.
    pub reason: String,
    /// The end of what the server wrote to its stderr.
    pub stderr: Option<String>,
    /// How it ended, as facts; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ConnectionEnd>,
}

/// A message, exactly as it went over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    /// The connection.
    pub conn: ConnectionId,
    /// On HTTP, the exchange it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    /// Which way it went.
    pub direction: Direction,
    /// Its bytes.
    pub body: Body,
}

/// Which way something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// The bytes of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// A text.
    Text(String),
    /// Bytes that are no text.
    Base64(String),
    /// A file under `blobs/`, by its SHA-256.
    Blob {
        /// Its name.
        sha256: String,
        /// Its length.
        bytes: u64,
    },
    /// More than is kept.
    Cut {
        /// The whole length.
        bytes: u64,
        /// The SHA-256 of all of it.
        sha256: String,
    },
}

/// The head of an HTTP request or response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHead {
    /// The connection.
    pub conn: ConnectionId,
    /// The exchange.
    pub exchange: u64,
    /// A request goes to the server, a response to the client.
    pub direction: Direction,
    /// The method and address of a request, the status of a response.
    pub line: String,
    /// The headers. Those that carry secrets are redacted.
    pub headers: BTreeMap<String, String>,
    /// Why the exchange ended early, if it did; `line` says it in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<HttpFailure>,
}

impl HttpHead {
    /// The status of a response; `None` for a request, and for a line that is not a status line.
    pub fn status(&self) -> Option<u16> {
        if self.direction == Direction::ToServer || self.failure.is_some() {
            return None;
        }
        let code = self.line.split(' ').next()?;
        let is_status = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
        code.parse().ok().filter(|_| is_status)
    }
}

/// Something about a connection that should not be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The connection.
    pub conn: ConnectionId,
    /// What sort of thing.
    pub kind: FindingKind,
    /// What exactly.
    pub detail: String,
    /// How often, where it was counted instead of written each time.
    pub count: u64,
}

/// The detail of a finding of noise that shows nothing: where there are others, they are shown.
pub const BLANK_LINE: &str = "a blank line";

/// What can be wrong with what a server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A line on stdout that is no message: a banner, a log line, a blank line.
    Noise,
    /// What looks like a message but is not JSON, or not JSON-RPC.
    Malformed,
    /// A message with both a result and an error.
    ResultAndError,
    /// An answer whose id nobody asked with.
    UnknownId,
    /// A second answer to one request.
    DuplicateAnswer,
    /// An answer that came after it was given up.
    LateAnswer,
    /// A message larger than is taken in.
    TooLarge,
    /// Messages that came faster than they were taken in, and were dropped.
    Dropped,
    /// A list that never ended, repeated itself or was too long.
    Pagination,
    /// Tools that are not what they were when they were listed before.
    ToolsChanged,
    /// A result that breaks the protocol in another way.
    Protocol,
    /// Somebody who tried to come in, and was turned away.
    Refused,
    /// A number of tokens that no reply can have taken. It is about a model, not about a server: its
    /// connection is [`ConnectionId::NONE`].
    AbsurdUsage,
    /// What the client sent is no message, or servers may read it in different ways. The server is not
    /// to blame for it.
    ClientMessage,
    /// A call that got no JSON-RPC answer.
    Unanswered,
}

impl FindingKind {
    /// Whether the server did it. What a client sends, who is turned away and what models claim is not its
    /// doing.
    pub fn is_about_server(self) -> bool {
        match self {
            Self::Refused | Self::ClientMessage | Self::AbsurdUsage => false,
            Self::Noise
            | Self::Malformed
            | Self::ResultAndError
            | Self::UnknownId
            | Self::DuplicateAnswer
            | Self::LateAnswer
            | Self::TooLarge
            | Self::Dropped
            | Self::Pagination
            | Self::ToolsChanged
            | Self::Protocol
            | Self::Unanswered => true,
        }
    }
}

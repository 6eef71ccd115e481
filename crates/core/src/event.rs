//! The events of a record: owned, versioned, one JSON object per line.
//!
//! The main type is [`Event`]. A later version of Proctor reads every earlier record, so variants
//! are never removed, fields never change their meaning, and new fields are optional. An earlier
//! version reads what it knows of a later record, and skips the rest. Enums are externally tagged:
//! other representations buffer numbers, which loses digits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod agent;
mod config;
mod context;
mod ends;
mod gates;
mod known_failure;
mod planned;
mod selection;
mod shard;
mod surface;
mod unknown;
mod work;

pub use crate::phase::Phase;

pub use self::ends::{ConnectionEnd, EndedBy, HttpFailure, ProcessEnd, TrialFolder};

pub use self::agent::{AgentClaimed, AgentEnded, AgentStarted, Claim};
pub use self::config::{
    AgentConfig, RunConfig, ServerConfig, SourceConfig, SurfaceConfig, TaskSetConfig, TimeoutConfig,
};
pub use self::context::SourceContext;
pub use self::gates::{CaseTally, PassHatGate, PlannedGates, RunTally};
pub use self::known_failure::PlannedKnownFailure;
pub use self::planned::{
    CaseParts, CheckPlace, NotRunOutcome, PlannedAgent, PlannedCase, PlannedEval, PlannedLimits,
    PlannedOptions, PlannedProfile, PlannedWarning, RunKind, RunPlanned, ServerSeen, SkippedEval,
    StepPart, Surface,
};
pub use self::selection::{SelectedCall, ToolName, ToolsSelected};
pub use self::shard::PlannedShard;
pub use self::surface::{ChangeClass, SurfaceChange, SurfaceCompared};
pub use self::unknown::UnknownEvent;
pub use self::work::{
    CheckEvaluated, CheckId, ModelAsked, ModelFailed, ModelReplied, Purpose, StepEnded,
};

/// The version of the record that this program writes. It increases only for changes that an
/// earlier version must not read at all; additions are recognized by the version of Proctor that
/// wrote the record.
pub const RECORD_VERSION: u32 = 1;

/// One event of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The sequence number within the file, from one, without gaps.
    pub seq: u64,
    /// Microseconds since the run started, by a monotonic clock.
    pub at: u64,
    #[serde(serialize_with = "unknown::serialize")]
    pub event: EventKind,
}

#[expect(
    clippy::large_enum_variant,
    reason = "the plan of a run is recorded once"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// A run started. First in `run.jsonl`.
    RunStarted(RunStarted),
    RunEnded(RunEnded),
    /// A trial started. First in its file.
    TrialStarted(TrialStarted),
    /// A trial entered another phase.
    PhaseStarted {
        phase: Phase,
    },
    /// A trial ended. Last in its file, before the file is renamed.
    TrialEnded(TrialEnded),
    /// A client connected to a server.
    ConnectionOpened(ConnectionOpened),
    ConnectionClosed(ConnectionClosed),
    /// A message on a connection, valid or not.
    Frame(Frame),
    /// The head of an HTTP request or response.
    Http(HttpHead),
    /// A protocol problem on a connection.
    Finding(Finding),
    /// The plan of a run. In `run.jsonl`, before the first trial.
    RunPlanned(RunPlanned),
    /// What a server reported before the first trial. In `run.jsonl`.
    ServerSeen(ServerSeen),
    /// What changed about a server since its surface lock was written. In `run.jsonl`.
    SurfaceCompared(SurfaceCompared),
    /// The agent got its task, or a further message of the user.
    Prompted {
        text: Body,
        /// The turn that a further message belongs to. The prompt itself, which is turn 1, has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u32>,
    },
    /// The tools of the following model requests, as a JSON array.
    ToolsOffered {
        /// Always a blob, since most trials have the same tools.
        tools: Body,
    },
    ModelAsked(ModelAsked),
    /// A model request failed, and may be retried.
    ModelFailed(ModelFailed),
    ModelReplied(ModelReplied),
    /// The reply to a request was taken from the record of an earlier run.
    Replayed {
        ask: u64,
        /// Whether the request differs from the recorded one.
        drifted: bool,
    },
    /// The agent finished with an answer.
    AgentAnswered {
        text: Body,
    },
    /// An external agent was started.
    AgentStarted(AgentStarted),
    /// A line of an external agent's output.
    AgentWrote {
        line: Body,
    },
    /// A call that an external agent reports.
    AgentClaimed(AgentClaimed),
    /// An external agent ended.
    AgentEnded(AgentEnded),
    /// Proctor answered a call of an external agent itself, so it never reached the server.
    CallWithheld(ToolName),
    /// The agent chose tools in a selection trial, and Proctor called none of them.
    ToolsSelected(ToolsSelected),
    /// A step of a trial ended; in `run.jsonl`, a step of the run's own setup or cleanup.
    StepEnded(StepEnded),
    Graded(CheckEvaluated),
    /// The trial is over, and its folder was removed or kept.
    TrialFolder(TrialFolder),
    /// An event that only a newer version knows.
    #[serde(skip)]
    Unknown(UnknownEvent),
}

impl EventKind {
    /// The approximate size of its long texts in bytes.
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
            Self::Prompted { text, .. } | Self::AgentAnswered { text } => vec![text],
            Self::ToolsOffered { tools } => vec![tools],
            Self::ModelAsked(asked) => vec![&mut asked.request],
            Self::ModelReplied(replied) => {
                let raw = replied.raw.iter_mut();
                std::iter::once(&mut replied.turn).chain(raw).collect()
            }
            Self::StepEnded(step) => step.output.iter_mut().collect(),
            Self::ToolsSelected(selected) => {
                let calls = selected.calls.iter_mut();
                calls.map(|call| &mut call.arguments).collect()
            }
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
            | Self::SurfaceCompared(_)
            | Self::ModelFailed(_)
            | Self::Replayed { .. }
            | Self::AgentStarted(_)
            | Self::AgentEnded(_)
            | Self::CallWithheld(_)
            | Self::Graded(_)
            | Self::TrialFolder(_)
            | Self::Unknown(_) => Vec::new(),
        }
    }
}

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    pub record: u32,
    pub proctor: String,
    /// The start by the wall clock, in RFC 3339.
    pub started: String,
    pub name: String,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// The commit and the CI job that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<SourceContext>,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    pub exit: u8,
    /// The reason, if the run was stopped.
    pub reason: Option<String>,
    /// The trials, by the stem of their files, whose outcome in the record differs from the outcome that
    /// the run saw. Such a record decides nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub changed_trials: BTreeSet<String>,
    /// The number of suites that ran together, if the regression that this run shows alone is none after
    /// Holm's correction over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_regression_over: Option<u32>,
    /// Why the cleanup of the run failed, if it did. Then the gate can't be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_cleanup: Option<String>,
    /// What a merged run lacks, such as a shard. Then the gate can't be met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The case, agent and number of a trial, which identify it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialStarted {
    pub case: String,
    pub agent: Option<String>,
    /// The number of the trial among those of its case and agent, from one.
    pub repeat: u32,
    /// The number of the attempt, from one.
    pub attempt: u32,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialEnded {
    pub outcome: Outcome,
    /// The reason, unless the trial passed.
    pub reason: Option<String>,
    /// The blame, if the trial failed or errored and the record proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
}

/// The blame for a trial that failed or errored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    Server,
    /// The agent or its model.
    Agent,
    /// The suite: its steps, or a case without checks.
    Suite,
    Judge,
    /// The environment: the network, a key, an outage, the disk.
    Infra,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every check passed, and there was at least one.
    Passed,
    /// A check failed, or the server did.
    Failed,
    /// A limit of the trial ended it.
    TimedOut,
    /// The trial has no usable answer, or a check is unknown.
    Errored,
    /// The run was stopped before the trial ended.
    Cancelled,
}

/// The number of a connection within its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// No connection. Numbers start at 1.
    pub const NONE: Self = Self(0);
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionOpened {
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    pub actor: Actor,
    pub transport: WireKind,
    /// The command or URL, as written.
    pub target: String,
}

/// Who connects to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// An external agent, through the tap.
    Agent,
    Loop,
    /// A step of a case.
    Step,
    /// Proctor itself, before anything is run.
    Preflight,
    /// The user at the command line.
    Person,
    /// The agent, as the result file of another tool describes it. Such a file has no response times.
    Imported,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WireKind {
    /// The stdin and stdout of a process.
    Stdio,
    Http,
    /// HTTP+SSE, the transport before streamable HTTP.
    Sse,
    /// The result file that the record was imported from does not name it.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionClosed {
    pub conn: ConnectionId,
    /// The reason as text: `exited with code 1`, `was closed`.
    pub reason: String,
    /// The end of the server's stderr.
    pub stderr: Option<String>,
    /// How it ended, as facts. Records of earlier versions don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ConnectionEnd>,
}

/// A message, exactly as sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    pub conn: ConnectionId,
    /// On HTTP, the exchange that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    pub direction: Direction,
    pub body: Body,
}

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    ToServer,
    ToClient,
}

/// The content of a message or text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    Text(String),
    /// Bytes that are not UTF-8.
    Base64(String),
    /// A file under `blobs/`, by its SHA-256.
    Blob {
        sha256: String,
        bytes: u64,
    },
    /// Too large to store.
    Cut {
        bytes: u64,
        /// The SHA-256 of the whole content.
        sha256: String,
    },
}

/// The head of an HTTP request or response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHead {
    pub conn: ConnectionId,
    pub exchange: u64,
    /// A request goes to the server, a response to the client.
    pub direction: Direction,
    /// The method and URL of a request, or the status of a response.
    pub line: String,
    /// The headers, with secrets redacted.
    pub headers: BTreeMap<String, String>,
    /// Why the exchange ended early, if so; `line` describes it.
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

/// A protocol problem on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub conn: ConnectionId,
    pub kind: FindingKind,
    pub detail: String,
    /// How often it occurred, if occurrences were counted.
    pub count: u64,
}

/// The detail of a noise finding without content; a finding with content is shown first.
pub const BLANK_LINE: &str = "a blank line";

/// The kind of a protocol problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A line on stdout that is not a message: a banner, a log line, a blank line.
    Noise,
    /// A message that is not valid JSON or JSON-RPC.
    Malformed,
    /// A message with both a result and an error.
    ResultAndError,
    /// A response whose id matches no request.
    UnknownId,
    /// A second response to the same request.
    DuplicateAnswer,
    /// A response after the request was cancelled or timed out.
    LateAnswer,
    /// A message larger than the limit.
    TooLarge,
    /// Messages that Proctor dropped because they came too fast.
    Dropped,
    /// A list that never ended, repeated itself or was too long.
    Pagination,
    /// The tools changed after they were listed.
    ToolsChanged,
    /// A result that violates the protocol in another way.
    Protocol,
    /// A rejected connection attempt.
    Refused,
    /// An implausible token count of a model, not of a server. Its connection is
    /// [`ConnectionId::NONE`].
    AbsurdUsage,
    /// A message of the client that is invalid or that servers may read differently. The server is
    /// not to blame.
    ClientMessage,
    /// A call without a JSON-RPC response.
    Unanswered,
}

impl FindingKind {
    /// Whether the server caused the finding. It is not responsible for messages of the client,
    /// rejected connections and reports of models.
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

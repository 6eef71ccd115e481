//! The events of a record: owned, versioned, one JSON object per line.
//!
//! The main type is [`Event`]. A later version of Proctor reads every earlier record, so variants
//! are never removed, fields never change their meaning, and new fields are optional. An earlier
//! version reads what it knows of a later record, and skips the rest. Enums are externally tagged:
//! other representations buffer numbers, which loses digits.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

mod agent;
mod config;
mod context;
mod ends;
mod finding;
mod gates;
mod known_failure;
mod line;
mod planned;
mod selection;
mod shard;
mod surface;
mod unknown;
mod wire;
mod work;

pub use crate::phase::Phase;

pub use self::ends::{ConnectionEnd, EndedBy, HttpFailure, ProcessEnd, TrialFolder};

pub use self::agent::{AgentClaimed, AgentEnded, AgentStarted, Claim};
pub use self::config::{
    AgentConfig, RunConfig, ServerConfig, SourceConfig, SurfaceConfig, TaskSetConfig, TimeoutConfig,
};
pub use self::context::SourceContext;
pub use self::finding::{BLANK_LINE, Finding, FindingKind};
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
pub use self::wire::{
    Actor, Body, ConnectionClosed, ConnectionId, ConnectionOpened, Direction, Frame, HttpHead,
    WireKind,
};
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

/// The content of an event. Events are moved often, so the plan of a run, which is the largest, is behind a pointer.
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
    RunPlanned(Box<RunPlanned>),
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

/// The maximum number of bytes of a reason. It may contain a message of a server, which may have any length.
const MAX_REASON: usize = 64 * 1024;

impl TrialEnded {
    /// Shortens the reason so that it fits into an event.
    #[must_use]
    pub fn with_bounded_reason(mut self) -> Self {
        if let Some(reason) = &mut self.reason
            && reason.len() > MAX_REASON
        {
            reason.truncate(reason.floor_char_boundary(MAX_REASON));
            reason.push('…');
        }
        self
    }
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

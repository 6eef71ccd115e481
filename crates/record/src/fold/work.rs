//! Folds everything in a trial besides messages to servers: the prompt and the answer, steps,
//! checks, phases, and model use.
//!
//! The main type is [`TrialWork`]. It reads no messages, and keeps texts up to a limit.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::micros;
use crate::event::{
    AgentClaimed, AgentEnded, AgentStarted, CheckEvaluated, ConnectionClosed, ConnectionId,
    ConnectionOpened, Finding, ModelReplied, Phase, ToolName, ToolsSelected, TrialEnded,
    TrialStarted,
};
use crate::model::Usage;
use crate::transcript::SkillLoad;
use crate::verdict::Verdict;

pub(super) use self::events::WorkFold;

use super::text::ClippedText;

/// Everything in a trial besides messages to servers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrialWork {
    /// The trial's identity, if its record has it.
    pub started: Option<TrialStarted>,
    /// How the trial ended; `None` if it did not.
    pub ended: Option<TrialEnded>,
    /// From the first event to the last.
    pub duration: Duration,
    /// The time of its first event, in microseconds since the run started.
    pub began_at: u64,
    pub prompt: Option<ClippedText>,
    pub answer: Option<ClippedText>,
    /// The messages of the user after the prompt, in order.
    pub messages: Vec<FurtherMessage>,
    /// The phases that the trial reached, in order.
    pub phases: Vec<PhaseSpan>,
    /// The steps that were run, in order.
    pub steps: Vec<StepDone>,
    /// The checks that were evaluated, in order.
    pub checks: Vec<CheckEvaluated>,
    /// The model requests of the agent.
    pub agent: ModelActivity,
    /// The model requests of the judge.
    pub judge: ModelActivity,
    /// What an external agent reported.
    pub external: Option<ExternalAgentWork>,
    /// The connections that were opened.
    pub connections: BTreeMap<ConnectionId, ConnectionOpened>,
    /// The connections that ended, in order.
    pub closed: Vec<ConnectionClosed>,
    /// The names of tools that the agent's model called although they did not exist, in order.
    pub invented: Vec<String>,
    /// The tools that the agent chose, in a selection trial.
    pub selection: Option<ToolsSelected>,
    /// The calls that Proctor answered itself, in order.
    pub withheld: Vec<ToolName>,
    /// The SHA-256 of each distinct list of tools that a model got, in order.
    pub offered: Vec<String>,
    /// The recorded protocol problems, without those that only the messages show.
    pub findings: Vec<Finding>,
    /// The folder of the trial, if it was kept.
    pub kept_folder: Option<String>,
    /// The number of events that only a newer version knows.
    pub unknown: u64,
}

/// A message of the user after the prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct FurtherMessage {
    /// The number of the event in the trial's record.
    pub seq: u64,
    /// The turn that it belongs to; the prompt is turn 1.
    pub turn: u32,
    pub text: ClippedText,
}

/// An external agent and what it reported.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalAgentWork {
    pub started: AgentStarted,
    /// The calls that it reported, in order, each with the number of its event. Their arguments
    /// stay in the record.
    pub claims: Vec<(u64, AgentClaimed)>,
    pub ended: Option<AgentEnded>,
    /// The skills that it loaded, in order; `None` if the agent's reports don't show that.
    pub skills: Option<Vec<SkillLoad>>,
}

/// The time that a trial spent in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpan {
    pub phase: Phase,
    /// The duration, in JSON as microseconds.
    #[serde(with = "micros")]
    pub duration: Duration,
}

/// A step that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDone {
    pub phase: Phase,
    /// The step's id within the case.
    pub id: String,
    /// The step's type, as written in the suite.
    pub kind: String,
    pub verdict: Verdict,
    pub output: Option<ClippedText>,
    /// The values that later steps can refer to.
    pub outputs: BTreeMap<String, String>,
    pub duration: Duration,
}

/// The model requests for one purpose and what they used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelActivity {
    /// The models, as `provider:id`.
    pub models: BTreeSet<String>,
    /// The number of replies.
    pub turns: u32,
    /// The number of failed requests.
    pub failures: u32,
    /// The token usage of the replies, as far as known.
    pub usage: Usage,
    /// The number of replies that did not report their token usage.
    pub unmetered: u32,
    /// The cost of the replies in US dollars; `None` if any price is unknown.
    pub cost_usd: Option<f64>,
    /// The number of replies from the record of an earlier run.
    pub replayed: u32,
    /// How many of them had a request that differs from the recorded one.
    pub drifted: u32,
}

impl Default for ModelActivity {
    fn default() -> Self {
        Self {
            models: BTreeSet::new(),
            turns: 0,
            failures: 0,
            usage: Usage::default(),
            unmetered: 0,
            cost_usd: Some(0.0),
            replayed: 0,
            drifted: 0,
        }
    }
}

impl ModelActivity {
    /// Adds other model activity.
    pub fn add(&mut self, other: &Self) {
        self.models.extend(other.models.iter().cloned());
        self.turns += other.turns;
        self.failures += other.failures;
        self.usage.add(&other.usage);
        self.unmetered += other.unmetered;
        self.cost_usd = sum(self.cost_usd, other.cost_usd);
        self.replayed += other.replayed;
        self.drifted += other.drifted;
    }

    fn reply(&mut self, reply: &ModelReplied, is_turn: bool) {
        self.turns += u32::from(is_turn);
        self.usage.add(&reply.usage);
        if reply.usage.input.is_none() || reply.usage.output.is_none() {
            self.unmetered += 1;
        }
        self.cost_usd = sum(self.cost_usd, reply.cost_usd);
    }
}

impl TrialWork {
    /// The prompt, followed by the further messages of the user.
    pub fn with_messages(&self, prompt: &str) -> String {
        let further = self.messages.iter();
        let further = further.map(|message| {
            let FurtherMessage { turn, text, .. } = message;
            format!("\n\n[the user's message of turn {turn}]\n{text}")
        });
        std::iter::once(prompt.to_owned()).chain(further).collect()
    }

    /// The server of a connection.
    pub fn server(&self, conn: ConnectionId) -> Option<&str> {
        let opened = self.connections.get(&conn)?;
        Some(&opened.server)
    }
}

/// The sum, if both amounts are known.
fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

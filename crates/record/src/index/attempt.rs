//! The result of an attempt at a trial, in a size that does not depend on what happened in it.
//!
//! The main type is [`Attempt`].

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::micros;
use crate::event::{
    BLANK_LINE, CheckId, ConnectionId, FindingKind, Outcome, TrialEnded, TrialStarted, WireKind,
};
use crate::excerpt::excerpt;
use crate::fold::{ClippedText, FoldedTrial, ModelActivity, PhaseSpan, TrialWork};
use crate::tool_choice::ToolChoice;
use crate::transcript::{Call, CallKind, CallRequest};
use crate::verdict::Verdict;

/// The maximum length of a reason in bytes.
const REASON: usize = 1024;

/// How many targets of calls are counted separately.
const TARGETS: usize = 256;

/// The result of an attempt at a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The trial's identity, if its file has it.
    pub trial: Option<TrialStarted>,
    /// How it ended, if its file has that. A reason is cut to 1 KiB.
    pub ended: Option<TrialEnded>,
    /// The time of its first event, in microseconds since the run started.
    pub began_at: u64,
    /// The time from its first event to its last, in JSON as microseconds.
    #[serde(with = "micros")]
    pub duration: Duration,
    /// The phases that the trial reached, in order.
    pub phases: Vec<PhaseSpan>,
    /// The checks that were evaluated, in order.
    pub checks: Vec<CheckVerdict>,
    /// The model requests of the agent.
    pub agent: ModelActivity,
    /// The model requests of the judge.
    pub judge: ModelActivity,
    /// The protocol problems, by server.
    pub findings: BTreeMap<String, FindingCounts>,
    /// The transport of each server.
    pub transports: BTreeMap<String, WireKind>,
    /// The agent's calls by target, in the order of the first call of each.
    pub calls: Vec<CallTotals>,
    /// The number of calls of further targets, after the first 256.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_calls: u64,
    /// The choice of a selection trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Box<ToolChoice>>,
    /// The SHA-256 of each list of tools that a model got, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The folder of the trial, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_folder: Option<String>,
    /// The number of events that only a newer version knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_events: u64,
}

impl Attempt {
    /// Whether its end says that it passed, and the rest of its file something else. No trial ends like that, so the
    /// file was changed.
    pub fn contradicts_itself(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| {
            let has_failed = |check: &CheckVerdict| check.verdict != Verdict::Pass;
            let is_excused = ended.reason.is_some() || ended.blame.is_some();
            ended.outcome == Outcome::Passed && (is_excused || self.checks.iter().any(has_failed))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckVerdict {
    /// The check's key in a suite file, or the id of the verify step.
    pub check: String,
    pub id: Option<CheckId>,
    pub verdict: Verdict,
}

/// The agent's calls of one tool, resource or prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTotals {
    pub server: String,
    pub kind: CallKind,
    /// The tool, URI or prompt, shortened if it is long.
    pub name: String,
    pub count: u64,
    /// The number of calls that ended in an error or have no response.
    pub errors: u64,
    /// The total duration of the answered calls, in JSON as microseconds.
    #[serde(with = "micros")]
    pub time: Duration,
}

/// The protocol problems of a server, by kind.
pub type FindingCounts = BTreeMap<FindingKind, FoundKind>;

/// The number of findings of one kind, and an example.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundKind {
    pub count: u64,
    /// The detail of the first meaningful finding.
    pub example: String,
}

impl FoundKind {
    pub fn add(&mut self, more: Self) {
        self.count += more.count;
        // The first line of noise that is not blank is the best example.
        let says_nothing = self.example.is_empty() || self.example == BLANK_LINE;
        if says_nothing && !more.example.is_empty() {
            self.example = more.example;
        }
    }
}

impl Attempt {
    /// The result of a folded trial.
    pub(super) fn of(folded: FoldedTrial) -> Self {
        let findings = findings(&folded);
        let (calls, other_calls) = calls(&folded);
        let work = folded.work;
        let checks = work.checks.into_iter().map(|graded| CheckVerdict {
            check: graded.check,
            id: graded.id,
            verdict: bounded_verdict(graded.verdict),
        });
        let opened = work.connections.into_values();
        let transports = opened.map(|opened| (opened.server, opened.transport));
        Self {
            trial: work.started,
            ended: work.ended.as_ref().map(bounded_end),
            began_at: work.began_at,
            duration: work.duration,
            phases: work.phases,
            checks: checks.collect(),
            agent: work.agent,
            judge: work.judge,
            findings,
            transports: transports.collect(),
            calls,
            other_calls,
            selection: work
                .selection
                .as_ref()
                .map(|one| Box::new(ToolChoice::of(one))),
            tools: work.offered,
            kept_folder: work.kept_folder,
            unknown_events: work.unknown,
        }
    }

    /// The time of its last event since the run started.
    pub fn last_at(&self) -> Duration {
        Duration::from_micros(self.began_at) + self.duration
    }

    /// The first check that failed, or else the first unknown one.
    pub fn decisive(&self) -> Option<&CheckVerdict> {
        let fails = |verdict: &Verdict| matches!(verdict, Verdict::Fail { .. });
        let mut open = self.checks.iter().filter(|c| c.verdict != Verdict::Pass);
        let first = open.clone().find(|check| fails(&check.verdict));
        first.or_else(|| open.next())
    }
}

fn findings(folded: &FoldedTrial) -> BTreeMap<String, FindingCounts> {
    let server = |work: &TrialWork, conn| match conn {
        ConnectionId::NONE => "models".to_owned(),
        conn => work.server(conn).unwrap_or_default().to_owned(),
    };
    let mut findings: BTreeMap<String, FindingCounts> = BTreeMap::new();
    for finding in &folded.findings {
        let kinds = findings
            .entry(server(&folded.work, finding.conn))
            .or_default();
        kinds.entry(finding.kind).or_default().add(FoundKind {
            count: finding.count.max(1),
            example: excerpt(&finding.detail).into_owned(),
        });
    }
    findings
}

/// The calls by target, and the number of calls of further targets.
fn calls(folded: &FoldedTrial) -> (Vec<CallTotals>, u64) {
    let mut all: Vec<CallTotals> = Vec::new();
    let mut others = 0;
    let mut known: HashMap<(&str, CallKind, &str), usize> = HashMap::new();
    for (call, in_error) in folded.transcript.calls.iter().zip(&folded.in_error) {
        let (kind, name) = target(call);
        let key = (call.server.as_str(), kind, name);
        let index = match known.get(&key) {
            Some(index) => *index,
            None if all.len() == TARGETS => {
                others += 1;
                continue;
            }
            None => {
                known.insert(key, all.len());
                all.push(CallTotals {
                    server: call.server.clone(),
                    kind,
                    name: excerpt(name).into_owned(),
                    count: 0,
                    errors: 0,
                    time: Duration::ZERO,
                });
                all.len() - 1
            }
        };
        let totals = &mut all[index];
        totals.count += 1;
        totals.errors += u64::from(*in_error);
        totals.time += call.duration.unwrap_or_default();
    }
    (all, others)
}

fn target(call: &Call) -> (CallKind, &str) {
    match &call.request {
        CallRequest::Tool { name, .. } => (CallKind::Tool, name),
        CallRequest::Resource { uri } => (CallKind::Resource, uri),
        CallRequest::Prompt { name, .. } => (CallKind::Prompt, name),
    }
}

/// How a trial ended, with a reason short enough for an entry.
pub(super) fn bounded_end(ended: &TrialEnded) -> TrialEnded {
    TrialEnded {
        outcome: ended.outcome,
        reason: ended.reason.as_deref().map(bounded),
        blame: ended.blame,
    }
}

/// Reasons are the same however much of them a fold keeps.
fn bounded_verdict(verdict: Verdict) -> Verdict {
    let bounded = |reason: &str| ClippedText::middle(reason, REASON).to_string();
    match verdict {
        Verdict::Pass => Verdict::Pass,
        Verdict::Fail { reason } => Verdict::fail(bounded(&reason)),
        Verdict::Unknown { reason } => Verdict::unknown(bounded(&reason)),
    }
}

fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(REASON);
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", &text[..end])
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes by reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

//! One trial of a summary, and how it is read from its file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::event::{BLANK_LINE, Blame, ConnectionId, FindingKind, Outcome, TrialStarted, Wire};
use crate::excerpt::excerpt;
use crate::fold::{Asked, FoldOptions, Folded, Work, fold_trial};
use crate::model::Usage;
use crate::record::{RecordError, RunReader, TrialFile};
use crate::verdict::Verdict;

/// How long a reason may be in a summary, in bytes.
const REASON: usize = 1024;

/// What came of a planned trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSummary {
    /// Which of the case's trials by its agent, from one.
    pub repeat: u32,
    /// How many attempts at it were recorded, ended or not.
    pub attempts: u32,
    /// What its latest attempt that ended came to; `None` if none did.
    pub result: Option<TrialResult>,
}

/// What an attempt at a trial came to.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// The name of its file under `trials/`.
    pub file: String,
    /// Which attempt it is, from one.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Whose fault it is, if it failed or could not be told.
    pub blame: Option<Blame>,
    /// Why, unless it passed.
    pub reason: Option<String>,
    /// The first check that failed; else the first that could not tell.
    pub decisive: Option<Box<Decisive>>,
    /// From its start to its end.
    pub duration: Duration,
    /// What the agent's model took.
    pub agent: Spent,
    /// What the judge took.
    pub judge: Spent,
}

/// A check that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisive {
    /// The check's key in a suite file, or the id of the verify step.
    pub check: String,
    /// Its answer: a failure, or unknown.
    pub verdict: Verdict,
}

/// What a model took for one purpose in a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// How often it replied.
    pub turns: u32,
    /// How many tokens that took, as far as the replies tell.
    pub usage: Usage,
    /// How many replies do not tell.
    pub unmetered: u32,
    /// What it cost in US dollars; `None` if the price of any reply is unknown.
    pub cost_usd: Option<f64>,
}

impl TrialSummary {
    /// Nothing came of it yet.
    pub(super) fn not_run(repeat: u32) -> Self {
        Self {
            repeat,
            attempts: 0,
            result: None,
        }
    }

    /// How it ended; `None` if it did not.
    pub fn outcome(&self) -> Option<Outcome> {
        self.result.as_ref().map(|result| result.outcome)
    }

    /// Takes in another attempt. The latest that ended counts.
    pub(super) fn take(&mut self, attempt: u32, result: Option<TrialResult>) {
        self.attempts += 1;
        let is_later = self
            .result
            .as_ref()
            .is_none_or(|so_far| so_far.attempt < attempt);
        if is_later && result.is_some() {
            self.result = result;
        }
    }
}

impl From<&Asked> for Spent {
    fn from(asked: &Asked) -> Self {
        Self {
            turns: asked.turns,
            usage: asked.usage,
            unmetered: asked.unmetered,
            cost_usd: asked.cost_usd,
        }
    }
}

/// What was found to be wrong with a server, by kind.
pub type Found = BTreeMap<FindingKind, FoundKind>;

/// How often something of one kind was found, and the first of it that says something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FoundKind {
    /// How often.
    pub count: u64,
    /// What exactly, the first time.
    pub example: String,
}

impl FoundKind {
    pub(super) fn add(&mut self, more: Self) {
        self.count += more.count;
        // Of noise, the first line that is not blank says most.
        let says_nothing = self.example.is_empty() || self.example == BLANK_LINE;
        if says_nothing && !more.example.is_empty() {
            self.example = more.example;
        }
    }
}

/// What a summary takes of an attempt.
pub(super) struct Read {
    pub(super) started: Option<TrialStarted>,
    pub(super) result: Option<TrialResult>,
    pub(super) agent: Asked,
    pub(super) judge: Asked,
    pub(super) findings: BTreeMap<String, Found>,
    pub(super) transports: BTreeMap<String, Wire>,
    /// When its last event was, since the run started.
    pub(super) last_at: Duration,
    pub(super) unknown_events: u64,
}

/// Reads an attempt by the fold that its own report uses, and keeps nothing of its messages.
pub(super) fn read(run: &RunReader, file: &TrialFile) -> Result<Read, RecordError> {
    let options = FoldOptions {
        payload_bytes: 0,
        text_bytes: 0,
        ..FoldOptions::default()
    };
    let Folded {
        work,
        findings: all,
        ..
    } = fold_trial(run, file, &options)?;
    let mut findings: BTreeMap<String, Found> = BTreeMap::new();
    for finding in &all {
        let server = match finding.conn {
            ConnectionId::NONE => "models",
            conn => work.server(conn).unwrap_or_default(),
        };
        let kinds = findings.entry(server.to_owned()).or_default();
        kinds.entry(finding.kind).or_default().add(FoundKind {
            count: finding.count.max(1),
            example: excerpt(&finding.detail).into_owned(),
        });
    }
    // The rename is the end: what a `.part` says of itself does not count.
    let result = if file.ended {
        result(&work, file)
    } else {
        None
    };
    let opened = work.connections.into_values();
    let transports = opened.map(|opened| (opened.server, opened.transport));
    Ok(Read {
        result,
        findings,
        transports: transports.collect(),
        last_at: Duration::from_micros(work.began_at) + work.duration,
        unknown_events: work.unknown,
        started: work.started,
        agent: work.agent,
        judge: work.judge,
    })
}

fn result(work: &Work, file: &TrialFile) -> Option<TrialResult> {
    let ended = work.ended.as_ref()?;
    let reason = ended.reason.as_deref().map(bounded);
    let name = file.path.file_name()?.to_str()?;
    Some(TrialResult {
        file: name.to_owned(),
        attempt: file.attempt,
        outcome: ended.outcome,
        blame: ended.blame,
        reason,
        decisive: decisive(work).map(Box::new),
        duration: work.duration,
        agent: Spent::from(&work.agent),
        judge: Spent::from(&work.judge),
    })
}

/// The first failure, else the first unknown.
fn decisive(work: &Work) -> Option<Decisive> {
    let fails = |verdict: &Verdict| matches!(verdict, Verdict::Fail { .. });
    let mut open = work.checks.iter().filter(|c| c.verdict != Verdict::Pass);
    let first = open.clone().find(|check| fails(&check.verdict));
    first.or_else(|| open.next()).map(|check| Decisive {
        check: check.check.clone(),
        verdict: check.verdict.clone(),
    })
}

fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(REASON);
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", &text[..end])
}

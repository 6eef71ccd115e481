//! One trial to read: what happened when, and what decides its verdict.
//!
//! The main type is [`TrialPage`]. Its size is limited, whatever the trial recorded.

use proctor_record::duration;
use proctor_record::event::{CheckEvaluated, CheckId, PlannedCase, WireKind};
use proctor_record::fold::{Fold, FoldOptions, FoldedTrial, StepDone};
use proctor_record::record::{RecordError, TornLine};
use proctor_record::verdict::Verdict;
use serde::Serialize;

use super::PAGE_VERSION;
use super::body::{BodyRoom, PageBody};
use super::items::{ItemSource, TimelineItem};
use super::servers::FindingPage;
use super::timeline::EventPlaces;
use crate::evidence::verify_step;
use crate::{Report, words};

/// How many bytes of texts a page holds.
const TRIAL_BYTES: usize = 1024 * 1024;

/// How many bytes of arguments and results are parsed.
const PAYLOAD_BYTES: u64 = 8 * 1024 * 1024;

/// The details of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialPage {
    pub version: u32,
    /// The name of its file under `trials/`.
    pub file: String,
    /// The outcome; `not-run` if the trial has no end.
    pub outcome: &'static str,
    pub blame: Option<&'static str>,
    pub reason: Option<PageBody>,
    /// The duration in microseconds.
    pub duration: u64,
    /// Facts in words: duration, calls, turns, tokens, cost.
    pub facts: Vec<String>,
    pub phases: Vec<PhasePage>,
    pub items: Vec<TimelineItem>,
    /// The number of the first event that `items` leaves out.
    pub next: Option<u64>,
    /// The checks, failed ones first.
    pub checks: Vec<CheckPage>,
    /// The steps that are not checks: setup and cleanup.
    pub steps: Vec<StepPage>,
    pub findings: Vec<FindingPage>,
    pub connections: Vec<ConnectionPage>,
    pub agent: Option<AgentProgramPage>,
    /// What else to know, such as a record that is incomplete.
    pub notes: Vec<String>,
}

/// A phase of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhasePage {
    pub phase: &'static str,
    /// When it started, in microseconds since the trial started.
    pub at: u64,
    /// Its duration in microseconds.
    pub micros: u64,
}

/// A check with the events that decide it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckPage {
    pub check: String,
    /// `assertion`, `step`, `judge` or `grading`.
    pub kind: Option<&'static str>,
    /// `pass`, `fail` or `unknown`.
    pub verdict: &'static str,
    pub reason: Option<PageBody>,
    /// What it expects.
    pub details: Vec<String>,
    /// The numbers of the events that decide it.
    pub evidence: Vec<u64>,
    /// Quotes and votes of a judge.
    pub notes: Vec<String>,
    /// Where it is written: `tasks/fix.yaml:12`.
    pub place: Option<String>,
    /// The verify step, if it is one.
    pub step: Option<StepPage>,
}

/// A step that was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPage {
    /// The number of its event.
    pub seq: Option<u64>,
    pub phase: &'static str,
    pub id: String,
    /// Its type, as written in the suite.
    pub kind: String,
    pub verdict: &'static str,
    pub reason: Option<PageBody>,
    pub output: Option<PageBody>,
    /// The duration in microseconds.
    pub micros: u64,
}

/// A connection to a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConnectionPage {
    pub server: String,
    pub transport: WireKind,
    /// The command or URL, as written.
    pub target: String,
    /// How it ended.
    pub ended: Option<String>,
    /// The end of the server's stderr.
    pub stderr: Option<PageBody>,
}

/// An external agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentProgramPage {
    pub command: Vec<String>,
    pub version: Option<String>,
    pub ended: Option<String>,
    pub stderr: Option<PageBody>,
}

impl TrialPage {
    /// The page of an attempt, with at most `limit` items from the event `from` on.
    ///
    /// A record that can't be read gives a page that says so: one broken trial must not hide the others.
    pub fn load(
        report: &Report<'_>,
        case: &PlannedCase,
        file: &str,
        from: u64,
        limit: usize,
    ) -> Self {
        let mut room = BodyRoom::new(TRIAL_BYTES);
        match Self::read(report, case, file, from, limit, &mut room) {
            Ok(page) => page,
            Err(error) => Self::unreadable(file, &error.to_string()),
        }
    }

    /// A text of an attempt that its page cuts, by its hash.
    pub fn whole_text(
        report: &Report<'_>,
        case: &PlannedCase,
        file: &str,
        sha256: &str,
    ) -> Result<Option<String>, RecordError> {
        let mut room = BodyRoom::searching(sha256);
        Self::read(report, case, file, 0, usize::MAX, &mut room)?;
        Ok(room.into_found())
    }

    fn read(
        report: &Report<'_>,
        case: &PlannedCase,
        file: &str,
        from: u64,
        limit: usize,
        room: &mut BodyRoom,
    ) -> Result<Self, RecordError> {
        let run = report.run;
        let Some(trial) = run.trial_file(file) else {
            return Ok(Self::unreadable(file, "the run has no such file"));
        };
        let mut places = EventPlaces::default();
        let mut fold = Fold::new(FoldOptions {
            payload_bytes: PAYLOAD_BYTES,
            text_bytes: TRIAL_BYTES,
            turns: true,
            ..FoldOptions::default()
        });
        let mut events = run.trial(&trial)?;
        for event in events.by_ref() {
            let event = event?;
            places.push(&event);
            fold.push(&event, run.blobs())?;
        }
        let folded = fold.finish();
        let checks = checks(&folded, case, &places, room);
        let steps = other_steps(&folded, &places, room);
        let source = ItemSource {
            run,
            folded: &folded,
            places: &places,
        };
        let (items, next) = source.items(from, limit, room);
        let torn = events.torn();
        Ok(Self {
            phases: phases(&folded, &places),
            items,
            next,
            checks,
            steps,
            notes: notes(&folded, torn.as_ref()),
            ..Self::of(file, &folded, trial.ended, room)
        })
    }

    /// The parts of the page that don't depend on the timeline.
    fn of(file: &str, folded: &FoldedTrial, has_ended: bool, room: &mut BodyRoom) -> Self {
        // The rename ends a trial: the outcome in a `.part` file does not count.
        let ended = folded.work.ended.as_ref().filter(|_| has_ended);
        let reason = ended.and_then(|ended| ended.reason.as_deref());
        Self {
            version: PAGE_VERSION,
            file: file.to_owned(),
            outcome: words::outcome(ended.map(|ended| ended.outcome)),
            blame: ended.and_then(|ended| ended.blame).map(words::blame),
            reason: reason.map(|text| room.text(text)),
            duration: micros(folded.work.duration),
            facts: facts(folded),
            phases: Vec::new(),
            items: Vec::new(),
            next: None,
            checks: Vec::new(),
            steps: Vec::new(),
            findings: findings(folded),
            connections: connections(folded, room),
            agent: agent(folded, room),
            notes: Vec::new(),
        }
    }

    /// A page that only says why there is nothing to show.
    fn unreadable(file: &str, reason: &str) -> Self {
        Self {
            version: PAGE_VERSION,
            file: file.to_owned(),
            outcome: words::outcome(None),
            blame: None,
            reason: None,
            duration: 0,
            facts: Vec::new(),
            phases: Vec::new(),
            items: Vec::new(),
            next: None,
            checks: Vec::new(),
            steps: Vec::new(),
            findings: Vec::new(),
            connections: Vec::new(),
            agent: None,
            notes: vec![format!("The record of this trial can't be read: {reason}")],
        }
    }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn facts(folded: &FoldedTrial) -> Vec<String> {
    let work = &folded.work;
    let mut facts = vec![
        duration::brief(work.duration),
        words::count(folded.transcript.calls.len() as u64, "call"),
        words::count(u64::from(work.agent.turns), "model turn"),
        format!("tokens: {}", words::tokens(&work.agent)),
        format!("cost: {}", words::cost(work.agent.cost_usd)),
    ];
    if work.judge.turns > 0 {
        facts.push(format!("judge: {}", words::tokens(&work.judge)));
    }
    facts
}

fn phases(folded: &FoldedTrial, places: &EventPlaces) -> Vec<PhasePage> {
    let began = folded.work.began_at;
    let both = folded.work.phases.iter().zip(&places.phases);
    let phases = both.map(|(span, at)| PhasePage {
        phase: span.phase.name(),
        at: at.saturating_sub(began),
        micros: micros(span.duration),
    });
    phases.collect()
}

fn checks(
    folded: &FoldedTrial,
    case: &PlannedCase,
    places: &EventPlaces,
    room: &mut BodyRoom,
) -> Vec<CheckPage> {
    let mut checks: Vec<&CheckEvaluated> = folded.work.checks.iter().collect();
    checks.sort_by_key(|check| match check.verdict {
        Verdict::Fail { .. } => 0,
        Verdict::Unknown { .. } => 1,
        Verdict::Pass => 2,
    });
    let checks = checks.into_iter().map(|check| {
        let (verdict, reason) = verdict(&check.verdict, room);
        let step = verify_step(check, &folded.work.steps);
        let id = check.id.as_ref();
        let place = id.and_then(|id| case.place(id));
        CheckPage {
            check: check.check.clone(),
            kind: id.map(CheckId::kind),
            verdict,
            reason,
            details: check.details.clone(),
            evidence: check.evidence.clone(),
            notes: check.notes.clone(),
            place: place.map(|place| format!("{}:{}", place.path, place.line)),
            step: step.map(|step| step_page(step, seq_of(step, folded, places), room)),
        }
    });
    checks.collect()
}

fn verdict(verdict: &Verdict, room: &mut BodyRoom) -> (&'static str, Option<PageBody>) {
    match verdict {
        Verdict::Pass => ("pass", None),
        Verdict::Fail { reason } => ("fail", Some(room.text(reason))),
        Verdict::Unknown { reason } => ("unknown", Some(room.text(reason))),
    }
}

/// The steps that no check shows.
fn other_steps(folded: &FoldedTrial, places: &EventPlaces, room: &mut BodyRoom) -> Vec<StepPage> {
    let work = &folded.work;
    let is_shown = |step: &StepDone| {
        let mut checks = work.checks.iter();
        checks.any(|check| verify_step(check, &work.steps) == Some(step))
    };
    let others = work.steps.iter().filter(|step| !is_shown(step));
    let others = others.map(|step| step_page(step, seq_of(step, folded, places), room));
    others.collect()
}

/// The number of the event of a step: both lists have one item for each such event.
fn seq_of(step: &StepDone, folded: &FoldedTrial, places: &EventPlaces) -> Option<u64> {
    let mut steps = folded.work.steps.iter();
    let position = steps.position(|known| std::ptr::eq(known, step))?;
    places.steps.get(position).copied()
}

fn step_page(step: &StepDone, seq: Option<u64>, room: &mut BodyRoom) -> StepPage {
    let (verdict, reason) = verdict(&step.verdict, room);
    StepPage {
        seq,
        phase: step.phase.step_word(),
        id: step.id.clone(),
        kind: step.kind.clone(),
        verdict,
        reason,
        output: step.output.as_ref().map(|output| room.clipped(output)),
        micros: micros(step.duration),
    }
}

fn findings(folded: &FoldedTrial) -> Vec<FindingPage> {
    let found = folded.findings.iter().map(|finding| {
        let server = folded.work.server(finding.conn).unwrap_or("model");
        FindingPage {
            kind: words::finding(finding.kind),
            count: finding.count.max(1),
            example: format!("{server}: {}", finding.detail),
        }
    });
    found.collect()
}

fn connections(folded: &FoldedTrial, room: &mut BodyRoom) -> Vec<ConnectionPage> {
    let work = &folded.work;
    let opened = work.connections.values().map(|opened| {
        let closed = work.closed.iter().find(|closed| closed.conn == opened.conn);
        let stderr = closed.and_then(|closed| closed.stderr.as_deref());
        let stderr = stderr.filter(|stderr| !stderr.trim().is_empty());
        ConnectionPage {
            server: opened.server.clone(),
            transport: opened.transport,
            target: opened.target.clone(),
            ended: closed.map(|closed| closed.reason.clone()),
            stderr: stderr.map(|text| room.text(text)),
        }
    });
    opened.collect()
}

fn agent(folded: &FoldedTrial, room: &mut BodyRoom) -> Option<AgentProgramPage> {
    let external = folded.work.external.as_ref()?;
    let ended = external.ended.as_ref();
    let stderr = ended.and_then(|ended| ended.stderr.as_deref());
    Some(AgentProgramPage {
        command: external.started.command.clone(),
        version: external.started.version.clone(),
        ended: ended.map(|ended| ended.how.clone()),
        stderr: stderr.map(|text| room.text(text)),
    })
}

fn notes(folded: &FoldedTrial, torn: Option<&TornLine>) -> Vec<String> {
    let mut notes = Vec::new();
    if folded.work.ended.is_none() {
        notes.push("The trial has no end: it is still running, or was stopped".to_owned());
    }
    if let Some(torn) = torn {
        let bytes = words::thousands(torn.bytes);
        notes.push(format!(
            "The last line of the record is incomplete: {bytes} bytes skipped"
        ));
    }
    if let Some(folder) = &folded.work.kept_folder {
        notes.push(format!("The folder of the trial was kept: {folder}"));
    }
    if folded.work.unknown > 0 {
        let events = words::count(folded.work.unknown, "event");
        notes.push(format!("Skipped {events} of a newer version of Proctor"));
    }
    notes
}

//! Reads the events of a trial's work.
//!
//! The main type is [`WorkFold`], which takes every event in order and ends as [`TrialWork`].

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use crate::event::{
    AgentClaimed, Body, CheckEvaluated, CheckId, ConnectionClosed, Event, EventKind, Phase,
    Purpose, StepEnded,
};
use crate::fold::text::ClippedText;
use crate::fold::unknown_tools::UnknownToolCalls;
use crate::json;
use crate::record::{Blobs, RecordError};
use crate::transcript::SkillLoad;
use crate::verdict::Verdict;

use super::{ExternalAgentWork, FurtherMessage, ModelActivity, PhaseSpan, StepDone, TrialWork};

/// How many bytes of the reason of a verdict are kept if other texts are not.
const REASON: usize = 64 * 1024;

/// The type of steps that a judge decides.
const JUDGE: &str = "llmJudge";

/// How many reported calls of an agent are kept.
const CLAIMS: usize = 10_000;

/// A fold of work in progress.
#[derive(Debug, Clone)]
pub(in crate::fold) struct WorkFold {
    work: TrialWork,
    text_bytes: usize,
    /// The start of the current phase.
    phase_at: Option<u64>,
    last_at: Option<u64>,
    /// Whether the running external agent is a judge.
    is_judging: bool,
    /// The purposes of requests without a reply.
    purposes: HashMap<u64, Purpose>,
    /// The replayed requests, and whether they differ from the recorded ones.
    replays: HashMap<u64, bool>,
    /// The latest verify step, until its check follows.
    ungraded: Option<CheckId>,
    invented: UnknownToolCalls,
}

impl WorkFold {
    /// Keeps at most this many bytes of each text; zero keeps none.
    pub(in crate::fold) fn new(text_bytes: usize) -> Self {
        Self {
            work: TrialWork::default(),
            text_bytes,
            phase_at: None,
            last_at: None,
            is_judging: false,
            purposes: HashMap::new(),
            replays: HashMap::new(),
            ungraded: None,
            invented: UnknownToolCalls::default(),
        }
    }

    /// The messages of the user so far, without the prompt.
    pub(in crate::fold) fn messages(&self) -> &[FurtherMessage] {
        &self.work.messages
    }

    pub(in crate::fold) fn push(
        &mut self,
        event: &Event,
        blobs: &Blobs,
    ) -> Result<(), RecordError> {
        if self.last_at.is_none() {
            self.work.began_at = event.at;
        }
        self.last_at = Some(event.at);
        match &event.event {
            EventKind::TrialStarted(started) => self.work.started = Some(started.clone()),
            EventKind::TrialEnded(ended) => {
                self.end_phase(event.at);
                self.work.ended = Some(ended.clone());
            }
            EventKind::PhaseStarted { phase } => {
                self.end_phase(event.at);
                self.phase_at = Some(event.at);
                self.work.phases.push(PhaseSpan {
                    phase: *phase,
                    duration: Duration::ZERO,
                });
            }
            EventKind::ConnectionOpened(opened) => {
                self.work.connections.insert(opened.conn, opened.clone());
            }
            EventKind::ConnectionClosed(closed) => self.closed(closed),
            EventKind::Finding(finding) => self.work.findings.push(finding.clone()),
            EventKind::Prompted { text, turn } => self.prompted(event.seq, *turn, text, blobs)?,
            EventKind::AgentAnswered { text } => self.work.answer = self.text(text, blobs)?,
            EventKind::ToolsOffered { tools } => self.offered(tools, blobs),
            EventKind::ModelAsked(asked) => {
                self.invented.asked(asked);
                self.purposes.insert(asked.ask, asked.purpose);
                if matches!(asked.purpose, Purpose::Sampling | Purpose::User) {
                    return Ok(());
                }
                let models = &mut self.asked(asked.ask).models;
                if !models.contains(&asked.model) {
                    models.insert(asked.model.clone());
                }
            }
            EventKind::ModelFailed(failed) => self.asked(failed.ask).failures += 1,
            EventKind::ModelReplied(replied) => {
                self.invented.replied(replied, blobs);
                let is_turn = match self.purposes.get(&replied.ask) {
                    Some(Purpose::Side | Purpose::Sampling | Purpose::User) => false,
                    Some(Purpose::Agent | Purpose::Judge) | None => true,
                };
                self.asked(replied.ask).reply(replied, is_turn);
                self.purposes.remove(&replied.ask);
            }
            EventKind::AgentStarted(started) => {
                self.is_judging = started.purpose == Purpose::Judge;
                if self.is_judging {
                    return Ok(());
                }
                self.work.external = Some(ExternalAgentWork {
                    started: started.clone(),
                    claims: Vec::new(),
                    ended: None,
                    skills: started.skill_tool.is_some().then(Vec::new),
                });
            }
            // Actions of a judge that is an external agent are not the agent's.
            EventKind::AgentClaimed(_) | EventKind::AgentEnded(_) if self.is_judging => {}
            EventKind::AgentClaimed(claim) => self.claimed(event.seq, claim, blobs)?,
            EventKind::AgentEnded(ended) => {
                if let Some(external) = &mut self.work.external {
                    external.ended = Some(ended.clone());
                }
            }
            EventKind::Replayed { ask, drifted } => self.replayed(*ask, *drifted),
            EventKind::TrialFolder(folder) => {
                self.work.kept_folder = folder.kept.then(|| folder.path.clone());
            }
            EventKind::CallWithheld(name) => self.work.withheld.push(name.clone()),
            EventKind::ToolsSelected(selected) => {
                self.work.selection = Some(crate::fold::selection::read(selected, blobs)?);
            }
            EventKind::StepEnded(step) => self.step(step, blobs)?,
            EventKind::Graded(graded) => self.graded(graded),
            EventKind::Unknown(_) => self.work.unknown += 1,
            EventKind::RunStarted(_)
            | EventKind::RunEnded(_)
            | EventKind::Frame(_)
            | EventKind::Http(_)
            | EventKind::RunPlanned(_)
            | EventKind::ServerSeen(_)
            | EventKind::SurfaceCompared(_)
            | EventKind::AgentWrote { .. } => {}
        }
        Ok(())
    }

    fn offered(&mut self, tools: &Body, blobs: &Blobs) {
        self.invented.offered(tools, blobs);
        // Always a blob; a truncated body has a hash too.
        if let Body::Blob { sha256, .. } | Body::Cut { sha256, .. } = tools
            && !self.work.offered.contains(sha256)
        {
            self.work.offered.push(sha256.clone());
        }
    }

    /// Counts a replayed reply. A second event for it may follow, if its request turns out to
    /// differ later.
    fn replayed(&mut self, ask: u64, drifted: bool) {
        let known = self.replays.insert(ask, drifted);
        let had_drifted = known == Some(true);
        if had_drifted {
            self.replays.insert(ask, true);
        }
        let asked = self.asked(ask);
        asked.replayed += u32::from(known.is_none());
        asked.drifted += u32::from(drifted && !had_drifted);
    }

    /// The work. The last phase ends with the last event.
    pub(in crate::fold) fn finish(mut self) -> TrialWork {
        if let Some(last) = self.last_at {
            self.end_phase(last);
            self.work.duration = Duration::from_micros(last.saturating_sub(self.work.began_at));
        }
        self.take_its_word();
        self.work.invented = self.invented.into_names();
        self.work
    }

    /// Uses the token usage that an external agent reports, if there is no other source.
    fn take_its_word(&mut self) {
        let Some(external) = &self.work.external else {
            return;
        };
        let agent = &mut self.work.agent;
        if !agent.models.is_empty() {
            return;
        }
        let ended = external.ended.as_ref();
        agent.turns = ended.and_then(|ended| ended.turns).unwrap_or(0);
        agent.usage = ended.and_then(|ended| ended.usage).unwrap_or_default();
        agent.unmetered = u32::from(agent.usage.input.is_none() || agent.usage.output.is_none());
        agent.cost_usd = None;
    }

    /// Adds a reported call, which may load a skill.
    fn claimed(
        &mut self,
        seq: u64,
        claim: &AgentClaimed,
        blobs: &Blobs,
    ) -> Result<(), RecordError> {
        let Some(external) = &mut self.work.external else {
            return Ok(());
        };
        let is_skill = external.started.skill_tool.as_ref() == Some(&claim.tool);
        if let (true, Some(skills)) = (is_skill, &mut external.skills)
            && let Some(name) = skill_name(claim.arguments.as_ref(), blobs)?
        {
            skills.push(SkillLoad { seq, name });
        }
        if external.claims.len() < CLAIMS {
            let claim = AgentClaimed {
                arguments: None,
                ..claim.clone()
            };
            external.claims.push((seq, claim));
        }
        Ok(())
    }

    /// Takes the prompt, or a further message of the user.
    fn prompted(
        &mut self,
        seq: u64,
        turn: Option<u32>,
        text: &Body,
        blobs: &Blobs,
    ) -> Result<(), RecordError> {
        let text = self.text(text, blobs)?;
        match turn {
            None => self.work.prompt = text,
            Some(turn) => {
                let message = text.map(|text| FurtherMessage { seq, turn, text });
                self.work.messages.extend(message);
            }
        }
        Ok(())
    }

    fn end_phase(&mut self, at: u64) {
        if let (Some(started), Some(span)) = (self.phase_at.take(), self.work.phases.last_mut()) {
            span.duration = Duration::from_micros(at.saturating_sub(started));
        }
    }

    fn asked(&mut self, ask: u64) -> &mut ModelActivity {
        match self.purposes.get(&ask) {
            Some(Purpose::Judge) => &mut self.work.judge,
            Some(Purpose::Agent | Purpose::Side | Purpose::Sampling | Purpose::User) | None => {
                &mut self.work.agent
            }
        }
    }

    fn closed(&mut self, closed: &ConnectionClosed) {
        let stderr = closed.stderr.as_deref();
        self.work.closed.push(ConnectionClosed {
            stderr: stderr.and_then(|text| Some(ClippedText::tail(text, self.kept()?).to_string())),
            ..closed.clone()
        });
    }

    fn step(&mut self, step: &StepEnded, blobs: &Blobs) -> Result<(), RecordError> {
        let output = match &step.output {
            Some(output) => self.text(output, blobs)?,
            None => None,
        };
        if step.phase == Phase::Grade {
            let id = step.id.clone();
            self.ungraded = Some(if step.kind == JUDGE {
                CheckId::Judge(id)
            } else {
                CheckId::Step(id)
            });
        }
        let bounded = |text: &String| Some(ClippedText::middle(text, self.kept()?).to_string());
        let outputs = step.outputs.iter();
        let outputs = outputs.filter_map(|(name, text)| Some((name.clone(), bounded(text)?)));
        self.work.steps.push(StepDone {
            phase: step.phase,
            id: step.id.clone(),
            kind: step.kind.clone(),
            verdict: self.verdict(&step.verdict),
            output,
            outputs: outputs.collect(),
            duration: Duration::from_micros(step.duration),
        });
        Ok(())
    }

    fn graded(&mut self, graded: &CheckEvaluated) {
        let step = self.ungraded.take();
        let bounded = |text: &String| Some(ClippedText::middle(text, self.kept()?).to_string());
        self.work.checks.push(CheckEvaluated {
            check: graded.check.clone(),
            id: graded.id.clone().or_else(|| Some(older_id(graded, step))),
            details: graded.details.iter().filter_map(bounded).collect(),
            verdict: self.verdict(&graded.verdict),
            evidence: graded.evidence.clone(),
            notes: graded.notes.iter().filter_map(bounded).collect(),
        });
    }

    fn verdict(&self, verdict: &Verdict) -> Verdict {
        // Reasons are short and always needed. The index keeps no other text, and shortens them itself.
        let limit = self.kept().map_or(REASON, |kept| kept.max(1024));
        let bounded = |reason: &str| ClippedText::middle(reason, limit).to_string();
        match verdict {
            Verdict::Pass => Verdict::Pass,
            Verdict::Fail { reason } => Verdict::fail(bounded(reason)),
            Verdict::Unknown { reason } => Verdict::unknown(bounded(reason)),
        }
    }

    fn text(&self, body: &Body, blobs: &Blobs) -> Result<Option<ClippedText>, RecordError> {
        let Some(kept) = self.kept() else {
            return Ok(None);
        };
        Ok(Some(match blobs.body_bytes(body)? {
            Some(bytes) => ClippedText::middle(&String::from_utf8_lossy(&bytes), kept),
            None => ClippedText::unread(body),
        }))
    }

    fn kept(&self) -> Option<usize> {
        (self.text_bytes > 0).then_some(self.text_bytes)
    }
}

/// The skill that a call of a skill tool loads: its argument `skill` or `name`, or its only text.
fn skill_name(arguments: Option<&Body>, blobs: &Blobs) -> Result<Option<String>, RecordError> {
    let Some(bytes) = arguments
        .map(|body| blobs.body_bytes(body))
        .transpose()?
        .flatten()
    else {
        return Ok(None);
    };
    let Ok(Value::Object(arguments)) = json::from_slice(&bytes) else {
        return Ok(None);
    };
    let named = ["skill", "name"].iter().find_map(|key| arguments.get(*key));
    let mut texts = arguments.values().filter(|value| value.is_string());
    let only = texts.next().filter(|_| texts.next().is_none());
    Ok(named.or(only).and_then(Value::as_str).map(str::to_owned))
}

/// Identifies a check in a record of an older version: the check of a verify step follows its step.
fn older_id(graded: &CheckEvaluated, step: Option<CheckId>) -> CheckId {
    let name = &graded.check;
    match step.filter(|step| step.step() == Some(name)) {
        Some(step) => step,
        None if ["exact-match", "llm-as-judge"].contains(&name.as_str()) => {
            CheckId::Grading(name.clone())
        }
        None => CheckId::Assertion(name.clone()),
    }
}

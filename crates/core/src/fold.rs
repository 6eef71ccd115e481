//! Events, folded into what checks read.
//!
//! Its main type is [`Fold`]: events go in one at a time, live or from a record, and a [`FoldedTrial`]
//! trial comes out. What went over the wire is parsed here and nowhere before, and what can't be
//! parsed is a fact that is kept. Of a trial only the transcript and the work are held in
//! memory, and the payloads and texts in them up to a limit.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod calls;
mod conduct;
mod findings;
mod invented;
mod pairing;
mod refusal;
#[cfg(test)]
mod tests;
mod text;
mod turns;
mod work;

use std::collections::HashMap;

use crate::event::{
    Actor, Body, ConnectionId, ConnectionOpened, Direction, Event, EventKind, Finding, FindingKind,
    Frame, TrialEnded, TrialStarted, WireKind,
};
use crate::record::{Blobs, RecordError, RunReader, TornLine, TrialFile};
use crate::transcript::{Transcript, UnreadMessage};

use self::calls::CallFold;
use self::conduct::ConductFold;
use self::findings::Findings;
use self::pairing::{CancelReason, Pairing, RequestMatch};
use crate::message::tolerant::LenientReading;
use crate::message::{self, Id, Message, MessageKind, MessageParseError};

pub use self::conduct::{Conduct, Excuse, NoAnswer, ServerEnd, UnansweredCall};
pub use self::text::ClippedText;
use self::turns::TurnFold;
pub use self::turns::{ModelTurn, RequestedCall, TurnReply};
use self::work::WorkFold;
pub use self::work::{ExternalAgentWork, ModelActivity, PhaseSpan, StepDone, TrialWork};

/// What a trial came to.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldedTrial {
    /// Which trial it is, if its record says so.
    pub started: Option<TrialStarted>,
    /// How it ended; `None` if it did not.
    pub ended: Option<TrialEnded>,
    /// What the agent did.
    pub transcript: Transcript,
    /// When each call of the transcript was made, in microseconds since the run started.
    pub made_at: Vec<u64>,
    /// Whether each call of the transcript ended in an error, or has no answer.
    pub in_error: Vec<bool>,
    /// What was found to be wrong, as it was recorded or as the messages show it.
    pub findings: Vec<Finding>,
    /// Those of them that a strict run holds against the servers that the agent used.
    pub breaches: Vec<Finding>,
    /// The calls without an answer, and the servers that ended.
    pub conduct: Conduct,
    /// What was done besides: steps, checks, models.
    pub work: TrialWork,
    /// The turns of the agent's model, in order, if they were requested ([`FoldOptions::turns`]).
    pub turns: Vec<ModelTurn>,
    /// The last line of the record, if it is not whole.
    pub torn: Option<TornLine>,
}

/// What is folded, and how much of it is kept.
#[derive(Debug, Clone)]
pub struct FoldOptions {
    /// Whose calls count.
    pub actors: Vec<Actor>,
    /// How many bytes of arguments and results are kept, as JSON. What comes after is
    /// [`Payload::Omitted`](crate::transcript::Payload::Omitted): parsed, it takes many times its length.
    pub payload_bytes: u64,
    /// How many bytes of each other text are kept: the prompt, the answer, what a step wrote. Of
    /// longer ones the middle is left out.
    pub text_bytes: usize,
    /// Whether the turns of the agent's model are kept.
    pub turns: bool,
}

impl Default for FoldOptions {
    fn default() -> Self {
        Self {
            actors: vec![Actor::Agent, Actor::Loop, Actor::Person],
            payload_bytes: 64 * 1024 * 1024,
            text_bytes: 64 * 1024,
            turns: false,
        }
    }
}

/// Folds the events of one trial.
pub fn fold(
    events: impl IntoIterator<Item = Result<Event, RecordError>>,
    blobs: &Blobs,
    options: &FoldOptions,
) -> Result<FoldedTrial, RecordError> {
    let mut fold = Fold::new(options.clone());
    for event in events {
        fold.push(&event?, blobs)?;
    }
    Ok(fold.finish())
}

/// Folds a trial of a run.
pub fn fold_trial(
    run: &RunReader,
    trial: &TrialFile,
    options: &FoldOptions,
) -> Result<FoldedTrial, RecordError> {
    let mut events = run.trial(trial)?;
    let folded = fold(&mut events, run.blobs(), options)?;
    Ok(FoldedTrial {
        torn: events.torn(),
        ..folded
    })
}

/// A trial, as far as its events are known.
#[derive(Debug)]
pub struct Fold {
    actors: Vec<Actor>,
    connections: HashMap<ConnectionId, ConnectionOpened>,
    pairing: Pairing,
    calls: CallFold,
    findings: Findings,
    conduct: ConductFold,
    work: WorkFold,
    turns: Option<TurnFold>,
    unread: Vec<UnreadMessage>,
}

/// Where a message stands in the record.
#[derive(Debug, Clone, Copy)]
struct MessagePosition {
    seq: u64,
    at: u64,
    conn: ConnectionId,
    exchange: Option<u64>,
    direction: Direction,
}

impl Fold {
    /// Nothing has happened yet.
    pub fn new(options: FoldOptions) -> Self {
        Self {
            actors: options.actors,
            connections: HashMap::new(),
            pairing: Pairing::default(),
            calls: CallFold::new(options.payload_bytes),
            findings: Findings::default(),
            conduct: ConductFold::default(),
            work: WorkFold::new(options.text_bytes),
            turns: options.turns.then(|| TurnFold::new(options.text_bytes)),
            unread: Vec::new(),
        }
    }

    /// Takes in the next event. Fails only if a blob can't be read.
    pub fn push(&mut self, event: &Event, blobs: &Blobs) -> Result<(), RecordError> {
        self.work.push(event, blobs)?;
        if let Some(turns) = &mut self.turns {
            turns.push(event, blobs);
        }
        self.conduct.at(event.at);
        match &event.event {
            EventKind::ConnectionOpened(opened) => {
                self.connections.insert(opened.conn, opened.clone());
            }
            EventKind::ConnectionClosed(closed) => self.conduct.closed(closed),
            EventKind::Http(http) => self.conduct.http(http),
            EventKind::Finding(finding) => self.findings.recorded(finding.clone()),
            EventKind::Frame(frame) => {
                let place = MessagePosition {
                    seq: event.seq,
                    at: event.at,
                    conn: frame.conn,
                    exchange: frame.exchange,
                    direction: frame.direction,
                };
                self.frame(place, frame, blobs)?;
            }
            // What `work` takes in.
            EventKind::RunStarted(_)
            | EventKind::RunEnded(_)
            | EventKind::TrialStarted(_)
            | EventKind::PhaseStarted { .. }
            | EventKind::TrialEnded(_)
            | EventKind::RunPlanned(_)
            | EventKind::ServerSeen(_)
            | EventKind::Prompted { .. }
            | EventKind::ToolsOffered { .. }
            | EventKind::ModelAsked(_)
            | EventKind::ModelFailed(_)
            | EventKind::ModelReplied(_)
            | EventKind::Replayed { .. }
            | EventKind::AgentAnswered { .. }
            | EventKind::AgentStarted(_)
            | EventKind::AgentWrote { .. }
            | EventKind::AgentClaimed(_)
            | EventKind::AgentEnded(_)
            | EventKind::StepEnded(_)
            | EventKind::Graded(_)
            | EventKind::Unknown(_) => {}
        }
        Ok(())
    }

    /// The trial, with everything that is still open left without an answer.
    pub fn finish(mut self) -> FoldedTrial {
        let waiting: Vec<_> = self.pairing.into_unanswered().collect();
        for (_, asked) in &waiting {
            if let (Some(call), Some(bytes)) = (asked.call, asked.cut) {
                self.calls.answer_was_cut(call, bytes);
            }
        }
        let work = self.work.finish();
        let (calls, made_at, in_error) = self.calls.into_calls();
        let counts = |conn: ConnectionId| {
            let opened = self.connections.get(&conn)?;
            self.actors.contains(&opened.actor).then_some(opened)
        };
        let conduct = Conduct {
            unanswered: self.conduct.unanswered(
                waiting.into_iter(),
                &calls,
                &made_at,
                work.ended.is_some(),
            ),
            ended: self.conduct.ended(
                |conn| Some(counts(conn)?.server.clone()),
                |conn| {
                    let again = |opened: &&ConnectionOpened| opened.conn > conn;
                    let server = counts(conn).map(|opened| opened.server.as_str());
                    let mut later = self.connections.values().filter(again);
                    later.any(|opened| Some(opened.server.as_str()) == server)
                },
            ),
        };
        for unanswered in &conduct.unanswered {
            self.findings.unanswered(unanswered);
        }
        let all = self.findings.into_all();
        let is_breach = |(finding, is_server): &&(Finding, bool)| {
            // A slow client loses messages too.
            let is_agent = counts(finding.conn).map(|opened| opened.actor == Actor::Agent);
            let may_be_client = finding.kind == FindingKind::Dropped && is_agent == Some(true);
            *is_server && is_agent.is_some() && !may_be_client
        };
        let breaches = all.iter().filter(is_breach);
        let breaches = breaches.map(|(finding, _)| finding.clone()).collect();
        FoldedTrial {
            started: work.started.clone(),
            ended: work.ended.clone(),
            transcript: Transcript {
                calls,
                skills: work
                    .external
                    .as_ref()
                    .and_then(|agent| agent.skills.clone()),
                unread: self.unread,
            },
            made_at,
            in_error,
            findings: all.into_iter().map(|(finding, _)| finding).collect(),
            breaches,
            conduct,
            work,
            turns: self.turns.map(TurnFold::into_turns).unwrap_or_default(),
            torn: None,
        }
    }

    fn frame(
        &mut self,
        place: MessagePosition,
        frame: &Frame,
        blobs: &Blobs,
    ) -> Result<(), RecordError> {
        if let Body::Cut { bytes, .. } = frame.body {
            match frame.direction {
                Direction::ToServer if self.counts(place.conn) => {
                    let reason = format!("its {bytes} bytes had to be cut from the record");
                    self.unread.push(UnreadMessage {
                        seq: place.seq,
                        server: self.server(place.conn).to_owned(),
                        kind: None,
                        name: None,
                        reason,
                    });
                }
                Direction::ToServer => {}
                Direction::ToClient => self.pairing.cut(place, bytes),
            }
            return Ok(());
        }
        let Some(bytes) = blobs.body_bytes(&frame.body)? else {
            return Ok(());
        };
        match frame.direction {
            Direction::ToServer if frame.exchange.is_none() => self.conduct.posted(place),
            Direction::ToServer => {}
            Direction::ToClient => {
                self.conduct.spoke(place.conn);
                if let Some(status) = self.conduct.refusal(place) {
                    self.refused(place, status, &bytes);
                    return Ok(());
                }
            }
        }
        let is_sent = frame.direction == Direction::ToServer;
        let is_unclear = is_sent && self.unclear(place, &bytes);
        let parsed = message::each(&bytes, &mut |message| match frame.direction {
            Direction::ToServer => self.sent(place, message),
            Direction::ToClient => self.received(place, message),
        });
        if let Err(MessageParseError {
            looks_like_json,
            reason,
        }) = parsed
        {
            let is_line = self
                .connections
                .get(&place.conn)
                .is_some_and(|opened| opened.transport == WireKind::Stdio);
            let kind = if is_line && !looks_like_json {
                FindingKind::Noise
            } else {
                FindingKind::Malformed
            };
            match (is_sent, is_unclear) {
                (false, _) => self.findings.derived(place, kind, &reason),
                (true, false) => self.findings.derived(
                    place,
                    FindingKind::ClientMessage,
                    &format!("the client sent something that is not a message: {reason}"),
                ),
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// Notes what a lenient server may take as a call, though it is not in the transcript as one.
    fn unclear(&mut self, place: MessagePosition, bytes: &[u8]) -> bool {
        let reading = LenientReading::of(bytes);
        for id in reading.ids {
            self.pairing.asked(place, id, None);
        }
        if reading.calls.is_empty() || !self.counts(place.conn) {
            return false;
        }
        let server = self.server(place.conn).to_owned();
        for call in reading.calls {
            let message = UnreadMessage {
                seq: place.seq,
                server: server.clone(),
                kind: call.kind,
                name: call.name,
                reason: call.reason,
            };
            let detail = format!("the client sent what some servers read as {message}");
            self.findings
                .derived(place, FindingKind::ClientMessage, &detail);
            self.unread.push(message);
        }
        true
    }

    fn server(&self, conn: ConnectionId) -> &str {
        let opened = self.connections.get(&conn);
        opened.map_or("", |opened| opened.server.as_str())
    }

    fn sent(&mut self, place: MessagePosition, message: &Message<'_>) {
        match message.kind() {
            MessageKind::Request { id, method } => {
                let call = if self.counts(place.conn) {
                    let opened = self.connections.get(&place.conn);
                    let server = opened.map_or("", |opened| opened.server.as_str());
                    self.calls.request(place, server, method, message.params)
                } else {
                    None
                };
                self.pairing.asked(place, id, call);
            }
            MessageKind::Notification {
                method: "notifications/cancelled",
            } => {
                if let Some(id) = message.cancelled() {
                    let why = CancelReason::of(message);
                    self.pairing.cancelled(place, &id, why);
                }
            }
            // An answer to a question of the server: no part of the transcript.
            MessageKind::Notification { .. } | MessageKind::Answer { .. } => {}
            MessageKind::Neither => self.findings.derived(
                place,
                FindingKind::ClientMessage,
                "the client sent what is neither a request nor an answer",
            ),
        }
    }

    fn received(&mut self, place: MessagePosition, message: &Message<'_>) {
        let id = match message.kind() {
            MessageKind::Answer { id } => id,
            MessageKind::Request { .. } | MessageKind::Notification { .. } => return,
            MessageKind::Neither => {
                let detail = "a message without a method, a result and an error";
                self.findings.derived(place, FindingKind::Malformed, detail);
                return;
            }
        };
        if message.result.is_some() && message.error.is_some() {
            let detail = format!("the answer to {id} has a result and an error");
            self.findings
                .derived(place, FindingKind::ResultAndError, &detail);
        }
        let (kind, detail) = match self.pairing.answered(place, &id, message.error.is_some()) {
            RequestMatch::Asked(asked) => {
                if let Some(call) = asked.call {
                    self.calls.answer(place, call, message);
                }
                return;
            }
            RequestMatch::Unwanted => return,
            // How HTTP refuses what asked for no answer: a GET, or a notification.
            RequestMatch::Never if id == Id::Absent && self.pairing.asks_nothing(place) => return,
            RequestMatch::Late(asked) => {
                self.conduct.late(place.conn, asked);
                let detail = format!("{id} was answered after it was cancelled");
                (FindingKind::LateAnswer, detail)
            }
            RequestMatch::Again => (
                FindingKind::DuplicateAnswer,
                format!("{id} was answered before"),
            ),
            RequestMatch::Never => (
                FindingKind::UnknownId,
                format!("nothing was asked with {id}"),
            ),
        };
        self.findings.derived(place, kind, &detail);
    }

    fn counts(&self, conn: ConnectionId) -> bool {
        self.connections
            .get(&conn)
            .is_some_and(|opened| self.actors.contains(&opened.actor))
    }
}

//! Folds events into the data that checks read.
//!
//! The main type is [`Fold`]: it takes events one at a time, live or from a record, and returns a
//! [`FoldedTrial`]. Messages are parsed only here, and an unparsable message is kept as a fact. Of
//! a trial, only the transcript and the work are in memory, with payloads and texts up to a limit.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod calls;
mod conduct;
mod findings;
mod live;
mod messages;
mod pairing;
mod refusal;
mod selection;
mod server_requests;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
mod turns;
mod unknown_tools;
mod work;

use std::collections::{BTreeMap, HashMap};

use crate::event::{
    Actor, ConnectionId, ConnectionOpened, Event, EventKind, Finding, FindingKind, TrialEnded,
    TrialStarted,
};
use crate::record::{Blobs, RecordError, RunReader, TornLine, TrialFile};
use crate::transcript::{Call, CallOutcome, Transcript, UnreadMessage, UserMessage};

use self::calls::CallFold;
use self::conduct::{ConductFold, MadeCalls};
use self::findings::Findings;
use self::messages::MessagePosition;
use self::pairing::Pairing;

pub use self::conduct::{Conduct, Excuse, NoAnswer, ServerEnd, UnansweredCall};
pub use self::live::LiveFold;
pub use self::server_requests::ServerRequest;
use self::server_requests::ServerRequestFold;
pub use self::text::ClippedText;
pub use self::timeline::{TimelineItem, TrialOutline};
use self::turns::TurnFold;
pub use self::turns::{ModelTurn, RequestedCall, TurnReply};
use self::work::WorkFold;
pub use self::work::{
    ExternalAgentWork, FurtherMessage, ModelActivity, PhaseSpan, StepDone, TrialWork,
};

/// The result of folding a trial's events.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldedTrial {
    /// The trial's identity, if its record has it.
    pub started: Option<TrialStarted>,
    /// How the trial ended; `None` if it did not.
    pub ended: Option<TrialEnded>,
    pub transcript: Transcript,
    /// The time of each call of the transcript, in microseconds since the run started.
    pub made_at: Vec<u64>,
    /// Whether each call of the transcript ended in an error or has no response.
    pub in_error: Vec<bool>,
    /// The protocol problems, as recorded or as derived from the messages.
    pub findings: Vec<Finding>,
    /// The findings that fail the trial in a strict run, for the servers that the agent used.
    pub breaches: Vec<Finding>,
    /// The calls without a response, and the servers that ended.
    pub conduct: Conduct,
    /// Everything else: steps, checks, models.
    pub work: TrialWork,
    /// The turns of the agent's model, in order, if they were requested ([`FoldOptions::turns`]).
    pub turns: Vec<ModelTurn>,
    /// The requests of servers to the client, in order.
    pub server_requests: Vec<ServerRequest>,
    /// The last line of the record, if it is incomplete.
    pub torn: Option<TornLine>,
}

/// What to fold, and how much of it to keep.
#[derive(Debug, Clone)]
pub struct FoldOptions {
    pub actors: Vec<Actor>,
    /// How many bytes of arguments and results to keep, as JSON. The rest becomes
    /// [`Payload::Omitted`](crate::transcript::Payload::Omitted), since parsed JSON takes many
    /// times its length.
    pub payload_bytes: u64,
    /// Whether results are kept, or only arguments.
    pub results: bool,
    /// How many bytes of each other text to keep: the prompt, the answer, the output of a step.
    /// Longer texts lose their middle.
    pub text_bytes: usize,
    /// Whether the turns of the agent's model are kept.
    pub turns: bool,
}

impl Default for FoldOptions {
    fn default() -> Self {
        Self {
            actors: vec![Actor::Agent, Actor::Loop, Actor::Person, Actor::Imported],
            payload_bytes: 64 * 1024 * 1024,
            results: true,
            text_bytes: 64 * 1024,
            turns: false,
        }
    }
}

impl FoldOptions {
    /// What checks read: the calls of the agent, whether it runs in Proctor's loop or by itself. A live
    /// trial and a regrade fold with the same options, so that they see the same transcript.
    pub fn for_checks() -> Self {
        Self {
            actors: vec![Actor::Agent, Actor::Loop, Actor::Imported],
            ..Self::default()
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

/// A fold in progress.
#[derive(Debug, Clone)]
pub struct Fold {
    actors: Vec<Actor>,
    connections: HashMap<ConnectionId, ConnectionOpened>,
    pairing: Pairing,
    calls: CallFold,
    findings: Findings,
    conduct: ConductFold,
    work: WorkFold,
    turns: Option<TurnFold>,
    messages: Vec<UserMessage>,
    server_requests: ServerRequestFold,
    unread: Vec<UnreadMessage>,
}

/// What was taken from a fold in progress.
struct SettledItems {
    /// The calls before the first one that may still get a response.
    calls: Vec<Call>,
    turns: Vec<ModelTurn>,
    server_requests: Vec<ServerRequest>,
    /// The number of the first call that was left.
    open: Option<u64>,
}

impl Fold {
    /// A fold without any events.
    pub fn new(options: FoldOptions) -> Self {
        Self {
            actors: options.actors,
            connections: HashMap::new(),
            pairing: Pairing::default(),
            calls: CallFold::new(options.payload_bytes, options.results),
            findings: Findings::default(),
            conduct: ConductFold::default(),
            work: WorkFold::new(options.text_bytes),
            turns: options.turns.then(|| TurnFold::new(options.text_bytes)),
            messages: Vec::new(),
            server_requests: ServerRequestFold::new(options.text_bytes),
            unread: Vec::new(),
        }
    }

    /// Adds the next event. Fails only if a blob can't be read.
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
            EventKind::Prompted { turn, .. } => self.messages.push(UserMessage {
                seq: event.seq,
                turn: turn.unwrap_or(1),
            }),
            // `work` handles these events.
            EventKind::RunStarted(_)
            | EventKind::RunEnded(_)
            | EventKind::TrialStarted(_)
            | EventKind::PhaseStarted { .. }
            | EventKind::TrialEnded(_)
            | EventKind::RunPlanned(_)
            | EventKind::ServerSeen(_)
            | EventKind::SurfaceCompared(_)
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
            | EventKind::TrialFolder(_)
            | EventKind::CallWithheld(_)
            | EventKind::ToolsSelected(_)
            | EventKind::StepEnded(_)
            | EventKind::Graded(_)
            | EventKind::Unknown(_) => {}
        }
        Ok(())
    }

    /// Takes the calls and turns that no later event changes, in order. The folded trial does not have them. `lost` has the
    /// outcome of each call that no response will end.
    fn take_settled(&mut self, lost: &BTreeMap<u64, CallOutcome>) -> SettledItems {
        SettledItems {
            calls: self.calls.take_settled(lost),
            turns: self.turns.as_mut().map(TurnFold::take).unwrap_or_default(),
            server_requests: self.server_requests.take(),
            open: self.calls.first().map(|call| call.seq),
        }
    }

    /// The folded trial. Open calls have no response.
    pub fn finish(mut self) -> FoldedTrial {
        let waiting: Vec<_> = self.pairing.into_unanswered().collect();
        for (_, asked) in &waiting {
            if let (Some(call), Some(bytes)) = (asked.call, asked.cut) {
                self.calls.answer_was_cut(call, bytes);
            }
        }
        let work = self.work.finish();
        let taken = self.calls.taken();
        let (calls, made_at, in_error) = self.calls.into_calls();
        let counts = |conn: ConnectionId| {
            let opened = self.connections.get(&conn)?;
            self.actors.contains(&opened.actor).then_some(opened)
        };
        let conduct = Conduct {
            unanswered: self.conduct.unanswered(
                waiting.into_iter(),
                MadeCalls {
                    calls: &calls,
                    made_at: &made_at,
                    taken,
                },
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
                selection: selection::chosen(&work),
                messages: self.messages,
            },
            made_at,
            in_error,
            findings: all.into_iter().map(|(finding, _)| finding).collect(),
            breaches,
            conduct,
            work,
            turns: self.turns.map(TurnFold::into_turns).unwrap_or_default(),
            server_requests: self.server_requests.into_requests(),
            torn: None,
        }
    }
}

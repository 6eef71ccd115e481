//! The turns of the agent's model, for people who read the conversation.
//!
//! Its main type is [`ModelTurn`]. Checks don't read turns, so they are folded only on request
//! ([`FoldOptions::turns`](super::FoldOptions)).

use std::collections::{BTreeSet, HashMap};

use serde::de::DeserializeOwned;

use crate::event::{Body, Event, EventKind, Purpose};
use crate::json;
use crate::model::{Arguments, Turn, Usage};
use crate::record::Blobs;

use super::text::ClippedText;
use super::unknown_tools::ToolName;

/// How many turns are kept.
const TURNS: usize = 10_000;

/// What the agent's model said at once, or why it said nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTurn {
    /// The number of the event in the trial's record.
    pub seq: u64,
    /// From the question to the reply, in microseconds.
    pub micros: Option<u64>,
    pub reply: TurnReply,
}

/// How a model replied.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnReply {
    Said {
        text: ClippedText,
        calls: Vec<RequestedCall>,
        usage: Usage,
    },
    /// The record does not hold the turn as JSON.
    Unreadable,
    /// The request failed; it may have been sent again.
    Failed { attempt: u32, reason: String },
}

/// A call that a model requested.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedCall {
    /// The tool, by the name that the model wrote.
    pub tool: String,
    /// Whether the model was offered a tool of this name; `None` if the record does not tell.
    pub offered: Option<bool>,
    /// What is wrong with its arguments.
    pub malformed: Option<String>,
}

/// A request to the agent's model that has no reply yet.
#[derive(Debug, Clone)]
struct OpenRequest {
    at: u64,
    offered: Option<BTreeSet<String>>,
}

/// Turns, as far as their events are known.
#[derive(Debug, Clone)]
pub(super) struct TurnFold {
    text_bytes: usize,
    offered: Option<BTreeSet<String>>,
    requests: HashMap<u64, OpenRequest>,
    turns: Vec<ModelTurn>,
    /// The number of turns, with those that were taken.
    count: usize,
}

impl TurnFold {
    pub(super) fn new(text_bytes: usize) -> Self {
        Self {
            text_bytes,
            offered: None,
            requests: HashMap::new(),
            turns: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn push(&mut self, event: &Event, blobs: &Blobs) {
        if let EventKind::ToolsOffered { tools } = &event.event {
            let tools = read::<Vec<ToolName>>(tools, blobs);
            self.offered = tools.map(|tools| tools.into_iter().map(|tool| tool.name).collect());
        } else if let EventKind::ModelAsked(asked) = &event.event
            && asked.purpose == Purpose::Agent
        {
            let request = OpenRequest {
                at: event.at,
                offered: self.offered.clone(),
            };
            self.requests.insert(asked.ask, request);
        } else if let EventKind::ModelFailed(failed) = &event.event
            && let Some(request) = self.requests.get(&failed.ask)
        {
            let micros = event.at.checked_sub(request.at);
            let reason = ClippedText::middle(&failed.reason, self.text_bytes).to_string();
            let attempt = failed.attempt;
            self.turn(event.seq, micros, TurnReply::Failed { attempt, reason });
        } else if let EventKind::ModelReplied(replied) = &event.event
            && let Some(request) = self.requests.remove(&replied.ask)
        {
            let micros = event.at.checked_sub(request.at);
            let reply = match read::<Turn>(&replied.turn, blobs) {
                Some(turn) => TurnReply::Said {
                    text: ClippedText::middle(&turn.text, self.text_bytes),
                    calls: requested(&turn, request.offered.as_ref()),
                    usage: replied.usage,
                },
                None => TurnReply::Unreadable,
            };
            self.turn(event.seq, micros, reply);
        }
    }

    pub(super) fn into_turns(self) -> Vec<ModelTurn> {
        self.turns
    }

    /// Removes the turns so far.
    pub(super) fn take(&mut self) -> Vec<ModelTurn> {
        std::mem::take(&mut self.turns)
    }

    fn turn(&mut self, seq: u64, micros: Option<u64>, reply: TurnReply) {
        if self.count < TURNS {
            self.count += 1;
            self.turns.push(ModelTurn { seq, micros, reply });
        }
    }
}

fn requested(turn: &Turn, offered: Option<&BTreeSet<String>>) -> Vec<RequestedCall> {
    let calls = turn.calls.iter().map(|call| RequestedCall {
        tool: call.name.clone(),
        offered: offered.map(|offered| offered.contains(&call.name)),
        malformed: match &call.arguments {
            Arguments::Object(_) => None,
            Arguments::Malformed { reason, .. } => Some(reason.clone()),
        },
    });
    calls.collect()
}

/// What a body holds. One that is missing or damaged tells nothing, and spoils nothing.
pub(super) fn read<T: DeserializeOwned>(body: &Body, blobs: &Blobs) -> Option<T> {
    let bytes = blobs.body_bytes(body).ok().flatten()?;
    json::from_slice(&bytes).ok()
}

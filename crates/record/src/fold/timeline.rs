//! The calls and turns of a trial one by one, for a record that is larger than memory.
//!
//! The main type is [`TrialOutline`]: everything else in a trial. A trial is read twice, since an outline tells how the trial
//! ended, and is needed before the first item.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::Event;
use crate::record::{Blobs, RecordError, RunReader, TrialFile};
use crate::transcript::{Call, CallOutcome, CallRequest, Payload};

use super::{Fold, FoldOptions, FoldedTrial, FurtherMessage, ModelTurn, ServerRequest};

/// A trial without its calls and turns.
#[derive(Debug, Clone)]
pub struct TrialOutline {
    /// The trial. Its transcript has no calls, and its turns are left out.
    pub folded: FoldedTrial,
    /// The number of calls in the transcript.
    pub calls: u64,
    /// The names of the tools that were called.
    pub tools: BTreeSet<String>,
    pub last_turn: Option<ModelTurn>,
    /// The outcome of each call without a response in the record, by its number.
    lost: BTreeMap<u64, CallOutcome>,
    /// The number of events that were read. A trial that goes on has more of them later.
    events: u64,
}

/// A part of the conversation between an agent, its model and its servers.
#[derive(Debug, Clone, PartialEq)]
pub enum TimelineItem {
    Turn(ModelTurn),
    Call(Call),
    /// A request of a server to the client.
    ServerRequest(ServerRequest),
    /// A message of the user after the prompt.
    Message(FurtherMessage),
}

impl TimelineItem {
    /// The number of the event that the item is known by.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Turn(turn) => turn.seq,
            Self::Call(call) => call.seq,
            Self::ServerRequest(request) => request.seq,
            Self::Message(message) => message.seq,
        }
    }
}

impl FoldedTrial {
    /// The outline of a trial and its items, in the order of the record.
    pub fn into_timeline(mut self) -> (TrialOutline, Vec<TimelineItem>) {
        let calls = std::mem::take(&mut self.transcript.calls);
        let turns = std::mem::take(&mut self.turns);
        let requests = std::mem::take(&mut self.server_requests);
        let mut rest: Vec<TimelineItem> = turns_and_requests(turns.clone(), requests);
        let messages = self.work.messages.iter().cloned();
        rest.extend(messages.map(TimelineItem::Message));
        let mut outline = TrialOutline {
            folded: self,
            calls: 0,
            tools: BTreeSet::new(),
            last_turn: turns.last().cloned(),
            lost: calls.iter().filter_map(lost).collect(),
            events: 0,
        };
        count(&calls, &mut outline.calls, &mut outline.tools);
        (outline, merged(calls, rest))
    }
}

impl TrialOutline {
    /// Reads a trial, and keeps only the calls in memory that a later event may change.
    pub fn read(
        run: &RunReader,
        file: &TrialFile,
        options: &FoldOptions,
    ) -> Result<Self, RecordError> {
        let mut events = run.trial(file)?;
        let mut outline = Self::of_events(&mut events, run.blobs(), options)?;
        outline.folded.torn = events.torn();
        outline.events = events.position().events;
        Ok(outline)
    }

    /// Reads the trial again, and calls `take` with each item, in the order of the record. An item is in memory until the
    /// calls before it are answered; a call that is never answered holds up no other.
    pub fn each_item<E: From<RecordError>>(
        &self,
        run: &RunReader,
        file: &TrialFile,
        options: &FoldOptions,
        take: impl FnMut(TimelineItem) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = usize::try_from(self.events).unwrap_or(usize::MAX);
        let events = run.trial(file)?.take(known);
        self.each_item_of(events, run.blobs(), options, take)
    }

    pub(super) fn of_events(
        events: impl Iterator<Item = Result<Event, RecordError>>,
        blobs: &Blobs,
        options: &FoldOptions,
    ) -> Result<Self, RecordError> {
        let mut fold = Fold::new(options.clone());
        let mut calls = 0;
        let mut tools = BTreeSet::new();
        let mut last_turn = None;
        for event in events {
            fold.push(&event?, blobs)?;
            let settled = fold.take_settled(&BTreeMap::new());
            count(&settled.calls, &mut calls, &mut tools);
            last_turn = settled.turns.into_iter().last().or(last_turn);
        }
        let (mut outline, _) = fold.finish().into_timeline();
        outline.calls += calls;
        outline.tools.append(&mut tools);
        outline.last_turn = outline.last_turn.or(last_turn);
        Ok(outline)
    }

    /// Calls `take` with each item of a trial.
    pub(super) fn each_item_of<E: From<RecordError>>(
        &self,
        events: impl Iterator<Item = Result<Event, RecordError>>,
        blobs: &Blobs,
        options: &FoldOptions,
        mut take: impl FnMut(TimelineItem) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut fold = Fold::new(options.clone());
        // The other items after a call that waits for its response.
        let mut others = VecDeque::new();
        let mut messages = 0;
        for event in events {
            fold.push(&event?, blobs)?;
            let settled = fold.take_settled(&self.lost);
            others.extend(turns_and_requests(settled.turns, settled.server_requests));
            let new = &fold.work.messages()[messages..];
            messages += new.len();
            others.extend(new.iter().cloned().map(TimelineItem::Message));
            let is_before =
                |item: &mut TimelineItem| settled.open.is_none_or(|open| item.seq() < open);
            let before = std::iter::from_fn(|| others.pop_front_if(is_before)).collect();
            for item in merged(settled.calls, before) {
                take(item)?;
            }
        }
        let rest = fold.finish();
        others.extend(turns_and_requests(Vec::new(), rest.server_requests));
        for item in merged(rest.transcript.calls, others.into()) {
            take(item)?;
        }
        Ok(())
    }
}

/// A call that has no response in the record, and its outcome.
fn lost(call: &Call) -> Option<(u64, CallOutcome)> {
    let is_lost = match &call.answer {
        CallOutcome::None | CallOutcome::Result(Payload::Cut { .. }) => true,
        CallOutcome::Result(_) | CallOutcome::Error { .. } => false,
    };
    is_lost.then(|| (call.seq, call.answer.clone()))
}

fn count(calls: &[Call], count: &mut u64, tools: &mut BTreeSet<String>) {
    *count += calls.len() as u64;
    for call in calls {
        if let CallRequest::Tool { name, .. } = &call.request
            && !tools.contains(name)
        {
            tools.insert(name.clone());
        }
    }
}

fn turns_and_requests(turns: Vec<ModelTurn>, requests: Vec<ServerRequest>) -> Vec<TimelineItem> {
    let turns = turns.into_iter().map(TimelineItem::Turn);
    let requests = requests.into_iter().map(TimelineItem::ServerRequest);
    turns.chain(requests).collect()
}

/// Calls and other items in the order of the record.
fn merged(calls: Vec<Call>, others: Vec<TimelineItem>) -> Vec<TimelineItem> {
    let mut items = others;
    items.extend(calls.into_iter().map(TimelineItem::Call));
    items.sort_by_key(TimelineItem::seq);
    items
}

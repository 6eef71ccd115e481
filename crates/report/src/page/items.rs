//! The timeline of a trial: prompt, model turns, calls with their results, and the answer.
//!
//! The main type is [`TimelineItem`].

use std::collections::BTreeMap;

use proctor_record::event::{AgentClaimed, Claim};
use proctor_record::fold::{FoldedTrial, FurtherMessage, ModelTurn, ServerRequest, TurnReply};
use proctor_record::record::RunReader;
use proctor_record::transcript::{Call, CallKind, CallOutcome, CallRequest, Payload};
use serde::Serialize;
use serde_json::Value;

use super::body::{BodyRoom, PageBody};
use super::timeline::EventPlaces;

/// Something that happened in a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineItem {
    /// The number of the event in the trial's record, which addresses contain.
    pub seq: u64,
    /// When it started, in microseconds since the trial started.
    pub at: u64,
    /// How long it took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    #[serde(flatten)]
    pub what: ItemKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ItemKind {
    Prompt {
        text: PageBody,
    },
    /// A turn of the agent's model.
    Turn {
        text: PageBody,
        /// Whether it is the agent's final answer.
        is_answer: bool,
        /// The tools that it calls.
        calls: Vec<String>,
        /// What is wrong with these calls.
        problems: Vec<String>,
        input: Option<u64>,
        output: Option<u64>,
    },
    TurnFailed {
        attempt: u32,
        reason: PageBody,
    },
    /// The record does not hold the turn.
    TurnUnreadable,
    Call(CallPage),
    /// A call that only the agent reports.
    Claim {
        tool: String,
        status: Claim,
        detail: Option<PageBody>,
    },
    Answer {
        text: PageBody,
    },
    /// A request of a server to the client.
    Request {
        server: String,
        method: String,
        text: PageBody,
        reply: Option<PageBody>,
    },
    /// A message that may be a call, but can't be read.
    Unread {
        text: String,
    },
}

/// A call with its response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallPage {
    pub server: String,
    pub call: CallKind,
    /// The tool, URI or prompt.
    pub name: String,
    /// The arguments as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<PageBody>,
    /// Why the arguments can't be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_arguments: Option<String>,
    /// Whether it ended in an error or has no response.
    pub is_error: bool,
    pub response: ResponsePage,
    /// The checks that it decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decides: Vec<String>,
}

/// The response to a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResponsePage {
    Result {
        /// The text of the result, if it has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<PageBody>,
        /// The whole result as JSON, unless the text says it all.
        #[serde(skip_serializing_if = "Option::is_none")]
        json: Option<PageBody>,
    },
    Error {
        code: i64,
        message: PageBody,
    },
    /// The response can't be shown, with the reason.
    Unread(String),
    Empty,
    /// The call has no response.
    Missing,
}

/// What the items of a trial are made of.
pub(super) struct ItemSource<'a> {
    pub(super) run: &'a RunReader,
    pub(super) folded: &'a FoldedTrial,
    pub(super) places: &'a EventPlaces,
}

/// An item that is not rendered yet.
enum Draft<'a> {
    Prompt,
    Turn(&'a ModelTurn),
    /// A call, by its position.
    Call(usize),
    Claim(&'a AgentClaimed),
    Request(&'a ServerRequest),
    Message(&'a FurtherMessage),
    Answer,
    Unread(String),
}

impl ItemSource<'_> {
    /// At most `limit` items from the event `from` on, and the number of the event after them, if there is one.
    pub(super) fn items(
        &self,
        from: u64,
        limit: usize,
        room: &mut BodyRoom,
    ) -> (Vec<TimelineItem>, Option<u64>) {
        let mut drafts = self.drafts();
        drafts.retain(|(seq, _)| *seq >= from);
        drafts.sort_by_key(|(seq, _)| *seq);
        let next = drafts.get(limit).map(|(seq, _)| *seq);
        let decides = self.decides();
        let items = drafts.into_iter().take(limit).map(|(seq, draft)| {
            let (at, micros) = self.time(seq, &draft);
            let what = self.item(&draft, &decides, room);
            TimelineItem {
                seq,
                at,
                micros,
                what,
            }
        });
        (items.collect(), next)
    }

    fn drafts(&self) -> Vec<(u64, Draft<'_>)> {
        let folded = self.folded;
        let mut drafts = Vec::new();
        let prompt = self.places.prompt.as_ref();
        drafts.extend(prompt.map(|(seq, _)| (*seq, Draft::Prompt)));
        drafts.extend(
            folded
                .turns
                .iter()
                .map(|turn| (turn.seq, Draft::Turn(turn))),
        );
        let calls = folded.transcript.calls.iter().enumerate();
        drafts.extend(calls.map(|(index, call)| (call.seq, Draft::Call(index))));
        let requests = folded.server_requests.iter();
        drafts.extend(requests.map(|request| (request.seq, Draft::Request(request))));
        let messages = folded.work.messages.iter();
        drafts.extend(messages.map(|message| (message.seq, Draft::Message(message))));
        let external = folded.work.external.as_ref();
        let claims = external.map_or(&[][..], |external| &external.claims);
        let claims = claims.iter().filter(|(_, claim)| self.adds(claim));
        drafts.extend(claims.map(|(seq, claim)| (*seq, Draft::Claim(claim))));
        let is_shown = folded.turns.last().is_some_and(|turn| self.is_answer(turn));
        let answer = self.places.answer.as_ref().filter(|_| !is_shown);
        drafts.extend(answer.map(|(seq, _)| (*seq, Draft::Answer)));
        let unread = folded.transcript.unread.iter();
        drafts.extend(unread.map(|m| (m.seq, Draft::Unread(m.to_string()))));
        drafts
    }

    /// When an item started since the start of the trial, and how long it took.
    fn time(&self, seq: u64, draft: &Draft<'_>) -> (u64, Option<u64>) {
        let began = self.folded.work.began_at;
        match draft {
            Draft::Call(index) => {
                let at = self.folded.made_at.get(*index).copied().unwrap_or(began);
                let call = &self.folded.transcript.calls[*index];
                let took = call
                    .duration
                    .and_then(|d| u64::try_from(d.as_micros()).ok());
                (at.saturating_sub(began), took)
            }
            Draft::Turn(turn) => {
                let replied = self.places.since(began, seq);
                let took = turn.micros.unwrap_or(0);
                (replied.saturating_sub(took), turn.micros)
            }
            Draft::Request(request) => (request.at.saturating_sub(began), None),
            Draft::Prompt
            | Draft::Message(_)
            | Draft::Claim(_)
            | Draft::Answer
            | Draft::Unread(_) => (self.places.since(began, seq), None),
        }
    }

    fn item(
        &self,
        draft: &Draft<'_>,
        decides: &BTreeMap<u64, Vec<String>>,
        room: &mut BodyRoom,
    ) -> ItemKind {
        let body = |place: &Option<(u64, proctor_record::event::Body)>, room: &mut BodyRoom| {
            let body = place.as_ref().map(|(_, body)| room.body(body, self.run));
            body.unwrap_or_else(|| PageBody::Whole(String::new()))
        };
        match draft {
            Draft::Prompt => ItemKind::Prompt {
                text: body(&self.places.prompt, room),
            },
            Draft::Answer => ItemKind::Answer {
                text: body(&self.places.answer, room),
            },
            Draft::Turn(turn) => self.turn(turn, room),
            Draft::Call(index) => {
                let call = &self.folded.transcript.calls[*index];
                let is_error = self.folded.in_error.get(*index).copied().unwrap_or(true);
                let decides = decides.get(&call.seq).cloned().unwrap_or_default();
                ItemKind::Call(call_page(call, is_error, decides, room))
            }
            Draft::Claim(claim) => ItemKind::Claim {
                tool: claim.tool.clone(),
                status: claim.status,
                detail: claim.detail.as_deref().map(|text| room.text(text)),
            },
            Draft::Request(request) => ItemKind::Request {
                server: request.server.clone(),
                method: request.method.clone(),
                text: room.clipped(&request.text),
                reply: request.reply.as_ref().map(|reply| room.clipped(reply)),
            },
            Draft::Message(message) => ItemKind::Prompt {
                text: room.clipped(&message.text),
            },
            Draft::Unread(text) => ItemKind::Unread { text: text.clone() },
        }
    }

    fn turn(&self, turn: &ModelTurn, room: &mut BodyRoom) -> ItemKind {
        match &turn.reply {
            TurnReply::Unreadable => ItemKind::TurnUnreadable,
            TurnReply::Failed { attempt, reason } => ItemKind::TurnFailed {
                attempt: *attempt,
                reason: room.text(reason),
            },
            TurnReply::Said { text, calls, usage } => {
                let mut problems = Vec::new();
                for call in calls {
                    if call.offered == Some(false) {
                        problems.push(format!("invented tool: `{}` was not offered", call.tool));
                    }
                    if let Some(reason) = &call.malformed {
                        problems.push(format!("malformed arguments of `{}`: {reason}", call.tool));
                    }
                }
                ItemKind::Turn {
                    text: room.clipped(text),
                    is_answer: self.is_answer(turn),
                    calls: calls.iter().map(|call| call.tool.clone()).collect(),
                    problems,
                    input: usage.input,
                    output: usage.output,
                }
            }
        }
    }

    /// Whether the turn is the agent's final answer, which is then not shown twice.
    fn is_answer(&self, turn: &ModelTurn) -> bool {
        let is_last = self.folded.turns.last() == Some(turn);
        let TurnReply::Said { text, calls, .. } = &turn.reply else {
            return false;
        };
        is_last && calls.is_empty() && self.folded.work.answer.as_ref() == Some(text)
    }

    /// Whether a claim of the agent says more than the recorded calls: it was denied, or names a tool of the
    /// agent's own.
    fn adds(&self, claim: &AgentClaimed) -> bool {
        let is_recorded = |call: &Call| match &call.request {
            CallRequest::Tool { name, .. } => claim.tool.ends_with(name.as_str()),
            CallRequest::Resource { .. } | CallRequest::Prompt { .. } => false,
        };
        match claim.status {
            Claim::Denied => true,
            Claim::Completed | Claim::Failed | Claim::Unknown => {
                !self.folded.transcript.calls.iter().any(is_recorded)
            }
        }
    }

    /// The checks that each call decides, by the number of the call.
    fn decides(&self) -> BTreeMap<u64, Vec<String>> {
        let mut out: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for check in &self.folded.work.checks {
            for seq in &check.evidence {
                let checks = out.entry(*seq).or_default();
                if !checks.contains(&check.check) {
                    checks.push(check.check.clone());
                }
            }
        }
        out
    }
}

fn call_page(call: &Call, is_error: bool, decides: Vec<String>, room: &mut BodyRoom) -> CallPage {
    let (kind, name, arguments) = match &call.request {
        CallRequest::Tool { name, arguments } => (CallKind::Tool, name, Some(arguments)),
        CallRequest::Prompt { name, arguments } => (CallKind::Prompt, name, Some(arguments)),
        CallRequest::Resource { uri } => (CallKind::Resource, uri, None),
    };
    let (arguments, unread) = match arguments.map(Payload::read) {
        None | Some(Ok(None)) => (None, None),
        Some(Ok(Some(value))) => (Some(room.text(&value.to_string())), None),
        Some(Err(unread)) => (None, Some(format!("arguments {unread}"))),
    };
    CallPage {
        server: call.server.clone(),
        call: kind,
        name: name.clone(),
        arguments,
        unread_arguments: unread,
        is_error,
        response: response(&call.answer, room),
        decides,
    }
}

fn response(outcome: &CallOutcome, room: &mut BodyRoom) -> ResponsePage {
    match outcome {
        CallOutcome::None => ResponsePage::Missing,
        CallOutcome::Error { code, message } => ResponsePage::Error {
            code: *code,
            message: room.text(message),
        },
        CallOutcome::Result(payload) => match payload.read() {
            Ok(None) => ResponsePage::Empty,
            Err(unread) => ResponsePage::Unread(format!("result {unread}")),
            Ok(Some(value)) => {
                let texts = texts(value);
                let is_all = texts.len() == 1 && says_all(value);
                ResponsePage::Result {
                    text: (!texts.is_empty()).then(|| room.text(&texts.join("\n"))),
                    json: (!is_all).then(|| room.text(&value.to_string())),
                }
            }
        },
    }
}

/// The texts of a result, in order.
fn texts(result: &Value) -> Vec<&str> {
    let keys = ["content", "contents"];
    let parts = keys.iter().filter_map(|key| result[key].as_array());
    let parts = parts.flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// Whether a result has nothing but one text, and perhaps the mark of an error.
fn says_all(result: &Value) -> bool {
    let is_plain = |part: &Value| {
        let keys = part.as_object().map(serde_json::Map::len);
        keys == Some(2) && part["type"] == "text"
    };
    let known = |(key, value): (&String, &Value)| match key.as_str() {
        "isError" => value.is_boolean(),
        "content" => value
            .as_array()
            .is_some_and(|parts| parts.iter().all(is_plain)),
        _ => false,
    };
    result
        .as_object()
        .is_some_and(|object| object.iter().all(known))
}

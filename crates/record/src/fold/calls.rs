//! Collects the calls of a transcript and their responses.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::transcript::{Call, CallKind, CallOutcome, CallRequest, Payload};

use super::MessagePosition;
use crate::json;
use crate::message::tolerant::{CallParts, call_parts};
use crate::message::{Message, present};

/// The result type of a stateless server that needs more input from the client.
const INPUT_REQUIRED: &str = "input_required";

#[derive(Debug, Clone)]
pub(super) struct CallFold {
    /// The calls that a later event may change or that were not taken, by their index.
    made: BTreeMap<usize, MadeCall>,
    /// The number of calls so far, which is the index of the next one.
    count: usize,
    /// The number of calls that were taken ([`CallFold::take_settled`]).
    taken: usize,
    /// Calls that continue when the client sends the input.
    open: Vec<OpenCall>,
    payload_bytes_left: u64,
    /// Whether results are kept.
    results: bool,
}

#[derive(Debug, Clone)]
struct MadeCall {
    call: Call,
    made_at: u64,
    /// Whether the call ended in an error or has no response.
    in_error: bool,
    /// The bytes of its arguments and result that are in memory.
    payload_bytes: u64,
}

/// A call whose server asked for more input.
#[derive(Debug, Clone)]
struct OpenCall {
    call: usize,
    conn: crate::event::ConnectionId,
    method: &'static str,
    target: String,
    state: Option<String>,
}

/// The relevant parameters of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    request_state: Option<&'a RawValue>,
}

impl CallFold {
    pub(super) fn new(payload_bytes: u64, results: bool) -> Self {
        Self {
            made: BTreeMap::new(),
            count: 0,
            taken: 0,
            open: Vec::new(),
            payload_bytes_left: payload_bytes,
            results,
        }
    }

    /// The call that a request starts or continues, if it is one.
    pub(super) fn request(
        &mut self,
        place: MessagePosition,
        server: &str,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<usize> {
        let kind = CallKind::of_method(method)?;
        let CallParts {
            name,
            unclear_arguments,
        } = call_parts(kind, params);
        let parsed = params.map(|params| json::from_str::<Params>(params.get()));
        let (params, broken) = match parsed {
            Some(Ok(params)) => (params, None),
            Some(Err(error)) => (Params::default(), Some(error.to_string())),
            None => (Params::default(), None),
        };
        let written = match kind {
            CallKind::Resource => params.uri,
            CallKind::Tool | CallKind::Prompt => params.name,
        };
        let target = match (name, written) {
            (Ok(Some(name)), _) => name,
            (_, written) => written.map_or(String::new(), text),
        };
        if let Some(call) = self.going_on(place, kind.method(), &target, &params) {
            return Some(call);
        }
        let (arguments, payload_bytes) = match unclear_arguments.or(broken) {
            Some(reason) => (Payload::Unreadable { reason }, 0),
            None => self.payload(params.arguments),
        };
        let call = Call {
            seq: place.seq,
            server: server.to_owned(),
            request: match kind {
                CallKind::Tool => CallRequest::Tool {
                    name: target,
                    arguments,
                },
                CallKind::Resource => CallRequest::Resource { uri: target },
                CallKind::Prompt => CallRequest::Prompt {
                    name: target,
                    arguments,
                },
            },
            answer: CallOutcome::None,
            duration: None,
        };
        let made = MadeCall {
            call,
            made_at: place.at,
            in_error: true,
            payload_bytes,
        };
        let index = self.count;
        self.made.insert(index, made);
        self.count += 1;
        Some(index)
    }

    /// Adds the response to a call. The call has a duration only if the time of the response is known
    /// (`is_timed`).
    pub(super) fn answer(
        &mut self,
        place: MessagePosition,
        call: usize,
        message: &Message<'_>,
        is_timed: bool,
    ) {
        let result = message.result.filter(|_| message.error.is_none());
        let head = result.map(ResultHead::of).unwrap_or_default();
        if head.asks_for_input() {
            let state = head.request_state.map(|state| state.get().to_owned());
            self.open(place, call, state);
            return;
        }
        let in_error = match message.error {
            Some(_) => true,
            None => head.is_error.is_some_and(|flag| flag.get() == "true"),
        };
        let (answer, payload_bytes) = match (message.error, message.result) {
            (Some(error), _) => (error_of(error), 0),
            (None, Some(result)) if !self.results => {
                let bytes = result.get().len() as u64;
                (CallOutcome::Result(Payload::Omitted { bytes }), 0)
            }
            (None, result) => {
                let (payload, bytes) = self.payload(result);
                (CallOutcome::Result(payload), bytes)
            }
        };
        let Some(made) = self.made.get_mut(&call) else {
            return;
        };
        made.in_error = in_error;
        made.payload_bytes += payload_bytes;
        made.call.answer = answer;
        let took = place.at.checked_sub(made.made_at);
        made.call.duration = took.filter(|_| is_timed).map(Duration::from_micros);
    }

    /// The response came, but the record does not hold it.
    pub(super) fn answer_was_cut(&mut self, call: usize, bytes: u64) {
        if let Some(made) = self.made.get_mut(&call) {
            made.call.answer = CallOutcome::Result(Payload::Cut { bytes });
            made.in_error = false;
        }
    }

    /// Takes the calls before the first one that may still get a response, in order. `lost` has the outcome of each call
    /// that no response will end, by its number; such a call stays here too, since later requests may continue it.
    pub(super) fn take_settled(&mut self, lost: &BTreeMap<u64, CallOutcome>) -> Vec<Call> {
        let mut settled = Vec::new();
        while let Some(made) = self.made.get(&self.taken) {
            if made.call.answer != CallOutcome::None {
                let Some(made) = self.made.remove(&self.taken) else {
                    break;
                };
                self.payload_bytes_left += made.payload_bytes;
                settled.push(made.call);
            } else if let Some(outcome) = lost.get(&made.call.seq) {
                settled.push(Call {
                    answer: outcome.clone(),
                    ..made.call.clone()
                });
            } else {
                break;
            }
            self.taken += 1;
        }
        settled
    }

    /// The first call that was not taken.
    pub(super) fn first(&self) -> Option<&Call> {
        self.made.get(&self.taken).map(|made| &made.call)
    }

    /// The number of calls that were taken.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// The calls that were not taken, their times, and whether each ended in an error.
    pub(super) fn into_calls(self) -> (Vec<Call>, Vec<u64>, Vec<bool>) {
        let taken = self.taken;
        let left = self.made.into_iter().filter(|(index, _)| *index >= taken);
        let left = left.map(|(_, made)| (made.call, made.made_at, made.in_error));
        let (mut calls, mut made_at, mut in_error) = (Vec::new(), Vec::new(), Vec::new());
        for (call, at, is_error) in left {
            calls.push(call);
            made_at.push(at);
            in_error.push(is_error);
        }
        (calls, made_at, in_error)
    }

    fn open(&mut self, place: MessagePosition, call: usize, state: Option<String>) {
        let Some(made) = self.made.get(&call) else {
            return;
        };
        let (method, target) = match &made.call.request {
            CallRequest::Tool { name, .. } => ("tools/call", name.clone()),
            CallRequest::Resource { uri } => ("resources/read", uri.clone()),
            CallRequest::Prompt { name, .. } => ("prompts/get", name.clone()),
        };
        self.open.push(OpenCall {
            call,
            conn: place.conn,
            method,
            target,
            state,
        });
    }

    /// The call that this request continues: the one whose state it returns, or else the first with
    /// the same target.
    fn going_on(
        &mut self,
        place: MessagePosition,
        method: &str,
        target: &str,
        params: &Params<'_>,
    ) -> Option<usize> {
        if params.input_responses.is_none() && params.request_state.is_none() {
            return None;
        }
        let state = params.request_state.map(|state| state.get().to_owned());
        let fits = |open: &OpenCall| {
            open.conn == place.conn && open.method == method && open.target == target
        };
        let found = self
            .open
            .iter()
            .position(|open| fits(open) && open.state == state)
            .or_else(|| self.open.iter().position(fits))?;
        Some(self.open.remove(found).call)
    }

    /// A part of a message, and how many of its bytes are in memory.
    fn payload(&mut self, part: Option<&RawValue>) -> (Payload, u64) {
        let Some(part) = part else {
            return (Payload::Absent, 0);
        };
        let bytes = part.get().len() as u64;
        if bytes > self.payload_bytes_left {
            return (Payload::Omitted { bytes }, 0);
        }
        self.payload_bytes_left -= bytes;
        let payload = match json::decode(part.get()) {
            Ok(value) => Payload::Value(json::compact(value)),
            Err(error) => Payload::Unreadable {
                reason: error.to_string(),
            },
        };
        (payload, bytes)
    }
}

/// The fields of a result that are always read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultHead<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    result_type: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    request_state: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    is_error: Option<&'a RawValue>,
}

impl<'a> ResultHead<'a> {
    fn of(result: &'a RawValue) -> Self {
        json::from_str(result.get()).unwrap_or_default()
    }

    fn asks_for_input(&self) -> bool {
        self.result_type
            .is_some_and(|kind| text(kind) == INPUT_REQUIRED)
    }
}

/// A string, or the JSON of any other value.
fn text(raw: &RawValue) -> String {
    json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

fn error_of(error: &RawValue) -> CallOutcome {
    #[derive(Deserialize)]
    struct CallFailure {
        code: Value,
        #[serde(default)]
        message: String,
    }
    let unreadable = |reason: String| CallOutcome::Result(Payload::Unreadable { reason });
    let decoded = json::decode(error.get());
    match decoded.and_then(serde_json::from_value::<CallFailure>) {
        Ok(CallFailure { code, message }) => match code.as_i64() {
            Some(code) => CallOutcome::Error { code, message },
            None => unreadable(format!("invalid error code {}", crate::json::brief(&code))),
        },
        Err(reason) => unreadable(format!("malformed JSON-RPC error: {reason}")),
    }
}

//! Collects the calls of a transcript and their responses.

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
    made: Vec<Call>,
    /// The time of each call, by its index.
    made_at: Vec<u64>,
    /// Whether each call ended in an error or has no response, by its index.
    in_error: Vec<bool>,
    /// Calls that continue when the client sends the input.
    open: Vec<OpenCall>,
    payload_bytes_left: u64,
    /// Whether results are kept.
    results: bool,
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
            made: Vec::new(),
            made_at: Vec::new(),
            in_error: Vec::new(),
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
        let parsed = params.map(|params| serde_json::from_str::<Params>(params.get()));
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
        let arguments = match unclear_arguments.or(broken) {
            Some(reason) => Payload::Unreadable { reason },
            None => self.payload(params.arguments),
        };
        self.made.push(Call {
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
        });
        self.made_at.push(place.at);
        self.in_error.push(true);
        Some(self.made.len() - 1)
    }

    pub(super) fn answer(&mut self, place: MessagePosition, call: usize, message: &Message<'_>) {
        let result = message.result.filter(|_| message.error.is_none());
        let head = result.map(ResultHead::of).unwrap_or_default();
        if head.asks_for_input() {
            let state = head.request_state.map(|state| state.get().to_owned());
            self.open(place, call, state);
            return;
        }
        self.in_error[call] = match message.error {
            Some(_) => true,
            None => head.is_error.is_some_and(|flag| flag.get() == "true"),
        };
        let answer = match (message.error, message.result) {
            (Some(error), _) => error_of(error),
            (None, Some(result)) if !self.results => CallOutcome::Result(Payload::Omitted {
                bytes: result.get().len() as u64,
            }),
            (None, result) => CallOutcome::Result(self.payload(result)),
        };
        self.made[call].answer = answer;
        self.made[call].duration = place
            .at
            .checked_sub(self.made_at[call])
            .map(Duration::from_micros);
    }

    /// The response came, but the record does not hold it.
    pub(super) fn answer_was_cut(&mut self, call: usize, bytes: u64) {
        self.made[call].answer = CallOutcome::Result(Payload::Cut { bytes });
        self.in_error[call] = false;
    }

    /// The calls, their times, and whether each ended in an error.
    pub(super) fn into_calls(self) -> (Vec<Call>, Vec<u64>, Vec<bool>) {
        (self.made, self.made_at, self.in_error)
    }

    fn open(&mut self, place: MessagePosition, call: usize, state: Option<String>) {
        let (method, target) = match &self.made[call].request {
            CallRequest::Tool { name, .. } => ("tools/call", name),
            CallRequest::Resource { uri } => ("resources/read", uri),
            CallRequest::Prompt { name, .. } => ("prompts/get", name),
        };
        self.open.push(OpenCall {
            call,
            conn: place.conn,
            method,
            target: target.clone(),
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

    fn payload(&mut self, part: Option<&RawValue>) -> Payload {
        let Some(part) = part else {
            return Payload::Absent;
        };
        let bytes = part.get().len() as u64;
        if bytes > self.payload_bytes_left {
            return Payload::Omitted { bytes };
        }
        self.payload_bytes_left -= bytes;
        match json::decode(part.get()) {
            Ok(value) => Payload::Value(value),
            Err(error) => Payload::Unreadable {
                reason: error.to_string(),
            },
        }
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
        serde_json::from_str(result.get()).unwrap_or_default()
    }

    fn asks_for_input(&self) -> bool {
        self.result_type
            .is_some_and(|kind| text(kind) == INPUT_REQUIRED)
    }
}

/// A string, or the JSON of any other value.
fn text(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
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

//! Compares one call with one entry of a check.

use proctor_record::excerpt::excerpt;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload, Transcript};
use serde_json::{Map, Value};

use super::target::ToolMatcher;
use crate::matcher::Matcher;

/// A tool call of a transcript.
#[derive(Clone, Copy)]
pub(super) struct ObservedToolCall<'a> {
    pub(super) call: &'a Call,
    pub(super) name: &'a str,
    pub(super) arguments: &'a Payload,
}

/// The tool calls of a transcript, in order.
pub(super) fn tool_calls(transcript: &Transcript) -> Vec<ObservedToolCall<'_>> {
    transcript
        .calls
        .iter()
        .filter_map(|call| match &call.request {
            CallRequest::Tool { name, arguments } => Some(ObservedToolCall {
                call,
                name,
                arguments,
            }),
            CallRequest::Resource { .. } | CallRequest::Prompt { .. } => None,
        })
        .collect()
}

/// Whether a call matches an entry: yes, no or unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallFit {
    Yes,
    OtherTool,
    /// The right tool, but other conditions fail.
    No(NearMiss),
    /// The record does not prove it.
    Maybe(String),
}

/// Why a call of the right tool does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NearMiss {
    /// The number of differences, to find the nearest call.
    pub(super) distance: usize,
    /// The first of them.
    pub(super) reason: String,
}

pub(super) fn fit(entry: &ToolMatcher, tool: ObservedToolCall<'_>) -> CallFit {
    if !entry.target.matches(&tool.call.server, tool.name) {
        return CallFit::OtherTool;
    }
    [
        fit_arguments(entry, tool.arguments),
        fit_result(entry, &tool.call.answer),
        fit_is_error(entry, &tool.call.answer),
        fit_duration(entry, tool.call),
    ]
    .into_iter()
    .fold(CallFit::Yes, CallFit::and)
}

impl CallFit {
    pub(super) fn no(reason: impl Into<String>) -> Self {
        Self::No(NearMiss {
            distance: 1,
            reason: reason.into(),
        })
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No(first), Self::No(second)) => Self::No(NearMiss {
                distance: first.distance + second.distance,
                reason: first.reason,
            }),
            (Self::OtherTool, _) | (_, Self::OtherTool) => Self::OtherTool,
            (Self::No(miss), _) | (_, Self::No(miss)) => Self::No(miss),
            (Self::Maybe(why), _) | (_, Self::Maybe(why)) => Self::Maybe(why),
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

/// [`CallFit`] without its reasons, which take much longer to write than to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FitRank {
    Yes,
    Maybe,
    OtherTool,
    /// The number of differences.
    No(usize),
}

impl From<&CallFit> for FitRank {
    fn from(fit: &CallFit) -> Self {
        match fit {
            CallFit::Yes => Self::Yes,
            CallFit::OtherTool => Self::OtherTool,
            CallFit::No(miss) => Self::No(miss.distance),
            CallFit::Maybe(_) => Self::Maybe,
        }
    }
}

/// The rank of [`fit`]. A call whose arguments differ is found without a text; all others are compared in full.
pub(super) fn rank(entry: &ToolMatcher, tool: ObservedToolCall<'_>) -> FitRank {
    if !entry.target.matches(&tool.call.server, tool.name) {
        return FitRank::OtherTool;
    }
    let reads_only_arguments =
        entry.result.is_none() && entry.is_error.is_none() && entry.max_duration.is_none();
    if let (Some(matcher), Ok(Some(value)), true) = (
        &entry.arguments,
        tool.arguments.read(),
        reads_only_arguments,
    ) && !matcher.reads_lone_surrogate(Some(value))
    {
        let distance = matcher.distance(Some(value));
        if distance > 0 {
            return FitRank::No(distance);
        }
    }
    FitRank::from(&fit(entry, tool))
}

fn fit_arguments(entry: &ToolMatcher, arguments: &Payload) -> CallFit {
    fit_matcher(entry.arguments.as_ref(), arguments)
}

/// Whether arguments match; without a matcher, all do.
pub(super) fn fit_matcher(matcher: Option<&Matcher>, arguments: &Payload) -> CallFit {
    let Some(matcher) = matcher else {
        return CallFit::Yes;
    };
    match arguments.read() {
        Ok(None) => fit_value(matcher, "arguments", Some(&Value::Object(Map::default()))),
        Ok(value) => fit_value(matcher, "arguments", value),
        Err(why) => CallFit::Maybe(format!("its arguments {why}")),
    }
}

fn fit_result(entry: &ToolMatcher, answer: &CallOutcome) -> CallFit {
    let Some(matcher) = &entry.result else {
        return CallFit::Yes;
    };
    match answer {
        CallOutcome::Result(payload) => match payload.read() {
            Ok(value) => fit_value(matcher, "result", value),
            Err(why) => CallFit::Maybe(format!("its result {why}")),
        },
        CallOutcome::Error { code, message } => refused(*code, message),
        CallOutcome::None => never_answered(),
    }
}

fn fit_is_error(entry: &ToolMatcher, answer: &CallOutcome) -> CallFit {
    let Some(expected) = entry.is_error else {
        return CallFit::Yes;
    };
    let found = match answer {
        CallOutcome::None => return never_answered(),
        CallOutcome::Error { code, message } if !expected => {
            return refused(*code, message);
        }
        CallOutcome::Error { .. } => return CallFit::Yes,
        CallOutcome::Result(payload) => match payload.read() {
            Err(why) => return CallFit::Maybe(format!("its result {why}")),
            Ok(Some(Value::Object(result))) => match result.get("isError") {
                None => false,
                Some(Value::Bool(is_error)) => *is_error,
                Some(_) => {
                    return CallFit::Maybe("its `isError` is neither true nor false".to_owned());
                }
            },
            Ok(_) => return CallFit::Maybe("its result is not an object".to_owned()),
        },
    };
    match (expected, found) {
        (true, false) => CallFit::no("ended without an error"),
        (false, true) => CallFit::no("ended in an error"),
        (true, true) | (false, false) => CallFit::Yes,
    }
}

fn fit_duration(entry: &ToolMatcher, call: &Call) -> CallFit {
    let Some(limit) = entry.max_duration else {
        return CallFit::Yes;
    };
    match (&call.answer, call.duration) {
        (CallOutcome::None, _) => never_answered(),
        (CallOutcome::Result(_) | CallOutcome::Error { .. }, None) => {
            CallFit::Maybe("its duration was not measured".to_owned())
        }
        (CallOutcome::Result(_) | CallOutcome::Error { .. }, Some(duration))
            if duration > limit =>
        {
            CallFit::no(format!("took {duration:?}, more than {limit:?}"))
        }
        (CallOutcome::Result(_) | CallOutcome::Error { .. }, Some(_)) => CallFit::Yes,
    }
}

fn fit_value(matcher: &Matcher, part: &str, value: Option<&Value>) -> CallFit {
    if matcher.reads_lone_surrogate(value) {
        let why = format!("a text in its {part} is not valid Unicode (half of a surrogate pair)");
        return CallFit::Maybe(why);
    }
    match matcher.evaluate(value) {
        Ok(()) => CallFit::Yes,
        Err(mismatch) => CallFit::No(NearMiss {
            distance: matcher.distance(value).max(1),
            reason: mismatch.under(part).to_string(),
        }),
    }
}

fn refused(code: i64, message: &str) -> CallFit {
    CallFit::no(format!("answered with error {code}: {}", excerpt(message)))
}

fn never_answered() -> CallFit {
    CallFit::no("got no response")
}

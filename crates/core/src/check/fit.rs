//! Whether one call is what one entry asks for.

use serde_json::{Map, Value};

use super::target::ToolMatcher;
use crate::excerpt::excerpt;
use crate::matcher::Matcher;
use crate::transcript::{Answer, Call, Payload, Request, Transcript};

/// A tool call, seen without what is not one.
#[derive(Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub(super) call: &'a Call,
    pub(super) name: &'a str,
    pub(super) arguments: &'a Payload,
}

/// The tool calls of a transcript, in order.
pub(super) fn tool_calls(transcript: &Transcript) -> Vec<ToolCall<'_>> {
    transcript
        .calls
        .iter()
        .filter_map(|call| match &call.request {
            Request::Tool { name, arguments } => Some(ToolCall {
                call,
                name,
                arguments,
            }),
            Request::Resource { .. } | Request::Prompt { .. } => None,
        })
        .collect()
}

/// Three-valued: whether a call is what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    /// Another tool.
    OtherTool,
    /// The right tool in the wrong way.
    No(Miss),
    /// The record does not tell.
    Maybe(String),
}

/// Why a call of the right tool does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Miss {
    /// In how many ways; the least is the nearest.
    pub(super) distance: usize,
    /// The first of them.
    pub(super) reason: String,
}

pub(super) fn fit(entry: &ToolMatcher, tool: ToolCall<'_>) -> Fit {
    if !entry.target.matches(&tool.call.server, tool.name) {
        return Fit::OtherTool;
    }
    [
        fit_arguments(entry, tool.arguments),
        fit_result(entry, &tool.call.answer),
        fit_is_error(entry, &tool.call.answer),
        fit_duration(entry, tool.call),
    ]
    .into_iter()
    .fold(Fit::Yes, Fit::and)
}

impl Fit {
    fn no(reason: impl Into<String>) -> Self {
        Self::No(Miss {
            distance: 1,
            reason: reason.into(),
        })
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No(first), Self::No(second)) => Self::No(Miss {
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

fn fit_arguments(entry: &ToolMatcher, arguments: &Payload) -> Fit {
    let Some(matcher) = &entry.arguments else {
        return Fit::Yes;
    };
    match arguments.read() {
        Ok(None) => fit_value(matcher, "arguments", Some(&Value::Object(Map::default()))),
        Ok(value) => fit_value(matcher, "arguments", value),
        Err(why) => Fit::Maybe(format!("its arguments {why}")),
    }
}

fn fit_result(entry: &ToolMatcher, answer: &Answer) -> Fit {
    let Some(matcher) = &entry.result else {
        return Fit::Yes;
    };
    match answer {
        Answer::Result(payload) => match payload.read() {
            Ok(value) => fit_value(matcher, "result", value),
            Err(why) => Fit::Maybe(format!("its result {why}")),
        },
        Answer::Error { code, message } => refused(*code, message),
        Answer::None => never_answered(),
    }
}

fn fit_is_error(entry: &ToolMatcher, answer: &Answer) -> Fit {
    let Some(expected) = entry.is_error else {
        return Fit::Yes;
    };
    let found = match answer {
        Answer::None => return never_answered(),
        Answer::Error { code, message } if !expected => {
            return refused(*code, message);
        }
        Answer::Error { .. } => return Fit::Yes,
        Answer::Result(payload) => match payload.read() {
            Err(why) => return Fit::Maybe(format!("its result {why}")),
            Ok(Some(Value::Object(result))) => match result.get("isError") {
                None => false,
                Some(Value::Bool(is_error)) => *is_error,
                Some(_) => return Fit::Maybe("its `isError` is neither true nor false".to_owned()),
            },
            Ok(_) => return Fit::Maybe("its result is not an object".to_owned()),
        },
    };
    match (expected, found) {
        (true, false) => Fit::no("ended without an error"),
        (false, true) => Fit::no("ended in an error"),
        (true, true) | (false, false) => Fit::Yes,
    }
}

fn fit_duration(entry: &ToolMatcher, call: &Call) -> Fit {
    let Some(limit) = entry.max_duration else {
        return Fit::Yes;
    };
    match (&call.answer, call.duration) {
        (Answer::None, _) => never_answered(),
        (Answer::Result(_) | Answer::Error { .. }, None) => {
            Fit::Maybe("its duration was not measured".to_owned())
        }
        (Answer::Result(_) | Answer::Error { .. }, Some(duration)) if duration > limit => {
            Fit::no(format!("took {duration:?}, more than {limit:?}"))
        }
        (Answer::Result(_) | Answer::Error { .. }, Some(_)) => Fit::Yes,
    }
}

fn fit_value(matcher: &Matcher, part: &str, value: Option<&Value>) -> Fit {
    if matcher.reads_lone_surrogate(value) {
        let why = format!("a text in its {part} is not valid Unicode (half of a surrogate pair)");
        return Fit::Maybe(why);
    }
    match matcher.evaluate(value) {
        Ok(()) => Fit::Yes,
        Err(mismatch) => Fit::No(Miss {
            distance: matcher.distance(value).max(1),
            reason: mismatch.under(part).to_string(),
        }),
    }
}

fn refused(code: i64, message: &str) -> Fit {
    Fit::no(format!("answered with error {code}: {}", excerpt(message)))
}

fn never_answered() -> Fit {
    Fit::no("was never answered")
}

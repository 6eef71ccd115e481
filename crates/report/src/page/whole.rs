//! The whole of a text that a page shows cut, for a server that can send it.

use proctor_core::event::Body;
use proctor_core::fold::{FoldOptions, TurnReply, fold};
use proctor_core::json;
use proctor_core::record::{RecordError, RunReader};
use proctor_core::transcript::{CallOutcome, CallRequest, Payload};

use super::items::texts;
use super::timeline::EventPlaces;

/// The largest text that is read.
const TEXT_BYTES: usize = 32 * 1024 * 1024;

/// A text of a timeline item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyPart {
    /// The text of a prompt, a model turn or an answer.
    Text,
    /// The arguments of a call, as JSON.
    Arguments,
    /// The text of a result, or of an error.
    ResultText,
    /// The result of a call, as JSON.
    ResultJson,
}

/// A text of a trial, whole; `None` if the record does not hold it. Its SHA-256 is the one on the page.
pub fn whole_body(
    run: &RunReader,
    file: &str,
    seq: u64,
    part: BodyPart,
) -> Result<Option<String>, RecordError> {
    let Some(trial) = run.trial_file(file) else {
        return Ok(None);
    };
    let options = FoldOptions {
        text_bytes: TEXT_BYTES,
        turns: true,
        ..FoldOptions::default()
    };
    let mut places = EventPlaces::default();
    let events = run.trial(&trial)?;
    let events = events.inspect(|event| {
        if let Ok(event) = event {
            places.push(event);
        }
    });
    let folded = fold(events, run.blobs(), &options)?;
    let stored = |place: &Option<(u64, Body)>| -> Option<String> {
        let (_, body) = place.as_ref().filter(|(at, _)| *at == seq)?;
        let bytes = run.body_bytes(body).ok().flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let turn = || {
        let turn = folded.turns.iter().find(|turn| turn.seq == seq)?;
        match &turn.reply {
            TurnReply::Said { text, .. } => (text.left_out == 0).then(|| text.head.clone()),
            TurnReply::Failed { reason, .. } => Some(reason.clone()),
            TurnReply::Unreadable => None,
        }
    };
    let message = || {
        let mut messages = folded.work.messages.iter();
        let message = messages.find(|message| message.seq == seq)?;
        (message.text.left_out == 0).then(|| message.text.head.clone())
    };
    let mut calls = folded.transcript.calls.iter();
    let call = calls.find(|call| call.seq == seq);
    let text = match part {
        BodyPart::Text => stored(&places.prompt)
            .or_else(|| stored(&places.answer))
            .or_else(message)
            .or_else(turn),
        BodyPart::Arguments => call.and_then(|call| arguments(&call.request)),
        BodyPart::ResultText => call.and_then(|call| result_text(&call.answer)),
        BodyPart::ResultJson => call.and_then(|call| match &call.answer {
            CallOutcome::Result(Payload::Value(value)) => Some(value.to_string()),
            CallOutcome::Result(_) | CallOutcome::Error { .. } | CallOutcome::None => None,
        }),
    };
    Ok(text.map(|text| json::spelled(&text).into_owned()))
}

fn arguments(request: &CallRequest) -> Option<String> {
    match request {
        CallRequest::Tool { arguments, .. } | CallRequest::Prompt { arguments, .. } => {
            let value = arguments.read().ok().flatten()?;
            Some(value.to_string())
        }
        CallRequest::Resource { .. } => None,
    }
}

fn result_text(answer: &CallOutcome) -> Option<String> {
    match answer {
        CallOutcome::Result(payload) => {
            let texts = texts(payload.read().ok().flatten()?);
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        CallOutcome::Error { message, .. } => Some(message.clone()),
        CallOutcome::None => None,
    }
}

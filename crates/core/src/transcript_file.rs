//! The transcript of a trial as a JSON file, for scripts and extensions that check it.
//!
//! Its main type is [`TranscriptFile`]. It holds what the record holds, so secrets are redacted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use proctor_record::fold::{FoldedTrial, FurtherMessage, ModelTurn, TurnReply};
use proctor_record::model::Usage;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};

/// The version of the file. It increases if a field changes its meaning or is removed.
const VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Clone)]
pub struct TranscriptFile {
    pub document: Value,
    /// The numbers that a script may name as evidence: those of calls and turns.
    pub evidence: BTreeSet<u64>,
}

impl TranscriptFile {
    /// The transcript of a trial that was folded with its turns.
    pub fn of(folded: &FoldedTrial) -> Self {
        let work = &folded.work;
        let calls = &folded.transcript.calls;
        let text = |text: Option<&proctor_record::fold::ClippedText>| text.map(ToString::to_string);
        let seqs = calls.iter().map(|call| call.seq);
        let turns = folded.turns.iter().map(|turn| turn.seq);
        Self {
            evidence: seqs.chain(turns).collect(),
            document: json!({
                "version": VERSION,
                "prompt": text(work.prompt.as_ref()),
                "messages": work.messages.iter().map(message).collect::<Vec<_>>(),
                "turns": folded.turns.iter().map(turn).collect::<Vec<_>>(),
                "calls": calls.iter().map(call).collect::<Vec<_>>(),
                "answer": text(work.answer.as_ref()),
                "usage": {
                    "turns": work.agent.turns,
                    "tokens": usage(&work.agent.usage),
                    "costUsd": work.agent.cost_usd,
                },
            }),
        }
    }
}

fn message(message: &FurtherMessage) -> Value {
    json!({"seq": message.seq, "turn": message.turn, "text": message.text.to_string()})
}

fn turn(turn: &ModelTurn) -> Value {
    let mut out = json!({"seq": turn.seq});
    match &turn.reply {
        TurnReply::Said {
            text,
            calls,
            usage: used,
        } => {
            out["text"] = text.to_string().into();
            out["calls"] = calls
                .iter()
                .map(|call| json!({"tool": call.tool}))
                .collect();
            out["tokens"] = usage(used);
        }
        TurnReply::Unreadable => out["error"] = "the record does not hold the turn".into(),
        TurnReply::Failed { reason, .. } => out["error"] = reason.as_str().into(),
    }
    out
}

fn usage(usage: &Usage) -> Value {
    serde_json::to_value(usage).unwrap_or_default()
}

fn call(call: &Call) -> Value {
    let (kind, name, arguments) = match &call.request {
        CallRequest::Tool { name, arguments } => ("tool", name, payload(arguments)),
        CallRequest::Resource { uri } => ("resource", uri, Value::Null),
        CallRequest::Prompt { name, arguments } => ("prompt", name, payload(arguments)),
    };
    let mut out = json!({
        "seq": call.seq,
        "server": call.server,
        "kind": kind,
        "name": name,
        "arguments": arguments,
        "durationMs": call.duration.map(|time| time.as_secs_f64() * 1000.0),
    });
    match &call.answer {
        CallOutcome::Result(result) => out["result"] = payload(result),
        CallOutcome::Error { code, message } => {
            out["error"] = json!({"code": code, "message": message});
        }
        CallOutcome::None => out["error"] = json!({"message": "the call has no response"}),
    }
    out
}

/// A part of a message; an object with `unreadable` if the record does not hold it as JSON.
fn payload(part: &Payload) -> Value {
    match part.read() {
        Ok(value) => value.cloned().unwrap_or_default(),
        Err(why) => json!({"unreadable": why.to_string()}),
    }
}

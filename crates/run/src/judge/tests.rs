//! Tests of the judge's prompt, the parsing of its replies, and the count of votes.

mod questions;
mod quotes;
mod replies;
mod votes;

use std::time::Duration;

use proctor_record::model::{Arguments, ModelMessage, Reply, StopReason, ToolCall, Turn, Usage};
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload, UnreadMessage};
use serde_json::{Value, json};

use super::ballot::BallotVerdict;
use super::question::BallotRejection;
use super::*;

const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn boundary() -> Boundary {
    let bytes = data_encoding::HEXLOWER.decode(TOKEN.as_bytes());
    let bytes = bytes.expect("hex").try_into().expect("16 bytes");
    Boundary::from_bytes(bytes)
}

fn exhibits<'a>(answer: &'a str, transcript: Option<&'a Transcript>) -> Exhibits<'a> {
    Exhibits {
        prompt: "How many replicas are there?",
        answer,
        transcript,
        answer_required: true,
    }
}

fn transcript(result: Value) -> Transcript {
    Transcript {
        calls: vec![Call {
            seq: 7,
            server: "k8s".to_owned(),
            request: CallRequest::Tool {
                name: "get".to_owned(),
                arguments: Payload::Value(json!({"name": "web"})),
            },
            answer: CallOutcome::Result(Payload::Value(result)),
            duration: Some(Duration::from_millis(1)),
        }],
        ..Transcript::default()
    }
}

/// The text of the judge's prompt.
fn asked(criterion: &Criterion, exhibits: &Exhibits<'_>) -> String {
    let request = JudgeQuestion::new(criterion, exhibits, boundary(), None).request();
    match &request.messages[..] {
        [ModelMessage::User(text)] => text.clone(),
        other => panic!("one message, not {other:?}"),
    }
}

fn reference() -> Criterion {
    Criterion::Contains("3 replicas".to_owned())
}

fn ballot(choice: BallotVerdict, quotes: &[&str]) -> Ballot {
    Ballot {
        reason: "so".to_owned(),
        quotes: quotes.iter().map(|q| (*q).to_owned()).collect(),
        choice,
    }
}

//! Checks on the calls of one turn of a conversation.

use proctor_record::transcript::Transcript;

use super::{Check, CheckResult};

/// Evaluates a check on the part of the transcript that belongs to one turn. A turn that did not
/// happen passes no check, also none that only forbids something.
pub(super) fn evaluate(turn: u32, check: &Check, transcript: &Transcript) -> CheckResult {
    if !transcript
        .messages
        .iter()
        .any(|message| message.turn == turn)
    {
        let reason = format!("the user sent no message of turn {turn}");
        return CheckResult::fail(reason, Vec::new());
    }
    check.evaluate(&part(turn, transcript))
}

fn part(turn: u32, transcript: &Transcript) -> Transcript {
    let is_within = |seq: u64| {
        let mut before = transcript.messages.iter().rev();
        let latest = before.find(|message| message.seq < seq);
        latest.map_or(1, |message| message.turn) == turn
    };
    let calls = transcript.calls.iter().filter(|call| is_within(call.seq));
    let skills = transcript.skills.as_ref().map(|skills| {
        let skills = skills.iter().filter(|skill| is_within(skill.seq));
        skills.cloned().collect()
    });
    let unread = transcript.unread.iter().filter(|m| is_within(m.seq));
    Transcript {
        calls: calls.cloned().collect(),
        skills,
        unread: unread.cloned().collect(),
        selection: transcript.selection.clone(),
        messages: transcript.messages.clone(),
    }
}

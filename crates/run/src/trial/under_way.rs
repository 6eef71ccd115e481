//! Describes the state of a trial at its timeout.

use proctor_record::event::{Actor, Blame, TrialEnded};
use proctor_record::fold::{FoldOptions, FoldedTrial};
use proctor_record::transcript::{Call, CallOutcome, CallRequest};

use super::Trial;
use super::ending::{errored, timed_out};
use proctor_wire::worker::Large;

impl Trial {
    /// The end of a trial that timed out, with its phase and the calls without an answer. If its
    /// model failed every time, the trial is errored.
    pub(super) async fn timeout_end(&self, limit: &str) -> TrialEnded {
        let options = FoldOptions {
            actors: vec![Actor::Agent, Actor::Loop, Actor::Step],
            payload_bytes: 0,
            results: false,
            text_bytes: 0,
            turns: false,
        };
        let recorder = self.recorder.clone();
        let folding = tokio::task::spawn_blocking(move || recorder.fold(&options));
        let Ok(Ok(Some(folded))) = folding.await else {
            return timed_out(limit);
        };
        let folded = Large::new(folded, self.recorder.bytes());
        let asked = &folded.work.agent;
        if asked.turns == 0 && asked.failures > 0 {
            let failures = asked.failures;
            let reason = format!("{limit}: the model failed {failures} times and never replied");
            return errored(Blame::Infra, reason);
        }
        timed_out(format!("{limit}{}", pending(&folded)))
    }
}

fn pending(folded: &FoldedTrial) -> String {
    let Some(phase) = folded.work.phases.last().map(|span| span.phase) else {
        return String::new();
    };
    let calls = folded.transcript.calls.iter();
    let waiting: Vec<&Call> = calls
        .filter(|call| call.answer == CallOutcome::None)
        .collect();
    match waiting.as_slice() {
        [] => format!(": it was in the {phase} phase"),
        [only] => format!(": waiting for {} in the {phase} phase", name(only)),
        [rest @ .., last] => {
            let (last, more) = (name(last), rest.len());
            format!(": waiting for {last} and {more} more in the {phase} phase")
        }
    }
}

fn name(call: &Call) -> String {
    match &call.request {
        CallRequest::Tool { name, .. } | CallRequest::Prompt { name, .. } => {
            format!("`{}.{name}`", call.server)
        }
        CallRequest::Resource { uri } => format!("`{uri}` of `{}`", call.server),
    }
}

//! What a trial was about when its time was over.

use proctor_core::event::{Actor, Blame, TrialEnded};
use proctor_core::fold::{FoldOptions, FoldedTrial};
use proctor_core::transcript::{Call, CallOutcome, CallRequest};

use super::Trial;
use super::ending::{errored, timed_out};

impl Trial {
    /// The end of a trial whose time is over: in which phase it is, and which calls wait for their
    /// answers. If its model failed every time that it was asked, the agent had no chance.
    pub(super) async fn out_of_time(&self, limit: &str) -> TrialEnded {
        let options = FoldOptions {
            actors: vec![Actor::Agent, Actor::Loop, Actor::Step],
            payload_bytes: 0,
            text_bytes: 0,
            turns: false,
        };
        let recorder = self.recorder.clone();
        let folding = tokio::task::spawn_blocking(move || recorder.fold(&options));
        let Ok(Ok(Some(folded))) = folding.await else {
            return timed_out(limit);
        };
        let asked = &folded.work.agent;
        if asked.turns == 0 && asked.failures > 0 {
            let failures = asked.failures;
            let reason = format!("{limit}: the model gave no reply, and failed {failures} times");
            return errored(Blame::Infra, reason);
        }
        timed_out(format!("{limit}{}", told(&folded)))
    }
}

fn told(folded: &FoldedTrial) -> String {
    let Some(phase) = folded.work.phases.last().map(|span| span.phase) else {
        return String::new();
    };
    let calls = folded.transcript.calls.iter();
    let waiting: Vec<&Call> = calls
        .filter(|call| call.answer == CallOutcome::None)
        .collect();
    match waiting.as_slice() {
        [] => format!(": it was in the {phase} phase"),
        [only] => format!(": {} had not answered, {phase} phase", name(only)),
        [rest @ .., last] => {
            let (last, more) = (name(last), rest.len());
            format!(": {last} and {more} more had not answered, {phase} phase")
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

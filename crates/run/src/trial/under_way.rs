//! What a trial was about when its time was over.

use proctor_core::event::Actor;
use proctor_core::fold::{FoldOptions, Folded};
use proctor_core::transcript::{Answer, Call, Request};

use super::Trial;

impl Trial {
    /// In which phase the trial is, and which calls wait for their answers: what follows "did not end
    /// within 4s". Nothing, if the record can't be read.
    pub(super) async fn under_way(&self) -> String {
        let options = FoldOptions {
            actors: vec![Actor::Agent, Actor::Loop, Actor::Step],
            payload_bytes: 0,
            text_bytes: 0,
        };
        let recorder = self.recorder.clone();
        let folding = tokio::task::spawn_blocking(move || recorder.fold(&options));
        match folding.await {
            Ok(Ok(Some(folded))) => told(&folded),
            _ => String::new(),
        }
    }
}

fn told(folded: &Folded) -> String {
    let Some(phase) = folded.work.phases.last().map(|span| span.phase) else {
        return String::new();
    };
    let calls = folded.transcript.calls.iter();
    let waiting: Vec<&Call> = calls.filter(|call| call.answer == Answer::None).collect();
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
        Request::Tool { name, .. } | Request::Prompt { name, .. } => {
            format!("`{}.{name}`", call.server)
        }
        Request::Resource { uri } => format!("`{uri}` of `{}`", call.server),
    }
}

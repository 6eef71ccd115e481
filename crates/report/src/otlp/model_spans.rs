//! The spans of model requests, of the agent and of judges.

use std::collections::BTreeMap;

use proctor_record::event::{Event, EventKind, ModelAsked, ModelReplied, Purpose};
use proctor_record::model::StopReason;

use super::attributes::Attributes;
use super::spans::{CLIENT, Span, model_name, usage};

/// The model requests of a trial, as far as their events are known.
#[derive(Default)]
pub(super) struct ModelSpans {
    open: BTreeMap<u64, OpenRequest>,
    done: Vec<Span>,
}

/// A request without a reply so far.
struct OpenRequest {
    seq: u64,
    at: u64,
    asked: ModelAsked,
    failure: Option<String>,
}

impl ModelSpans {
    pub(super) fn push(&mut self, event: &Event) {
        if let EventKind::ModelAsked(asked) = &event.event {
            let request = OpenRequest {
                seq: event.seq,
                at: event.at,
                asked: asked.clone(),
                failure: None,
            };
            self.open.insert(asked.ask, request);
        } else if let EventKind::ModelFailed(failed) = &event.event
            && let Some(request) = self.open.get_mut(&failed.ask)
        {
            request.failure = Some(failed.reason.clone());
        } else if let EventKind::ModelReplied(replied) = &event.event
            && let Some(request) = self.open.remove(&replied.ask)
        {
            self.done.push(request.span(event.at, Some(replied)));
        }
    }

    /// All spans. Requests without a reply last until the trial's end.
    pub(super) fn into_spans(self, end: u64) -> Vec<Span> {
        let mut spans = self.done;
        let open = self.open.into_values();
        spans.extend(open.map(|request| request.span(end, None)));
        spans
    }
}

impl OpenRequest {
    fn span(self, to: u64, replied: Option<&ModelReplied>) -> Span {
        let mut all = Attributes::default();
        all.text("gen_ai.operation.name", "chat");
        model_name(&mut all, &self.asked.model);
        let purpose = match self.asked.purpose {
            Purpose::Agent => "agent",
            Purpose::Side => "side",
            Purpose::Judge => "judge",
            Purpose::Sampling => "sampling",
            Purpose::User => "user",
        };
        all.text("proctor.purpose", purpose);
        let mut error = None;
        if let Some(replied) = replied {
            usage(&mut all, &replied.usage);
            let reason = finish_reason(&replied.stop);
            all.list("gen_ai.response.finish_reasons", &[reason]);
        } else {
            all.text("error.type", "no_reply");
            error = Some(self.failure.unwrap_or_else(|| "no reply".to_owned()));
        }
        let model = &self.asked.model;
        let id = model.split_once(':').map_or(model.as_str(), |(_, id)| id);
        Span {
            seq: self.seq,
            name: format!("chat {id}"),
            kind: CLIENT,
            from: self.at,
            to,
            attributes: all,
            events: Vec::new(),
            error,
        }
    }
}

fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::Done => "stop",
        StopReason::Calls => "tool_call",
        StopReason::Length => "length",
        StopReason::Refusal => "content_filter",
        StopReason::Other(word) => word,
    }
}

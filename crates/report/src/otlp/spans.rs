//! The spans of a trial: its agent, and the MCP requests that the agent made.

use std::collections::HashMap;

use proctor_core::provider::Provider;
use proctor_core::summary::{AgentTrials, CaseSummary, TrialResult, TrialSummary};
use proctor_record::event::{CheckEvaluated, Event, EventKind, Outcome, WireKind};
use proctor_record::fold::{FoldedTrial, ModelActivity};
use proctor_record::json;
use proctor_record::model::Usage;
use proctor_record::record::TrialFile;
use proctor_record::transcript::{Call, CallKind, CallOutcome, CallRequest};
use proctor_record::verdict::Verdict;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::attributes::Attributes;
use super::model_spans::ModelSpans;
use super::{Clock, Ids};
use crate::{Report, ReportError, words};

/// The kinds of spans.
pub(super) const INTERNAL: u8 = 1;
pub(super) const CLIENT: u8 = 3;

/// A trial whose trace is written.
pub(super) struct TrialTrace<'a> {
    pub(super) report: &'a Report<'a>,
    pub(super) case: &'a CaseSummary,
    pub(super) agent: &'a AgentTrials,
    pub(super) trial: &'a TrialSummary,
    pub(super) result: &'a TrialResult,
    pub(super) folded: &'a FoldedTrial,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
}

/// A span before it is written.
pub(super) struct Span {
    /// The number of the event that begins it; zero for the trial itself.
    pub(super) seq: u64,
    pub(super) name: String,
    pub(super) kind: u8,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) attributes: Attributes,
    pub(super) events: Vec<Value>,
    /// The reason, if the operation failed.
    pub(super) error: Option<String>,
}

impl TrialTrace<'_> {
    /// All spans of the trial, its own first.
    pub(super) fn spans(&self, file: &TrialFile) -> Result<Vec<Value>, ReportError> {
        let mut models = ModelSpans::default();
        let mut checks = Vec::new();
        let calls = self.folded.transcript.calls.iter();
        let mut requests: HashMap<u64, Option<String>> =
            calls.map(|call| (call.seq, None)).collect();
        for event in self.report.run.trial(file)? {
            let event = event?;
            models.push(&event);
            if let EventKind::Graded(check) = &event.event {
                checks.push(self.check(event.at, check));
            } else if let Some(id) = requests.get_mut(&event.seq) {
                *id = self.request_id(&event)?;
            }
        }
        let mut spans = vec![self.whole(checks)];
        spans.extend(models.into_spans(self.end()));
        let calls = self.folded.transcript.calls.iter();
        for (call, at) in calls.zip(&self.folded.made_at) {
            let id = requests.remove(&call.seq).flatten();
            spans.push(self.call(call, *at, id.as_deref()));
        }
        Ok(spans.into_iter().map(|span| self.value(span)).collect())
    }

    fn end(&self) -> u64 {
        let micros = self.folded.work.duration.as_micros();
        let length = u64::try_from(micros).unwrap_or(u64::MAX);
        self.folded.work.began_at.saturating_add(length)
    }

    fn value(&self, span: Span) -> Value {
        let parent = match span.seq {
            0 => String::new(),
            _ => self.ids.span(0),
        };
        let status = match &span.error {
            Some(reason) => json!({ "code": 2, "message": reason }),
            None => json!({}),
        };
        json!({
            "traceId": self.ids.trace,
            "spanId": self.ids.span(span.seq),
            "parentSpanId": parent,
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": self.clock.nanos(span.from),
            "endTimeUnixNano": self.clock.nanos(span.to.max(span.from)),
            "attributes": span.attributes.into_value(),
            "events": span.events,
            "status": status,
        })
    }

    /// The span of the agent, which is that of the whole trial.
    fn whole(&self, events: Vec<Value>) -> Span {
        let (summary, work) = (self.report.summary, &self.folded.work);
        let mut all = Attributes::default();
        all.text("gen_ai.operation.name", "invoke_agent");
        all.text("gen_ai.agent.name", &self.agent.agent);
        let planned = summary.plan.agents.iter();
        let mut planned = planned.filter(|planned| planned.name == self.agent.agent);
        let model = planned.next().and_then(|agent| agent.model.as_deref());
        if let Some(model) = model.or(only_model(&work.agent)) {
            model_name(&mut all, model);
        }
        usage(&mut all, &work.agent.usage);
        all.text("test.suite.name", &summary.started.name);
        all.text("test.case.name", &self.case.case.name);
        all.optional("test.case.result.status", status(self.result.outcome));
        all.text("proctor.case.id", &self.case.case.id);
        all.integer("proctor.trial", self.trial.repeat);
        all.integer("proctor.attempt", self.result.attempt);
        all.text("proctor.outcome", words::outcome(Some(self.result.outcome)));
        all.optional("proctor.blame", self.result.blame.map(words::blame));
        if let Some(cost) = work.agent.cost_usd.filter(|_| work.agent.turns > 0) {
            all.double("proctor.cost_usd", cost);
        }
        let error = (self.result.outcome != Outcome::Passed).then(|| {
            let outcome = words::outcome(Some(self.result.outcome));
            all.text("error.type", outcome);
            self.result
                .reason
                .clone()
                .unwrap_or_else(|| outcome.to_owned())
        });
        Span {
            seq: 0,
            name: format!("invoke_agent {}", self.agent.agent),
            kind: INTERNAL,
            from: work.began_at,
            to: self.end(),
            attributes: all,
            events,
            error,
        }
    }

    /// The event of a check.
    fn check(&self, at: u64, check: &CheckEvaluated) -> Value {
        let mut all = Attributes::default();
        all.text("gen_ai.evaluation.name", &check.check);
        let (label, score, reason) = match &check.verdict {
            Verdict::Pass => ("pass", Some(1.0), None),
            Verdict::Fail { reason } => ("fail", Some(0.0), Some(reason)),
            Verdict::Unknown { reason } => ("unknown", None, Some(reason)),
        };
        all.text("gen_ai.evaluation.score.label", label);
        if let Some(score) = score {
            all.double("gen_ai.evaluation.score.value", score);
        } else {
            all.text("error.type", "unknown");
        }
        all.optional("gen_ai.evaluation.explanation", reason.map(String::as_str));
        json!({
            "timeUnixNano": self.clock.nanos(at),
            "name": "gen_ai.evaluation.result",
            "attributes": all.into_value(),
        })
    }

    fn call(&self, call: &Call, at: u64, id: Option<&str>) -> Span {
        let mut all = Attributes::default();
        let (kind, target) = match &call.request {
            CallRequest::Tool { name, .. } => {
                all.text("gen_ai.operation.name", "execute_tool");
                all.text("gen_ai.tool.name", name);
                (CallKind::Tool, Some(name))
            }
            CallRequest::Prompt { name, .. } => {
                all.text("gen_ai.prompt.name", name);
                (CallKind::Prompt, Some(name))
            }
            CallRequest::Resource { uri } => {
                all.text("mcp.resource.uri", uri);
                (CallKind::Resource, None)
            }
        };
        all.text("mcp.method.name", kind.method());
        all.optional("jsonrpc.request.id", id);
        self.connection(&mut all, &call.server);
        let error = error(call);
        if let Some((kind, code, _)) = &error {
            all.text("error.type", kind);
            all.optional("rpc.response.status_code", code.as_deref());
        }
        let took = call.duration.map_or(0, |took| took.as_micros());
        Span {
            seq: call.seq,
            name: match target {
                Some(target) => format!("{} {target}", kind.method()),
                // The name of a span has few values; URIs have many.
                None => kind.method().to_owned(),
            },
            kind: CLIENT,
            from: at,
            to: at.saturating_add(u64::try_from(took).unwrap_or(0)),
            attributes: all,
            events: Vec::new(),
            error: error.map(|(_, _, reason)| reason),
        }
    }

    fn connection(&self, all: &mut Attributes, server: &str) {
        let summary = self.report.summary;
        all.text("proctor.server", server);
        let mut seen = summary.servers.iter().filter(|seen| seen.server == server);
        let protocol = seen.next().map(|seen| seen.protocol.as_str());
        all.optional("mcp.protocol.version", protocol.filter(|p| !p.is_empty()));
        match summary.transports.get(server) {
            Some(WireKind::Stdio) => all.text("network.transport", "pipe"),
            Some(WireKind::Http | WireKind::Sse) => {
                all.text("network.transport", "tcp");
                all.text("network.protocol.name", "http");
            }
            Some(WireKind::Unknown) | None => {}
        }
    }

    /// The id of a JSON-RPC request. A message that is not a single request has none.
    fn request_id(&self, event: &Event) -> Result<Option<String>, ReportError> {
        #[derive(Deserialize)]
        struct Request {
            id: Box<RawValue>,
        }
        let EventKind::Frame(frame) = &event.event else {
            return Ok(None);
        };
        let Some(bytes) = self.report.run.body_bytes(&frame.body)? else {
            return Ok(None);
        };
        let id = json::from_slice::<Request>(&bytes).ok();
        Ok(id.map(|request| match json::from_str(request.id.get()) {
            Ok(Value::String(text)) => text,
            _ => request.id.get().to_owned(),
        }))
    }
}

/// The type, code and message of a failed call.
fn error(call: &Call) -> Option<(String, Option<String>, String)> {
    match &call.answer {
        CallOutcome::Error { code, message } => {
            Some((code.to_string(), Some(code.to_string()), message.clone()))
        }
        CallOutcome::None => {
            let reason = "no response".to_owned();
            Some(("no_response".to_owned(), None, reason))
        }
        CallOutcome::Result(payload) => {
            let value = payload.read().ok().flatten()?;
            let is_error = value["isError"].as_bool() == Some(true);
            let reason = "the tool returned an error".to_owned();
            is_error.then(|| ("tool_error".to_owned(), None, reason))
        }
    }
}

/// The convention has two words; a trial without a verdict has none.
fn status(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Passed => Some("pass"),
        Outcome::Failed | Outcome::TimedOut => Some("fail"),
        Outcome::Errored | Outcome::Cancelled => None,
    }
}

/// The model of an agent that used exactly one.
fn only_model(activity: &ModelActivity) -> Option<&str> {
    match activity.models.len() {
        1 => activity.models.first().map(String::as_str),
        _ => None,
    }
}

/// The provider and the model of a `provider:id`.
pub(super) fn model_name(all: &mut Attributes, model: &str) {
    let (provider, id) = match model.split_once(':') {
        Some((word, id)) => (Provider::parse(word), id),
        None => (None, model),
    };
    if let Some(provider) = provider {
        let name = match provider.vendor() {
            Some("google") => "gcp.gemini",
            Some(vendor) => vendor,
            None => provider.name(),
        };
        all.text("gen_ai.provider.name", name);
    }
    let id = if provider.is_some() { id } else { model };
    all.text("gen_ai.request.model", id);
}

pub(super) fn usage(all: &mut Attributes, usage: &Usage) {
    all.count("gen_ai.usage.input_tokens", usage.input);
    all.count("gen_ai.usage.output_tokens", usage.output);
    all.count("gen_ai.usage.cache_read.input_tokens", usage.cached);
    all.count(
        "gen_ai.usage.cache_creation.input_tokens",
        usage.cache_written,
    );
    all.count("gen_ai.usage.reasoning.output_tokens", usage.reasoning);
}

//! Turns a request into the response on the wire.
//!
//! The main type is [`ReplyBuilder`].

use std::convert::Infallible;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use proctor_core::script::{ProviderFault, Script, ToolNaming, input_tokens};
use proctor_record::json;
use proctor_record::model::{ModelMessage, Reply, StopReason, Turn, Usage};
use serde_json::Value;

use super::fault::{fail, fault_text};
use super::metadata::{LoggedResponse, refuse, served};
use super::route::{CompletionRoute, StreamFraming};
use super::sample::sample;
use super::visible::visible_part;
use super::{MODEL, ModelExchange, ServedReply, ServedRequest};
use crate::wire::{self, Envelope, ParsedModelRequest, is_side_call};
use proctor_wire::web::{OutgoingResponse, whole};

/// The reply to a side call that no rule matches.
const HARMLESS: &str = "scripted";

/// A response under construction.
pub(super) struct ReplyBuilder<'a> {
    pub(super) script: &'a Script,
    /// The id of the reply.
    pub(super) id: String,
}

impl ReplyBuilder<'_> {
    /// Answers with the script.
    pub(super) async fn ask(&self, ask: &CompletionRoute, body: &Value) -> LoggedResponse {
        let mut question = match wire::question(ask.format, body) {
            Ok(question) => question,
            Err(why) => return refuse(served(ask.format), why.to_string()),
        };
        question.stream |= ask.stream.is_some();
        if let Some(model) = &ask.model {
            question.model.clone_from(model);
        }
        let mut told = ServedRequest {
            results: results(&question),
            is_side_call: is_side_call(&question.request),
            ..served(ask.format)
        };
        let mut exchange = Box::new(ModelExchange {
            request: question.request.clone(),
            reply: None,
        });
        let replied = self.reply(&question).await;
        exchange.reply = replied.as_ref().ok().cloned();
        told.exchange = Some(exchange);
        let answer = match replied {
            Ok(reply) => {
                told.said = said(&reply);
                told.usage = reply.usage;
                Some(self.render(ask, &question, &reply))
            }
            Err(ReplyFailure::Fault(fault)) => {
                told.said = ServedReply::Fault(fault_text(&fault));
                fail(ask.format, fault)
            }
            Err(ReplyFailure::Script(why)) => return refuse(told, why),
        };
        (answer, told)
    }

    /// The script's reply, or a harmless one for a side call that no rule matches.
    async fn reply(&self, question: &ParsedModelRequest) -> Result<Reply, ReplyFailure> {
        let request = visible_part(&question.request);
        let is_side_call = is_side_call(&request);
        let scripted = match self.script.reply_among(&request, ToolNaming::OfAgent) {
            Ok(scripted) => scripted,
            Err(_) if is_side_call => return Ok(harmless(question)),
            Err(error) => {
                let path = self.script.path().display();
                return Err(ReplyFailure::Script(format!(
                    "the script has no reply: {path}: {error}"
                )));
            }
        };
        if !scripted.delay.is_zero() {
            tokio::time::sleep(scripted.delay).await;
        }
        let reply = scripted.answer.map_err(ReplyFailure::Fault)?;
        // A side call for a title offers no tools, so the reply can't be a call; a request for JSON
        // needs JSON.
        let is_json = || json::from_str::<Value>(&reply.turn.text).is_ok();
        let fits = reply.turn.calls.is_empty() && (question.wants_json.is_none() || is_json());
        Ok(if is_side_call && !fits {
            harmless(question)
        } else {
            reply
        })
    }

    fn render(
        &self,
        ask: &CompletionRoute,
        question: &ParsedModelRequest,
        reply: &Reply,
    ) -> OutgoingResponse {
        let envelope = Envelope {
            id: &self.id,
            model: if question.model.is_empty() {
                MODEL
            } else {
                &question.model
            },
            created: Timestamp::now().as_second(),
            question,
        };
        if !question.stream {
            let body = wire::render(ask.format, reply, &envelope).to_string();
            return whole(StatusCode::OK, "application/json", body);
        }
        let events = wire::render_stream(ask.format, reply, &envelope);
        if ask.stream == Some(StreamFraming::List) {
            let data = |event: &String| event.trim().trim_start_matches("data: ").to_owned();
            let list: Vec<String> = events.iter().map(data).collect();
            let list = format!("[{}]", list.join(",\r\n"));
            return whole(StatusCode::OK, "application/json", list);
        }
        stream(&events)
    }
}

/// Why there is no reply.
enum ReplyFailure {
    Fault(ProviderFault),
    Script(String),
}

fn results(question: &ParsedModelRequest) -> usize {
    let count = |message: &ModelMessage| match message {
        ModelMessage::Results(results) => results.len(),
        _ => 0,
    };
    question.request.messages.iter().map(count).sum()
}

fn said(reply: &Reply) -> ServedReply {
    if reply.turn.calls.is_empty() {
        return ServedReply::Text(reply.turn.text.clone());
    }
    let names = reply.turn.calls.iter().map(|call| call.name.clone());
    ServedReply::Calls(names.collect())
}

/// A harmless reply to a side call.
fn harmless(question: &ParsedModelRequest) -> Reply {
    let text = match &question.wants_json {
        Some(schema) => sample(schema).to_string(),
        None => HARMLESS.to_owned(),
    };
    Reply {
        usage: Usage {
            input: Some(input_tokens(&question.request)),
            output: Some((text.len() as u64).div_ceil(4)),
            ..Usage::default()
        },
        turn: Turn {
            text,
            ..Turn::default()
        },
        stop: StopReason::Done,
        raw: None,
    }
}

/// An event stream of these events.
fn stream(events: &[String]) -> OutgoingResponse {
    let text: String = events.concat();
    let body = Full::new(text.into()).map_err(|never: Infallible| match never {});
    let mut response = http::Response::new(body.boxed_unsync());
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

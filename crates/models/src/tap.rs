//! The model tap: what an external agent asks its model goes through here, on loopback.
//!
//! Its main type is [`ModelTap`]. The agent's key is the tap's token; the real one is put in on the
//! way, and is nowhere else. Questions and replies pass byte for byte. What they took is counted and
//! kept; limits are kept here, and a provider that is not there ends the trial instead of a long wait.

mod ending;
mod listening;
mod provider;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt, Full, Limited};
use proctor_core::event::{Body as Kept, EventKind, ModelFailed, Purpose};
use proctor_core::model::ModelRequest as Question;
use proctor_core::replay::{RecordedReply, outline};
use serde_json::Value;

pub use self::ending::TapEnd;
use self::ending::TapLimits;
use self::listening::TappedBody;
pub use self::provider::TapProvider;
use super::replay::Replay;
use super::serve::{ApiRoute, CompletionRoute, refusal};
use super::wire::{self, Envelope, ErrorKind, WireFormat, is_side_call};
use super::{Meter, ModelError, ModelTimeouts, RetryWait, failure};
use crate::LoopLimits;
use proctor_wire::proxy::door::refuse_page;
use proctor_wire::proxy::{AccessToken, Upstream, passed};
use proctor_wire::recorder::Recorder;
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::web::{
    ConnectionAbort, IncomingRequest, OutgoingResponse, ResponseBody, Web, whole,
};
use proctor_wire::worker;

/// The headers in which agents send keys.
const KEYS: [HeaderName; 3] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// How much of what a provider says of an error is shown.
const SHOWN: usize = 500;

/// What a tap needs to know.
pub struct TapOptions {
    /// Who is asked; nobody, where all is replayed.
    pub provider: Option<TapProvider>,
    /// The model as prices and records call it, where it is known beforehand.
    pub name: String,
    /// What the trial may take.
    pub limits: LoopLimits,
    /// What the run may.
    pub meter: Arc<Meter>,
    /// How long an answer is waited for.
    pub timeouts: ModelTimeouts,
    /// The time that the trial spends waiting for its turn.
    pub waiting: RetryWait,
    /// Where it is kept.
    pub recorder: Recorder,
    /// What is heard again instead of asking.
    pub replay: Option<Replay>,
}

/// A tap that is open until this is dropped.
pub struct ModelTap {
    web: Web,
    token: AccessToken,
    inside: Arc<TapState>,
}

struct TapState {
    token: AccessToken,
    upstream: Option<(Upstream, TapProvider)>,
    name: String,
    /// The longest silence of a provider that has a question to answer.
    silence: Duration,
    recorder: Recorder,
    replay: Option<Replay>,
    standing: TapLimits,
}

impl ModelTap {
    /// Opens a tap. Must be called within a tokio runtime.
    pub async fn start(options: TapOptions) -> io::Result<Self> {
        let none = || io::Error::other("the system has no random numbers");
        let token = AccessToken::random().ok_or_else(none)?;
        let upstream = match options.provider {
            Some(provider) => Some((provider.upstream().map_err(io::Error::other)?, provider)),
            None => None,
        };
        let inside = Arc::new(TapState {
            token: token.clone(),
            upstream,
            name: options.name,
            recorder: options.recorder,
            replay: options.replay,
            silence: options.timeouts.first_byte,
            standing: TapLimits::new(options.limits, options.meter, options.waiting),
        });
        let serving = inside.clone();
        let web = Web::start(0, move |request| {
            let inside = serving.clone();
            async move { inside.serve(request).await }
        })
        .await?;
        Ok(Self { web, token, inside })
    }

    /// The scheme, host and port.
    pub fn base(&self) -> String {
        format!("http://{}", self.web.address())
    }

    /// The key that opens the tap, and nothing else.
    pub fn key(&self) -> &str {
        self.token.reveal()
    }

    /// Waits until the tap has a reason to end the trial.
    pub async fn ended(&self) -> TapEnd {
        self.inside.standing.ended().await
    }

    /// Why the agent's last question for the task has no reply, if it has none: what it says then may be
    /// anything, but is no answer of its model's.
    pub fn unanswered(&self) -> Option<ModelError> {
        self.inside.standing.unanswered()
    }

    /// Whether any question had a reply.
    pub fn has_replies(&self) -> bool {
        self.inside.standing.has_replies()
    }

    /// How often the agent asked its model for the task.
    #[cfg(test)]
    fn turns(&self) -> u32 {
        self.inside.standing.turns()
    }
}

impl TapState {
    async fn serve(
        self: Arc<Self>,
        request: IncomingRequest,
    ) -> Result<OutgoingResponse, ConnectionAbort> {
        if let Some(refused) = refuse_page(&request) {
            return Ok(refused);
        }
        let route = ApiRoute::of(request.method(), request.uri());
        let format = route.format();
        if !self.admits(&request) {
            let why = "this key does not open Proctor's model tap";
            return Ok(refusal(format, ErrorKind::Key, why));
        }
        if let Some(end) = self.standing.is_over() {
            return Ok(refusal(format, ErrorKind::Invalid, &end.to_string()));
        }
        match route {
            ApiRoute::Ask(ask) => self.ask(&ask, request).await,
            ApiRoute::Unknown(_) => {
                let why = format!(
                    "`{} {}` is not passed on",
                    request.method(),
                    request.uri().path()
                );
                Ok(refusal(format, ErrorKind::NotFound, &why))
            }
            about => self.pass(&about, request).await,
        }
    }

    /// Whether a request carries the token, where keys are carried.
    fn admits(&self, request: &IncomingRequest) -> bool {
        let carried = KEYS
            .into_iter()
            .filter_map(|name| request.headers().get(name));
        let mut carried = carried.map(|value| {
            let value = value.as_bytes();
            value.strip_prefix(b"Bearer ").unwrap_or(value)
        });
        let query = request.uri().query().unwrap_or_default();
        let mut named = query
            .split('&')
            .filter_map(|pair| pair.strip_prefix("key="));
        carried.any(|key| self.token.is(key)) || named.any(|key| self.token.is(key.as_bytes()))
    }

    /// Passes on what is no question: the list of models, a count of tokens.
    async fn pass(
        &self,
        route: &ApiRoute,
        request: IncomingRequest,
    ) -> Result<OutgoingResponse, ConnectionAbort> {
        let Some((upstream, provider)) = &self.upstream else {
            let why = "nothing but questions can be replayed";
            return Ok(refusal(route.format(), ErrorKind::NotFound, why));
        };
        let Some(path) = provider.path(route, request.uri().query()) else {
            if *route != ApiRoute::Greeting {
                let why = "the model tap does not pass this on";
                return Ok(refusal(route.format(), ErrorKind::NotFound, why));
            }
            return Ok(whole(
                http::StatusCode::OK,
                "text/plain",
                "Proctor's model tap\n",
            ));
        };
        let mut request = request.map(passed);
        without_keys(request.headers_mut());
        let sent = upstream.send(request, &path).await;
        let response = sent.map_err(|error| ConnectionAbort(error.to_string()))?;
        if response.status().is_success() {
            return Ok(response.map(passed));
        }
        let (head, body) = response.into_parts();
        let said = Limited::new(body, MAX_MESSAGE).collect().await;
        let said = said
            .map_err(|error| ConnectionAbort(error.to_string()))?
            .to_bytes();
        Ok(without_length(head, provider.without_key(said)))
    }

    async fn ask(
        self: &Arc<Self>,
        ask: &CompletionRoute,
        request: IncomingRequest,
    ) -> Result<OutgoingResponse, ConnectionAbort> {
        let (mut head, body) = request.into_parts();
        let body = match Limited::new(body, MAX_MESSAGE).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                let why = format!("the question can't be read: {error}");
                return Ok(refusal(ask.format, ErrorKind::Invalid, &why));
            }
        };
        // What is not understood is passed on all the same: its agent may know better.
        let question = worker::on_body(body.len(), || {
            let read = serde_json::from_slice::<Value>(&body).ok()?;
            wire::question(ask.format, &read).ok()
        });
        let mut question = question.unwrap_or_default();
        question.stream |= ask.stream.is_some();
        let purpose = if is_side_call(&question.request) {
            Purpose::Side
        } else {
            Purpose::Agent
        };
        if let Some(end) = self.standing.begin(purpose) {
            return Ok(refusal(ask.format, ErrorKind::Invalid, &end.to_string()));
        }
        let asked = worker::on_body(body.len(), || self.record(ask, purpose, &question));
        if let Some(replay) = &self.replay {
            return Ok(worker::on_body(body.len(), || {
                let (request, recorder) = (&question.request, &self.recorder);
                let digest = outline(request);
                let take = replay.next(asked.ask, purpose, request, &digest, recorder);
                self.hear(ask, &question, &asked, take)
            }));
        }
        let Some((upstream, provider)) = &self.upstream else {
            return Err(ConnectionAbort("there is no provider".to_owned()));
        };
        let route = ApiRoute::Ask(ask.clone());
        let path = provider.path(&route, head.uri.query()).unwrap_or_default();
        without_keys(&mut head.headers);
        let sent: ResponseBody = Full::new(body)
            .map_err(|never| match never {})
            .boxed_unsync();
        let sent = upstream.send(http::Request::from_parts(head, sent), &path);
        let error = match tokio::time::timeout(self.silence, sent).await {
            Ok(Ok(response)) => return self.answered(response, asked).await,
            Ok(Err(error)) => ModelError::Unavailable {
                retry_after: None,
                detail: error.to_string(),
            },
            Err(_) => ModelError::TimedOut {
                after: self.silence,
            },
        };
        self.failed(&asked, &error);
        // As if the agent had asked there itself.
        Err(ConnectionAbort(error.to_string()))
    }

    /// Writes a question, and gives what its reply needs.
    fn record(
        self: &Arc<Self>,
        ask: &CompletionRoute,
        purpose: Purpose,
        question: &wire::ParsedModelRequest,
    ) -> PendingModelRequest {
        let model = match ask.model.as_deref().unwrap_or(&question.model) {
            _ if proctor_core::provider::Provider::Scripted.serves(&self.name) => self.name.clone(),
            "" => self.name.clone(),
            asked => {
                let provider = self
                    .name
                    .split_once(':')
                    .map_or("", |(provider, _)| provider);
                format!("{provider}:{asked}")
            }
        };
        let digest = outline(&question.request);
        let number = self
            .recorder
            .record_ask(|asks| asks.next(purpose, &model, &question.request, &digest));
        PendingModelRequest {
            ask: number,
            purpose,
            model,
            format: ask.format,
            request: question.request.clone(),
            inside: self.clone(),
        }
    }

    /// Passes a provider's answer on.
    async fn answered(
        &self,
        response: http::Response<hyper::body::Incoming>,
        asked: PendingModelRequest,
    ) -> Result<OutgoingResponse, ConnectionAbort> {
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            let is_stream = head
                .headers
                .get(CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
            let body = TappedBody::new(body, asked, is_stream).boxed_unsync();
            return Ok(http::Response::from_parts(head, body));
        }
        let said = Limited::new(body, MAX_MESSAGE).collect();
        let said = match tokio::time::timeout(self.silence, said).await {
            Ok(Ok(said)) => said.to_bytes(),
            Ok(Err(error)) => {
                let detail = format!("it broke off: {error}");
                let error = ModelError::Unavailable {
                    retry_after: None,
                    detail: detail.clone(),
                };
                self.failed(&asked, &error);
                return Err(ConnectionAbort(detail));
            }
            Err(_) => return Err(ConnectionAbort(asked.fell_silent())),
        };
        let redactor = &self.recorder;
        let shown = |text: &str| redactor.shown(text.as_bytes(), SHOWN);
        let error = failure::of_status(head.status, &head.headers, &said, shown);
        self.failed(&asked, &error);
        let told = match &self.upstream {
            Some((_, provider)) => provider.without_key(said),
            None => said,
        };
        Ok(without_length(head, told))
    }

    /// Says again what was said when the run was recorded.
    fn hear(
        &self,
        ask: &CompletionRoute,
        question: &wire::ParsedModelRequest,
        asked: &PendingModelRequest,
        heard: Result<RecordedReply, ModelError>,
    ) -> OutgoingResponse {
        let take = match heard {
            Ok(take) => take,
            Err(error) => {
                self.failed(asked, &error);
                return refusal(ask.format, ErrorKind::Invalid, &error.to_string());
            }
        };
        let is_stream = |raw: &[u8]| raw.starts_with(b"event:") || raw.starts_with(b"data:");
        let raw = take
            .raw
            .clone()
            .filter(|raw| is_stream(raw) == question.stream);
        let reply = super::replay::reply(take);
        let body = raw.unwrap_or_else(|| rendered(ask.format, question, asked, &reply));
        let kind = if question.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        asked.replied(&reply, Some(&body));
        whole(http::StatusCode::OK, kind, body)
    }

    fn failed(&self, asked: &PendingModelRequest, error: &ModelError) {
        self.recorder.record(EventKind::ModelFailed(ModelFailed {
            ask: asked.ask,
            attempt: 1,
            reason: error.to_string(),
            again_in: None,
        }));
        self.standing.failed(asked.purpose, error);
    }
}

/// A response with a body that may be longer or shorter than it came.
fn without_length(mut head: http::response::Parts, body: Bytes) -> OutgoingResponse {
    head.headers.remove(CONTENT_LENGTH);
    let body = Full::new(body)
        .map_err(|never| match never {})
        .boxed_unsync();
    http::Response::from_parts(head, body)
}

/// A reply in the words of a format, where what came over the wire was not kept.
fn rendered(
    format: WireFormat,
    question: &wire::ParsedModelRequest,
    asked: &PendingModelRequest,
    reply: &proctor_core::model::Reply,
) -> Vec<u8> {
    let envelope = Envelope {
        id: &format!("replayed{}", asked.ask),
        model: &question.model,
        created: 0,
        question,
    };
    if question.stream {
        wire::render_stream(format, reply, &envelope)
            .concat()
            .into()
    } else {
        wire::render(format, reply, &envelope).to_string().into()
    }
}

/// A question that has no reply yet.
struct PendingModelRequest {
    ask: u64,
    purpose: Purpose,
    model: String,
    format: WireFormat,
    request: Question,
    inside: Arc<TapState>,
}

impl PendingModelRequest {
    /// Counts and keeps a reply.
    fn replied(&self, reply: &proctor_core::model::Reply, raw: Option<&[u8]>) {
        let inside = &self.inside;
        let mut reply = reply.clone();
        reply.usage = inside.recorder.believed_usage(&self.model, reply.usage);
        let reply = &reply;
        let cost_usd = inside.standing.replied(self.purpose, &self.model, reply);
        inside
            .recorder
            .record(EventKind::ModelReplied(proctor_core::event::ModelReplied {
                ask: self.ask,
                turn: Kept::Text(proctor_core::asks::text(&reply.turn)),
                raw: raw.map(super::asker::body),
                stop: reply.stop.clone(),
                usage: reply.usage,
                cost_usd,
            }));
    }

    /// Notes that a reply made no sense, or broke off.
    fn broke(&self, detail: String) {
        self.inside.failed(self, &ModelError::Malformed { detail });
    }

    /// Notes that nothing more of a reply came, and gives what that means.
    fn fell_silent(&self) -> String {
        let after = self.inside.silence;
        let error = ModelError::TimedOut { after };
        self.inside.failed(self, &error);
        error.to_string()
    }

    /// Notes that a reply calls itself a success, and is an error.
    fn refused(&self, error: &Value) {
        let redactor = &self.inside.recorder;
        let shown = |text: &str| redactor.shown(text.as_bytes(), SHOWN);
        self.inside.failed(self, &failure::in_success(error, shown));
    }
}

/// Takes the agent's key out: it is no key of the provider's.
fn without_keys(headers: &mut HeaderMap<HeaderValue>) {
    for name in KEYS {
        headers.remove(name);
    }
}

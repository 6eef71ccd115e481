//! The model tap: a proxy on loopback between an external agent and its model.
//!
//! The main type is [`ModelTap`]. The agent's key is the tap's token; the tap inserts the real key,
//! which the agent never sees. Requests and replies pass unchanged. The tap records them with their
//! token usage and enforces limits. If the provider is unavailable, it ends the trial instead of
//! waiting for long.

mod body;
mod limits;
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
use proctor_core::asks::RequestDigest;
use proctor_core::replay::{RecordedReply, outline};
use proctor_record::event::{Body as Kept, EventKind, ModelFailed, Purpose};
use proctor_record::json;
use proctor_record::model::ModelRequest as Question;
use serde_json::Value;

use self::body::TappedBody;
pub use self::limits::TapEnd;
use self::limits::TapLimits;
pub use self::provider::TapProvider;
use super::replay::Replay;
use super::serve::{ApiRoute, CompletionRoute, refusal};
use super::wire::{self, Envelope, ErrorKind, WireFormat, is_side_call};
use super::{Meter, ModelError, ModelTimeouts, RetryWait, failure};
use crate::LoopLimits;
use proctor_wire::proxy::door::refuse_page;
use proctor_wire::proxy::{AccessToken, PooledBody, Upstream, passed};
use proctor_wire::recorder::Recorder;
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::web::{
    ConnectionAbort, IncomingRequest, OutgoingResponse, ResponseBody, Web, whole,
};
use proctor_wire::worker;

/// The headers in which agents send their key.
const KEYS: [HeaderName; 3] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// How many bytes of a provider's error are shown.
const SHOWN: usize = 500;

/// The settings of a tap.
pub struct TapOptions {
    /// The provider to forward requests to; `None` if all requests are replayed.
    pub provider: Option<TapProvider>,
    /// The model's name in prices and records, if it is known in advance.
    pub name: String,
    /// The limits of the trial.
    pub limits: LoopLimits,
    /// The budget of the run.
    pub meter: Arc<Meter>,
    pub timeouts: ModelTimeouts,
    /// The time that the trial spends waiting for rate limits and outages.
    pub waiting: RetryWait,
    pub recorder: Recorder,
    /// The recorded replies to use instead of requests.
    pub replay: Option<Replay>,
}

/// A running model tap. Dropping it stops the tap.
pub struct ModelTap {
    web: Web,
    token: AccessToken,
    inside: Arc<TapState>,
}

struct TapState {
    token: AccessToken,
    upstream: Option<(Upstream, TapProvider)>,
    name: String,
    /// How long a provider may send nothing while a request is open.
    silence: Duration,
    recorder: Recorder,
    replay: Option<Replay>,
    limits: TapLimits,
}

impl ModelTap {
    /// Starts a tap. Must be called within a tokio runtime.
    pub async fn start(options: TapOptions) -> io::Result<Self> {
        let none = || io::Error::other("can't read random bytes from the system");
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
            limits: TapLimits::new(options.limits, options.meter, options.waiting),
        });
        let serving = inside.clone();
        let web = Web::start(0, move |request| {
            let inside = serving.clone();
            async move { inside.serve(request).await }
        })
        .await?;
        Ok(Self { web, token, inside })
    }

    /// The base URL: scheme, host and port.
    pub fn base(&self) -> String {
        format!("http://{}", self.web.address())
    }

    /// The key for this tap. It is valid nowhere else.
    pub fn key(&self) -> &str {
        self.token.reveal()
    }

    /// Waits until the tap has a reason to end the trial.
    pub async fn ended(&self) -> TapEnd {
        self.inside.limits.ended().await
    }

    /// Why the agent's last request for the task has no reply, if so. The agent's output then is
    /// not an answer of its model.
    pub fn unanswered(&self) -> Option<ModelError> {
        self.inside.limits.unanswered()
    }

    /// Whether any request had a reply.
    pub fn has_replies(&self) -> bool {
        self.inside.limits.has_replies()
    }

    /// How many requests the agent sent for the task.
    #[cfg(test)]
    fn turns(&self) -> u32 {
        self.inside.limits.turns()
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
            let why = "invalid key for Proctor's model tap";
            return Ok(refusal(format, ErrorKind::Key, why));
        }
        if let Some(end) = self.limits.is_over() {
            return Ok(refusal(format, ErrorKind::Invalid, &end.to_string()));
        }
        match route {
            ApiRoute::Ask(ask) => self.ask(&ask, request).await,
            ApiRoute::Unknown(_) => {
                let why = format!(
                    "`{} {}` is not supported by the model tap",
                    request.method(),
                    request.uri().path()
                );
                Ok(refusal(format, ErrorKind::NotFound, &why))
            }
            about => self.pass(&about, request).await,
        }
    }

    /// Whether a request carries the tap's token as its key.
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

    /// Forwards requests that ask for no completion: the list of models, a token count.
    async fn pass(
        &self,
        route: &ApiRoute,
        request: IncomingRequest,
    ) -> Result<OutgoingResponse, ConnectionAbort> {
        let Some((upstream, provider)) = &self.upstream else {
            let why = "only model requests can be replayed";
            return Ok(refusal(route.format(), ErrorKind::NotFound, why));
        };
        let Some(path) = provider.path(route, request.uri().query()) else {
            if *route != ApiRoute::Greeting {
                let why = "the model tap does not forward this request";
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
                let why = format!("can't read the request: {error}");
                return Ok(refusal(ask.format, ErrorKind::Invalid, &why));
            }
        };
        // Requests that the tap can't parse are forwarded too: the provider may understand them.
        let question = worker::on_body(body.len(), || {
            let read = json::from_slice::<Value>(&body).ok()?;
            wire::question(ask.format, &read).ok()
        });
        let mut question = question.unwrap_or_default();
        question.stream |= ask.stream.is_some();
        let purpose = if is_side_call(&question.request) {
            Purpose::Side
        } else {
            Purpose::Agent
        };
        if let Some(end) = self.limits.begin(purpose) {
            return Ok(refusal(ask.format, ErrorKind::Invalid, &end.to_string()));
        }
        let asked = worker::on_body(body.len(), || self.record(ask, purpose, &question));
        if let Some(replay) = &self.replay {
            return Ok(worker::on_body(body.len(), || {
                let (request, recorder) = (&question.request, &self.recorder);
                let digest = outline(request, recorder.trial_dir());
                let take = replay.next(asked.ask, purpose, request, &digest, recorder);
                self.replayed(ask, &question, &asked, take)
            }));
        }
        let Some((upstream, provider)) = &self.upstream else {
            return Err(ConnectionAbort("the model tap has no provider".to_owned()));
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
                is_overload: false,
                detail: error.to_string(),
            },
            Err(_) => ModelError::TimedOut {
                after: self.silence,
            },
        };
        self.failed(&asked, &error);
        // The agent sees the same as without a tap.
        Err(ConnectionAbort(error.to_string()))
    }

    /// Records a request, and returns what is needed for its reply.
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
        let digest = RequestDigest::Given(outline(&question.request, self.recorder.trial_dir()));
        let (number, _) = self
            .recorder
            .record_ask(|asks| asks.next(purpose, &model, &question.request, digest));
        PendingModelRequest {
            ask: number,
            purpose,
            model,
            format: ask.format,
            request: question.request.clone(),
            inside: self.clone(),
        }
    }

    /// Forwards a provider's response.
    async fn answered(
        &self,
        response: http::Response<PooledBody>,
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
                let detail = format!("the connection closed early: {error}");
                let error = ModelError::Unavailable {
                    retry_after: None,
                    is_overload: false,
                    detail: detail.clone(),
                };
                self.failed(&asked, &error);
                return Err(ConnectionAbort(detail));
            }
            Err(_) => return Err(ConnectionAbort(asked.timed_out())),
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

    /// Answers with the recorded reply.
    fn replayed(
        &self,
        ask: &CompletionRoute,
        question: &wire::ParsedModelRequest,
        asked: &PendingModelRequest,
        recorded: Result<RecordedReply, ModelError>,
    ) -> OutgoingResponse {
        let take = match recorded {
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
        self.limits.failed(asked.purpose, error);
    }
}

/// Removes the length of a response whose body may have changed.
fn without_length(mut head: http::response::Parts, body: Bytes) -> OutgoingResponse {
    head.headers.remove(CONTENT_LENGTH);
    let body = Full::new(body)
        .map_err(|never| match never {})
        .boxed_unsync();
    http::Response::from_parts(head, body)
}

/// Renders a reply in a wire format, if its original bytes were not recorded.
fn rendered(
    format: WireFormat,
    question: &wire::ParsedModelRequest,
    asked: &PendingModelRequest,
    reply: &proctor_record::model::Reply,
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

/// A request without a reply so far.
struct PendingModelRequest {
    ask: u64,
    purpose: Purpose,
    model: String,
    format: WireFormat,
    request: Question,
    inside: Arc<TapState>,
}

impl PendingModelRequest {
    /// Counts and records a reply.
    fn replied(&self, reply: &proctor_record::model::Reply, raw: Option<&[u8]>) {
        let inside = &self.inside;
        let mut reply = reply.clone();
        reply.usage = inside.recorder.believed_usage(&self.model, reply.usage);
        let reply = &reply;
        let cost_usd = inside.limits.replied(self.purpose, &self.model, reply);
        inside.recorder.record(EventKind::ModelReplied(
            proctor_record::event::ModelReplied {
                ask: self.ask,
                turn: Kept::Text(proctor_core::asks::text(&reply.turn)),
                raw: raw.map(super::asker::body),
                stop: reply.stop.clone(),
                usage: reply.usage,
                cost_usd,
            },
        ));
    }

    /// Records that a reply was malformed or incomplete.
    fn broke(&self, detail: String) {
        self.inside.failed(self, &ModelError::Malformed { detail });
    }

    /// Records that the provider stopped sending, and returns the error.
    fn timed_out(&self) -> String {
        let after = self.inside.silence;
        let error = ModelError::TimedOut { after };
        self.inside.failed(self, &error);
        error.to_string()
    }

    /// Records an error that came with a success status.
    fn refused(&self, error: &Value) {
        let redactor = &self.inside.recorder;
        let shown = |text: &str| redactor.shown(text.as_bytes(), SHOWN);
        self.inside.failed(self, &failure::in_success(error, shown));
    }
}

/// Removes the agent's key, which the provider does not know.
fn without_keys(headers: &mut HeaderMap<HeaderValue>) {
    for name in KEYS {
        headers.remove(name);
    }
}

//! The state that all exchanges of a reverse proxy share.
//!
//! Its main type is [`ReverseProxyState`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use http::header::{CONTENT_LENGTH, LOCATION, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use proctor_core::suite::Server;
use proctor_record::event::{ConnectionEnd, Direction, EndedBy, HttpFailure, WireKind};

use super::body::{BodyKind, RecordedBody};
use super::exchange::{ExchangeKind, ProxyExchange};
use super::gathered::ResponseGatherer;
use super::request::{ProxiedRequest, RequestEndings};
use super::stream::RecordedStream;
use crate::proxy::ProxyOptions;
use crate::proxy::addresses::{Addresses, AnnouncedEndpoints};
use crate::proxy::edit_stage::EditStage;
use crate::proxy::refusals::Refusals;
use crate::proxy::upstream::{TokenNote, Upstream, UpstreamError, passed};
use crate::recorder::ConnectionTap;
use crate::web::{ConnectionAbort, IncomingRequest, OutgoingResponse, ResponseBody, whole};

const SESSION: &str = "mcp-session-id";

/// The state that all exchanges share.
pub(super) struct ReverseProxyState {
    pub(super) upstream: Upstream,
    server: Server,
    options: ProxyOptions,
    pub(super) refusals: Arc<Refusals>,
    /// Whether the config says that the server uses HTTP+SSE.
    is_legacy: bool,
    /// Whether the server is known to use streamable HTTP.
    has_posted: AtomicBool,
    exchanges: AtomicU64,
    /// The connection of all exchanges that belong to no HTTP+SSE stream. The first request opens
    /// it.
    tap: OnceLock<Arc<ConnectionTap>>,
    addresses: OnceLock<Arc<Addresses>>,
    announced: Arc<AnnouncedEndpoints<ConnectionTap>>,
    editing: Option<EditStage>,
    gatherer: ResponseGatherer,
    pub(super) endings: RequestEndings,
}

/// Where a request goes, and where it is recorded.
struct RequestTarget {
    /// The path and query at the server.
    target: String,
    exchange: ProxyExchange,
    /// The connection that the request opens in the record, and that ends with it.
    stream: Option<RecordedStream>,
}

impl ReverseProxyState {
    pub(super) fn new(
        upstream: Upstream,
        server: &Server,
        options: &ProxyOptions,
        refusals: Arc<Refusals>,
        is_legacy: bool,
    ) -> Self {
        let editor = options.editor.as_ref();
        Self {
            editing: editor.map(|editor| EditStage::new(editor, upstream.url())),
            upstream,
            server: server.clone(),
            options: options.clone(),
            refusals,
            is_legacy,
            has_posted: AtomicBool::new(false),
            exchanges: AtomicU64::new(0),
            tap: OnceLock::new(),
            addresses: OnceLock::new(),
            announced: Arc::default(),
            gatherer: ResponseGatherer::default(),
            endings: RequestEndings::default(),
        }
    }

    /// Starts to serve requests, now that the proxy's own URL is known.
    pub(super) fn open(&self, addresses: Addresses) {
        self.addresses.get_or_init(|| Arc::new(addresses));
    }

    pub(super) fn close(&self) {
        if let Some(tap) = self.tap.get() {
            let end = ConnectionEnd::by(EndedBy::Proctor);
            tap.ended("Proctor closed the proxy".to_owned(), None, Some(end));
        }
    }

    /// Answers a request. What rarely happens is boxed, so that the future of each request is small.
    pub(super) async fn serve(
        self: Arc<Self>,
        request: IncomingRequest,
    ) -> Result<OutgoingResponse, ConnectionAbort> {
        let Some(route) = self.route(&request) else {
            return Ok(self.refuse(request.uri().path()));
        };
        let asked = ProxiedRequest::new(request.method(), route.exchange, route.stream);
        let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
        // The query of the configured URL may be secret.
        let line = format!("{} {}{path}", request.method(), self.upstream.origin());
        let exchange = asked.exchange.clone();
        let mut request = request.map(|body| asked.upload.reader(passed(body), exchange));
        if let Err(error) = self.upstream.prepare(&mut request, &route.target) {
            drop(request);
            return Err(Box::pin(asked.failed(&error, &self.endings)).await);
        }
        asked
            .exchange
            .head(Direction::ToServer, line, request.headers());
        let request = request.map(BodyExt::boxed_unsync);
        match self.exchange(request).await {
            Ok(response) => {
                let response = self.answer(asked, response);
                Ok(self.gatherer.gather(response).await)
            }
            Err(error) => Err(Box::pin(asked.failed(&error, &self.endings)).await),
        }
    }

    /// Sends a request to the server; edits happen here, on the server's side of the record.
    async fn exchange(
        &self,
        request: http::Request<ResponseBody>,
    ) -> Result<OutgoingResponse, UpstreamError> {
        match &self.editing {
            Some(editing) => Box::pin(editing.exchange(&self.upstream, request)).await,
            None => Ok(self.upstream.exchange(request).await?.map(passed)),
        }
    }

    fn answer(
        &self,
        asked: ProxiedRequest,
        mut response: OutgoingResponse,
    ) -> http::Response<Box<RecordedBody>> {
        if let Some(note) = response.extensions_mut().remove::<TokenNote>() {
            record_token_note(&asked, note);
        }
        let (status, headers) = (response.status(), response.headers());
        asked
            .exchange
            .head(Direction::ToClient, status.to_string(), headers);
        if let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
            let location = String::from_utf8_lossy(location.as_bytes());
            let detail = format!("redirect to `{location}`, which bypasses the proxy");
            asked.exchange.finding(detail);
        }
        if asked.method == Method::POST && status.is_success() && asked.exchange.is_streamable() {
            self.has_posted.store(true, Ordering::Relaxed);
        }
        let content = asked.content(headers);
        if self.upstream.has_tokens() {
            // The agent can't log in itself, and would try to.
            response.headers_mut().remove(WWW_AUTHENTICATE);
        }
        if asked.is_stream() && matches!(content, BodyKind::Events(_)) {
            // A URL on the stream may become longer.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        let (exchange, stream) = asked.answered(&self.endings);
        response.map(|body| Box::new(RecordedBody::new(body, exchange, content, stream)))
    }

    fn route(&self, request: &IncomingRequest) -> Option<RequestTarget> {
        let uri = request.uri();
        let asked = uri.path_and_query().map_or("/", |p| p.as_str());
        let posts = *request.method() == Method::POST;
        let announced = self.announced.exactly(asked).filter(|_| posts);
        let is_own = uri.path() == self.upstream.url().path();
        let announced = announced.or_else(|| {
            let path = self.announced.path(uri.path());
            path.filter(|_| !is_own)
        });
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(stream) = announced {
            // Its stream may have ended.
            let tap = stream.upgrade().unwrap_or_else(|| self.tap().clone());
            return Some(RequestTarget {
                target: asked.to_owned(),
                exchange: ProxyExchange::new(tap, number, ExchangeKind::Posted),
                stream: None,
            });
        }
        if !is_own {
            return None;
        }
        let target = with_queries(uri.path(), [self.upstream.url().query(), uri.query()]);
        // A request with a session id belongs to streamable HTTP: HTTP+SSE has none.
        let is_streamable =
            self.has_posted.load(Ordering::Relaxed) || request.headers().contains_key(SESSION);
        if *request.method() == Method::GET && (self.is_legacy || !is_streamable) {
            let tap = self.connection(WireKind::Sse);
            return Some(RequestTarget {
                target,
                exchange: ProxyExchange::new(tap.clone(), number, ExchangeKind::Stream),
                stream: Some(RecordedStream {
                    addresses: self.addresses.get()?.clone(),
                    announced: self.announced.clone(),
                    tap,
                }),
            });
        }
        Some(RequestTarget {
            target,
            exchange: ProxyExchange::new(self.tap().clone(), number, ExchangeKind::Streamable),
            stream: None,
        })
    }

    fn refuse(&self, path: &str) -> OutgoingResponse {
        let why = format!("`{path}` is not a path of the server");
        self.refusals.refused(&why);
        let text = format!("refused by Proctor: {why}\n");
        whole(StatusCode::FORBIDDEN, "text/plain", text)
    }

    fn tap(&self) -> &Arc<ConnectionTap> {
        let wire = if self.is_legacy {
            WireKind::Sse
        } else {
            WireKind::Http
        };
        self.tap.get_or_init(|| self.connection(wire))
    }

    fn connection(&self, wire: WireKind) -> Arc<ConnectionTap> {
        let Server { name, written, .. } = &self.server;
        let ProxyOptions {
            recorder, actor, ..
        } = &self.options;
        let recorder = recorder.clone().writing_through();
        recorder.open(name, *actor, wire, written)
    }
}

/// Records what happened to the token of a request.
fn record_token_note(asked: &ProxiedRequest, note: TokenNote) {
    let (direction, nothing) = (Direction::ToClient, Ok(Vec::new()));
    match note {
        TokenNote::Renewed(line) => asked.exchange.aside(direction, &line, &nothing),
        TokenNote::Refused(why) => {
            asked
                .exchange
                .failed(HttpFailure::Unauthorized, &why, &nothing);
        }
    }
}

/// Returns a path with all queries.
fn with_queries(path: &str, queries: [Option<&str>; 2]) -> String {
    let queries: Vec<&str> = queries.into_iter().flatten().collect();
    match queries.as_slice() {
        [] => path.to_owned(),
        queries => format!("{path}?{}", queries.join("&")),
    }
}

//! Streamable HTTP, for both eras.
//!
//! Its main type is `HttpLink`. Every message is one exchange, whose response goes to the peer.
//! Redirects are not followed, because they would send headers to another server. A session id
//! counts only from an `initialize` that succeeded.

mod resume;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_record::event::{Direction, FindingKind, HttpFailure};
use proctor_record::json;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Response, StatusCode, Url};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::authorized::{AuthorizedClient, SendFailure};
use super::frames::BodyCollector;
use super::{BackgroundSends, GOODBYE, Labels, MAX_MESSAGE};
use crate::auth::TokenSource;
use crate::http_client::{AddressError, parse_headers, parse_url};
use crate::network;
use crate::peer::{AnswerMessage, MessageSource, Peer, RequestFailure};
use crate::recorder::ConnectionTap;
use crate::worker;

use self::resume::Cursor;

/// The timeout of messages without a response.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(30);
/// How many responses to the server's own requests may be in progress.
const ANSWERS: usize = 64;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A connection to a server over streamable HTTP.
pub(crate) struct HttpLink {
    client: AuthorizedClient,
    url: Url,
    headers: HeaderMap,
    exchanges: AtomicU64,
    /// Limits the responses to the server's own requests.
    answering: Arc<Semaphore>,
    session: Mutex<HttpSession>,
    /// Messages that are sent in the background.
    pub(super) leaving: BackgroundSends,
}

#[derive(Default)]
struct HttpSession {
    /// The session id of the response to `initialize`, which counts once the result is valid.
    offered: Option<HeaderValue>,
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    listening: Option<JoinHandle<()>>,
    /// The reconnection delay that the server set on any of its streams.
    pause: Option<Duration>,
}

impl HttpLink {
    pub(crate) fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
        tokens: Option<Arc<TokenSource>>,
    ) -> Result<Self, AddressError> {
        Ok(Self {
            client: AuthorizedClient::new(tokens)?,
            url: parse_url(url)?,
            headers: parse_headers(headers)?,
            exchanges: AtomicU64::new(0),
            answering: Arc::new(Semaphore::new(ANSWERS)),
            session: Mutex::default(),
            leaving: BackgroundSends::default(),
        })
    }

    /// Starts the session of `initialize`, which later requests name.
    pub(crate) fn begin_session(&self, version: &str) {
        let mut session = self.lock();
        session.version = HeaderValue::from_str(version).ok();
        session.id = session.offered.take();
    }

    /// Returns the URL without secrets.
    pub(crate) fn address(&self) -> String {
        network::shown_address(&self.url)
    }

    /// Sends a message. The response or failure goes to the peer.
    pub(crate) fn post(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        message: Vec<u8>,
        labels: &Labels,
    ) -> JoinHandle<()> {
        let (link, peer, labels) = (self.clone(), peer.clone(), labels.clone());
        tokio::spawn(async move {
            let exchange = link.exchange(&peer, message, &labels);
            let done = match labels.id {
                // The caller cancels this after its timeout.
                Some(_) => exchange.await,
                None => tokio::time::timeout(NOTIFY_TIMEOUT, exchange)
                    .await
                    .unwrap_or(Ok(())),
            };
            if let Some(id) = labels.id {
                // This has no effect on a request that has its response.
                peer.fail(
                    id,
                    done.err()
                        .unwrap_or(RequestFailure::NoAnswer { what: None }),
                );
            }
        })
    }

    async fn exchange(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        message: Vec<u8>,
        labels: &Labels,
    ) -> Result<(), RequestFailure> {
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let mut request = self.request(Method::POST, BOTH, &labels.headers);
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        let tap = &labels.tap;
        tap.http(
            exchange,
            Direction::ToServer,
            line(&request),
            request.headers(),
        );
        tap.frame(Some(exchange), Direction::ToServer, &message);
        *request.body_mut() = Some(message.into());
        let mut open = OpenExchange::new(peer, labels, exchange);
        let taken = self.send(request, peer, labels, exchange).await;
        open.end(&taken);
        taken
    }

    async fn send(
        self: &Arc<Self>,
        request: Request,
        peer: &Arc<Peer>,
        labels: &Labels,
        exchange: u64,
    ) -> Result<(), RequestFailure> {
        let tap = &labels.tap;
        let response = self.client.send(request, tap, exchange).await;
        let response = response.map_err(|failure| self.unsent(failure, labels))?;
        if labels.method.as_deref() == Some("initialize") {
            let id = response.headers().get(SESSION).cloned();
            self.lock().offered = id.filter(|_| response.status().is_success());
        }
        let what = described(&response);
        let from = MessageSource {
            tap,
            exchange: Some(exchange),
            own: labels.id,
        };
        self.take_response(peer, response, &from, labels).await?;
        Err(RequestFailure::NoAnswer { what: Some(what) })
    }

    async fn take_response(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        response: Response,
        from: &MessageSource<'_>,
        labels: &Labels,
    ) -> Result<(), RequestFailure> {
        let status = response.status();
        if status.is_success() && is_stream(&response) {
            let cursor = Cursor::of_answer();
            return self.take_stream(peer, response, from, labels, cursor).await;
        }
        // It has no body; without a length, waiting for one could take forever.
        if status == StatusCode::ACCEPTED && response.content_length().is_none() {
            return Ok(());
        }
        let body = read_body(response).await;
        let body = match body.map_err(|error| self.broken(&error, labels))? {
            Ok(body) => body,
            Err(cut) => {
                from.tap.cut_frame(from.exchange, Direction::ToClient, &cut);
                let detail = format!("a response of {} bytes", cut.bytes);
                from.tap.finding(FindingKind::TooLarge, detail);
                return Err(RequestFailure::TooLarge { bytes: cut.bytes });
            }
        };
        if !body.is_empty() {
            from.tap.room().await;
            peer.record(&body, from);
        }
        if status.is_success() {
            if !body.trim_ascii().is_empty() {
                self.receive(peer, &body, from);
            }
            return Ok(());
        }
        Err(refusal(status, &body, from.tap))
    }

    fn receive(self: &Arc<Self>, peer: &Arc<Peer>, message: &[u8], from: &MessageSource<'_>) {
        for answer in peer.receive(message, from) {
            // The link does not wait for a server that sends requests faster than it reads
            // responses.
            let Ok(place) = self.answering.clone().try_acquire_owned() else {
                let detail = "the server did not accept a response";
                from.tap.finding(FindingKind::Dropped, detail);
                continue;
            };
            let labels = Labels::unasked(from.tap);
            let posted = match answer {
                AnswerMessage::Ready(message) => self.post(peer, message, &labels),
                AnswerMessage::Later(later) => {
                    let (link, peer) = (self.clone(), peer.clone());
                    tokio::spawn(async move {
                        let message = later.await;
                        let _ = link.post(&peer, message, &labels).await;
                    })
                }
            };
            tokio::spawn(async move {
                let _ = posted.await;
                drop(place);
            });
        }
    }

    /// Opens the GET stream of the handshake era, for messages that belong to no request. Servers
    /// may refuse it.
    pub(crate) fn listen(self: &Arc<Self>, peer: &Arc<Peer>) {
        let (link, listener) = (self.clone(), peer.clone());
        let task = tokio::spawn(async move {
            let exchange = link.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
            let tap = listener.tap();
            let request = link.request(Method::GET, STREAM, &[]);
            tap.http(
                exchange,
                Direction::ToServer,
                line(&request),
                request.headers(),
            );
            let Ok(response) = link.client.send(request, tap, exchange).await else {
                return;
            };
            if response.status().is_success() && is_stream(&response) {
                // The end of this stream is not an error.
                let from = MessageSource {
                    tap,
                    exchange: Some(exchange),
                    own: None,
                };
                let (labels, cursor) = (Labels::unasked(tap), Cursor::of_listener());
                let _ = link
                    .take_stream(&listener, response, &from, &labels, cursor)
                    .await;
            }
        });
        self.lock().listening = Some(task);
    }

    /// Ends the session, if the server has one.
    pub(crate) async fn close(&self, tap: &ConnectionTap) {
        self.stop_listening();
        // Earlier messages are sent first.
        self.leaving.settle(None).await;
        let is_open = self.lock().id.is_some();
        if !is_open {
            return;
        }
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let request = self.request(Method::DELETE, BOTH, &[]);
        tap.http(
            exchange,
            Direction::ToServer,
            line(&request),
            request.headers(),
        );
        // The session ends in any case, whatever the server answers.
        let _ = tokio::time::timeout(GOODBYE, self.client.send(request, tap, exchange)).await;
    }

    pub(super) fn stop_listening(&self) {
        if let Some(listening) = self.lock().listening.take() {
            listening.abort();
        }
    }

    fn request(
        &self,
        method: Method,
        accept: HeaderValue,
        repeated: &[(String, String)],
    ) -> Request {
        // A user name and password in the URL become a header.
        let built = self
            .client
            .http()
            .request(method.clone(), self.url.clone())
            .build();
        let mut request = built.unwrap_or_else(|_| Request::new(method, self.url.clone()));
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(ACCEPT, accept);
        let session = self.lock();
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = &session.version {
            headers.insert(VERSION, version.clone());
        }
        for (name, value) in repeated {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_str(value);
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.insert(name, value);
            }
        }
        drop(session);
        request
    }

    /// Describes why a request has no response.
    fn unsent(&self, failure: SendFailure, labels: &Labels) -> RequestFailure {
        match failure {
            SendFailure::Network(error) => self.broken(&error, labels),
            SendFailure::Unauthorized(reason) => RequestFailure::Unauthorized(reason),
        }
    }

    /// Describes a network error of a request.
    fn broken(&self, error: &reqwest::Error, labels: &Labels) -> RequestFailure {
        let method = labels.method.as_deref();
        RequestFailure::Broken(network::failed(error, &self.url, method, &labels.tap))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HttpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose HTTP response has not ended. Its drop records why it has no response.
struct OpenExchange<'a> {
    peer: &'a Peer,
    labels: &'a Labels,
    exchange: u64,
    is_over: bool,
}

impl<'a> OpenExchange<'a> {
    fn new(peer: &'a Peer, labels: &'a Labels, exchange: u64) -> Self {
        Self {
            peer,
            labels,
            exchange,
            is_over: false,
        }
    }

    fn end(&mut self, taken: &Result<(), RequestFailure>) {
        self.is_over = true;
        if let (Err(failure @ RequestFailure::Broken(_)), Some(_)) = (taken, self.labels.id) {
            let tap = &self.labels.tap;
            tap.http_failed(self.exchange, failure.to_string(), HttpFailure::Broken);
        }
    }
}

impl Drop for OpenExchange<'_> {
    /// The caller stopped waiting.
    fn drop(&mut self) {
        let Some(id) = self.labels.id.filter(|_| !self.is_over) else {
            return;
        };
        // A stream may continue after its response.
        if let Some(failure) = self.peer.unanswered(id) {
            let line = match failure {
                HttpFailure::TimedOut => "no response in time",
                HttpFailure::Broken | HttpFailure::ClientLeft | HttpFailure::Unauthorized => {
                    "the response is no longer needed"
                }
            };
            let tap = &self.labels.tap;
            tap.http_failed(self.exchange, line.to_owned(), failure);
        }
    }
}

pub(super) fn line(request: &Request) -> String {
    format!("{} {}", request.method(), request.url())
}

pub(super) fn is_stream(response: &Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value
                .trim_start()
                .to_ascii_lowercase()
                .starts_with("text/event-stream")
        })
}

async fn read_body(
    mut response: Response,
) -> Result<Result<Vec<u8>, crate::recorder::OversizedMessage>, reqwest::Error> {
    let mut body = BodyCollector::new(MAX_MESSAGE);
    while let Some(chunk) = response.chunk().await? {
        body.take(&chunk);
    }
    Ok(body.end())
}

/// Describes the status and content type of a response: `200 OK, text/html`.
fn described(response: &Response) -> String {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    format!(
        "{}, {}",
        response.status(),
        kind.unwrap_or("no content type")
    )
}

/// Returns the failure for an HTTP error status.
fn refusal(status: StatusCode, body: &[u8], tap: &ConnectionTap) -> RequestFailure {
    let mut said: Option<crate::rpc::RpcError> = None;
    let _ = worker::each_message(body, &mut |message| {
        said = message.error.and_then(|raw| json::from_str(raw.get()).ok());
    });
    if let Some(error) = said {
        return RequestFailure::Rpc(error);
    }
    RequestFailure::Http {
        status: status.as_u16(),
        body: network::shown_body(body, tap),
    }
}

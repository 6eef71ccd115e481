//! HTTP+SSE: one event stream for the server's messages, and POSTs for the client's.
//!
//! Its main type is [`LegacyLink`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proctor_record::event::{Direction, FindingKind};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Request, Response, Url};
use tokio::task::JoinHandle;

use super::authorized::{AuthorizedClient, SendFailure};
use super::frames::BodyCollector;
use super::http::{is_stream, line};
use super::sse::Events;
use super::{BackgroundSends, Labels, MAX_MESSAGE};
use crate::auth::TokenSource;
use crate::http_client::{AddressError, parse_headers, parse_url};
use crate::network::{self, shown_address};
use crate::peer::{AnswerMessage, MessageSource, Peer, PeerClose, RequestFailure};
use crate::recorder::{ConnectionTap, OversizedMessage};

const POST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the body of the response to a POST may take. Its content does not matter.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_BODY: usize = 64 << 10;
/// The maximum length of that body in the record.
const SHOWN: usize = 500;

/// A connection to a server over HTTP+SSE.
pub(crate) struct LegacyLink {
    client: AuthorizedClient,
    endpoint: Url,
    headers: HeaderMap,
    exchanges: AtomicU64,
    reading: JoinHandle<()>,
    /// Messages that are sent in the background.
    pub(super) leaving: BackgroundSends,
}

/// Why the event stream could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StreamOpenError {
    /// The URL or a header is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The server did not respond, or not with an event stream.
    #[error("{0}")]
    Refused(String),
    /// There is no token that the server accepts.
    #[error("{0}")]
    Unauthorized(String),
}

impl LegacyLink {
    /// Opens the stream, and waits until the server announces its endpoint.
    pub(crate) async fn open<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
        tokens: Option<Arc<TokenSource>>,
        peer: &Arc<Peer>,
    ) -> Result<Arc<Self>, StreamOpenError> {
        let client = AuthorizedClient::new(tokens)?;
        let mut request = Request::new(Method::GET, parse_url(url)?);
        // A user name and password in the URL become a header, which every message has.
        if let Ok(built) = client.http().get(request.url().clone()).build() {
            request = built;
        }
        request.headers_mut().extend(parse_headers(headers)?);
        let (url, headers) = (request.url().clone(), request.headers().clone());
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let tap = peer.tap();
        tap.http(1, Direction::ToServer, line(&request), request.headers());
        let response = client.send(request, tap, 1).await;
        let response = response.map_err(|failure| match failure {
            SendFailure::Network(error) => {
                StreamOpenError::Refused(network::failed(&error, &url, None, tap))
            }
            SendFailure::Unauthorized(reason) => StreamOpenError::Unauthorized(reason),
        })?;
        let status = response.status();
        if !status.is_success() || !is_stream(&response) {
            return Err(StreamOpenError::Refused(format!(
                "{} answered with {status} and without an event stream",
                shown_address(&url)
            )));
        }
        let mut stream = LegacyStream {
            response,
            events: Events::new(MAX_MESSAGE),
            ready: Vec::new(),
        };
        let endpoint = stream.endpoint(&url, tap).await?;
        let (answer_to, answers) = tokio::sync::mpsc::channel(64);
        let reading = tokio::spawn(stream.read(peer.clone(), answer_to));
        let link = Arc::new(Self {
            client,
            endpoint,
            headers,
            exchanges: AtomicU64::new(1),
            reading,
            leaving: BackgroundSends::default(),
        });
        tokio::spawn(answer(Arc::downgrade(&link), peer.clone(), answers));
        Ok(link)
    }

    /// Sends a message. The response comes on the stream.
    pub(crate) fn post(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        message: Vec<u8>,
        labels: &Labels,
    ) -> JoinHandle<()> {
        let (link, peer, labels) = (self.clone(), peer.clone(), labels.clone());
        tokio::spawn(async move {
            let exchange = link.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
            let sending = link.send(&labels, message, exchange);
            let sent = tokio::time::timeout(POST_TIMEOUT, sending).await;
            let failure = match sent {
                Ok(Ok(())) => return,
                Ok(Err(failure)) => failure,
                Err(_) => RequestFailure::Broken("the server does not accept messages".to_owned()),
            };
            if let Some(id) = labels.id {
                peer.fail(id, failure);
            }
        })
    }

    async fn send(
        &self,
        labels: &Labels,
        message: Vec<u8>,
        exchange: u64,
    ) -> Result<(), RequestFailure> {
        let tap = &labels.tap;
        let mut request = Request::new(Method::POST, self.endpoint.clone());
        request.headers_mut().extend(self.headers.clone());
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        tap.http(
            exchange,
            Direction::ToServer,
            line(&request),
            request.headers(),
        );
        tap.frame(None, Direction::ToServer, &message);
        *request.body_mut() = Some(message.into());
        let response = self.client.send(request, tap, exchange).await;
        let response = response.map_err(|failure| match failure {
            SendFailure::Network(error) => {
                let method = labels.method.as_deref();
                RequestFailure::Broken(network::failed(&error, &self.endpoint, method, tap))
            }
            SendFailure::Unauthorized(reason) => RequestFailure::Unauthorized(reason),
        })?;
        let status = response.status();
        let body = body(response).await;
        if body.as_ref().map_or(true, |body| !body.is_empty()) {
            tap.aside(exchange, Direction::ToClient, "not a message", &body);
        }
        if status.is_success() {
            return Ok(());
        }
        Err(RequestFailure::Http {
            status: status.as_u16(),
            body: body.map_or(String::new(), |body| tap.head(&body, SHOWN)),
        })
    }

    /// Closes the connection after earlier messages are sent.
    pub(crate) async fn close(&self) {
        self.leaving.settle(None).await;
        self.stop_listening();
    }

    pub(super) fn stop_listening(&self) {
        self.reading.abort();
    }
}

/// Sends the responses to the server's own requests until the link is dropped.
async fn answer(
    link: std::sync::Weak<LegacyLink>,
    peer: Arc<Peer>,
    mut answers: tokio::sync::mpsc::Receiver<Vec<u8>>,
) {
    while let Some(message) = answers.recv().await {
        let Some(link) = link.upgrade() else { return };
        let labels = Labels::unasked(peer.tap());
        // One at a time: the queue limits their number.
        let _ = link.post(&peer, message, &labels).await;
    }
}

/// Reads the part of a response body that arrives soon.
async fn body(mut response: Response) -> Result<Vec<u8>, OversizedMessage> {
    let mut body = BodyCollector::new(MAX_BODY);
    let mut length = 0;
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.take(&chunk);
            length += chunk.len();
            if length > MAX_BODY {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    body.end()
}

struct LegacyStream {
    response: Response,
    events: Events,
    /// The events in the same chunk as the endpoint.
    ready: Vec<super::sse::SseEvent>,
}

impl LegacyStream {
    async fn endpoint(&mut self, url: &Url, tap: &ConnectionTap) -> Result<Url, StreamOpenError> {
        loop {
            let chunk = self
                .response
                .chunk()
                .await
                .map_err(|error| network::failed(&error, url, None, tap))
                .map_err(StreamOpenError::Refused)?;
            let Some(chunk) = chunk else {
                return Err(StreamOpenError::Refused(
                    "the event stream ended before the `endpoint` event".to_owned(),
                ));
            };
            let mut events = self.events.take(&chunk).into_iter();
            let mut endpoint = None;
            for event in events.by_ref() {
                if event.name == "endpoint" {
                    endpoint = Some(event);
                    break;
                }
                // Messages before the endpoint are kept.
                self.ready.push(event);
            }
            let Some(event) = endpoint else {
                continue;
            };
            self.ready.extend(events);
            let what = "event `endpoint`";
            tap.aside(1, Direction::ToClient, what, &event.data);
            let written = event
                .data
                .map(|data| String::from_utf8_lossy(&data).trim().to_owned());
            let endpoint = written.ok().and_then(|text| url.join(&text).ok());
            return match endpoint {
                // Otherwise another server would get the headers of this one.
                Some(endpoint) if endpoint.origin() == url.origin() => Ok(endpoint),
                Some(endpoint) => Err(StreamOpenError::Refused(format!(
                    "the endpoint `{endpoint}` is on another server"
                ))),
                None => Err(StreamOpenError::Refused("invalid endpoint URL".to_owned())),
            };
        }
    }

    async fn read(mut self, peer: Arc<Peer>, answers: tokio::sync::mpsc::Sender<Vec<u8>>) {
        let from = MessageSource {
            tap: peer.tap(),
            exchange: None,
            own: None,
        };
        loop {
            from.tap.room().await;
            for event in self.ready.drain(..) {
                match event.data {
                    Ok(data) => {
                        peer.record(&data, &from);
                        for answer in peer.receive(&data, &from) {
                            let message = match answer {
                                AnswerMessage::Ready(message) => message,
                                AnswerMessage::Later(later) => {
                                    let answers = answers.clone();
                                    tokio::spawn(async move { answers.send(later.await).await });
                                    continue;
                                }
                            };
                            if answers.try_send(message).is_err() {
                                peer.tap().finding(
                                    FindingKind::Dropped,
                                    "the server did not accept a response",
                                );
                            }
                        }
                    }
                    Err(cut) => peer.oversized(&cut, &from),
                }
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.ready = self.events.take(&chunk),
                Ok(None) => return peer.end(PeerClose::Closed),
                Err(error) => return peer.end(PeerClose::Broken(network::reason(&error))),
            }
        }
    }
}

//! What becomes of each request.
//!
//! Its main type is [`Inside`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use mcp_evals::{METHOD, splice};

use super::super::asked::{self, Asked, ListRequest};
use super::super::events::{EventStream, event};
use super::super::talk::Talk;
use super::super::{Desk, Notice};
use super::answer::{Answer, Older};
use super::posted::Posted;
use super::streams::{Announced, Sessions, Stream};
use crate::proxy::reverse::addresses::Addresses;
use crate::proxy::upstream::{Upstream, UpstreamError, passed};
use crate::web::{Body, Broken, Request, Response, whole};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// What all exchanges share.
pub(super) struct Inside {
    pub(super) upstream: Upstream,
    desk: Arc<Desk>,
    addresses: OnceLock<Arc<Addresses>>,
    announced: Arc<Announced>,
    sessions: Sessions,
    /// Whether the server is known to speak the newer HTTP.
    has_posted: AtomicBool,
}

/// Where a request goes.
struct Route {
    /// The path and query to ask the server for.
    target: String,
    /// The stream of the older HTTP on which it is answered.
    stream: Option<Arc<Stream>>,
}

impl Inside {
    pub fn new(upstream: Upstream, desk: Arc<Desk>) -> Self {
        Self {
            upstream,
            desk,
            addresses: OnceLock::new(),
            announced: Arc::default(),
            sessions: Sessions::default(),
            has_posted: AtomicBool::new(false),
        }
    }

    /// Lets requests pass, now that it is known where they come in.
    pub(super) fn open(&self, addresses: Addresses) {
        self.addresses.get_or_init(|| Arc::new(addresses));
    }

    /// Tells clients that the evals have changed.
    pub(super) fn tell(&self) {
        self.sessions.tell();
    }

    pub(super) async fn serve(self: Arc<Self>, request: Request) -> Result<Response, Broken> {
        let Some(route) = self.route(&request) else {
            let path = request.uri().path();
            let text = format!("refused by Proctor: `{path}` is not the server's own path\n");
            return Ok(whole(StatusCode::FORBIDDEN, "text/plain", text));
        };
        if *request.method() == Method::POST {
            return self.post(request, route).await;
        }
        let listens = *request.method() == Method::GET;
        let session = session(request.headers());
        let request = request.map(passed);
        let response = self.send(request, &route).await?;
        if listens && is(response.headers(), EVENTS) {
            return Ok(self.listen(response, session));
        }
        Ok(response.map(passed))
    }

    fn route(&self, request: &Request) -> Option<Route> {
        let uri = request.uri();
        let asked = uri.path_and_query().map_or("/", |p| p.as_str());
        let is_own = uri.path() == self.upstream.url().path();
        let stream = self.announced.stream(asked);
        if stream.is_some() || (!is_own && self.announced.knows(uri.path())) {
            let target = asked.to_owned();
            return Some(Route { target, stream });
        }
        let queries = [self.upstream.url().query(), uri.query()];
        let queries: Vec<&str> = queries.into_iter().flatten().collect();
        let target = match queries.as_slice() {
            [] => uri.path().to_owned(),
            queries => format!("{}?{}", uri.path(), queries.join("&")),
        };
        is_own.then_some(Route {
            target,
            stream: None,
        })
    }

    async fn send(
        &self,
        request: http::Request<Body>,
        route: &Route,
    ) -> Result<http::Response<Incoming>, Broken> {
        let sent = self.upstream.send(request, &route.target).await;
        sent.map_err(|error: UpstreamError| {
            let why = error.to_string();
            (self.desk.tell)(&Notice::Unreachable(why.clone()));
            Broken(why)
        })
    }

    async fn post(&self, request: Request, route: Route) -> Result<Response, Broken> {
        let (head, body) = request.into_parts();
        let posted = Posted::take(body).await?;
        let text = posted.whole().unwrap_or_default();
        let mut talk = None;
        match asked::read(&text) {
            Asked::List(list) if fits(&list, &head.headers) => {
                let answer = self.desk.answer(&list);
                return Ok(match &route.stream {
                    None => answered(&answer, &head.headers),
                    Some(stream) if stream.say(&answer).await => {
                        whole(StatusCode::ACCEPTED, "text/plain", "Accepted")
                    }
                    Some(_) => return Err(Broken("nobody listens".to_owned())),
                });
            }
            Asked::Handshake(handshake) => {
                let waiting = match &route.stream {
                    Some(stream) => &stream.talk,
                    None => talk.insert(Arc::<Talk>::default()),
                };
                waiting.wait_for(handshake);
            }
            Asked::Initialized => {
                let stream = route.stream.as_ref().map(|stream| stream.talk.clone());
                let id = session(&head.headers);
                let told = stream.or_else(|| self.sessions.talk(id.as_deref()));
                told.inspect(|talk| talk.initialized());
            }
            Asked::List(_) | Asked::Other => {}
        }
        let request = http::Request::from_parts(head, posted.boxed_unsync());
        let response = self.send(request, &route).await?;
        if route.stream.is_none() && response.status().is_success() {
            self.has_posted.store(true, Ordering::Relaxed);
        }
        match talk {
            Some(talk) if response.status().is_success() => self.declare(response, &talk).await,
            _ => Ok(response.map(passed)),
        }
    }

    /// The answer to a handshake, with the capability in it.
    async fn declare(
        &self,
        response: http::Response<Incoming>,
        talk: &Arc<Talk>,
    ) -> Result<Response, Broken> {
        self.sessions.begin(session(response.headers()), talk);
        let (mut head, body) = response.into_parts();
        if head.headers.contains_key(CONTENT_ENCODING) {
            return Ok(http::Response::from_parts(head, passed(body)));
        }
        if is(&head.headers, EVENTS) {
            head.headers.remove(CONTENT_LENGTH);
            let answer = Answer::new(body, EventStream::new(&self.desk, talk));
            return Ok(http::Response::from_parts(head, answer.boxed_unsync()));
        }
        let body = Posted::take(body).await?;
        let Some(text) = body.whole() else {
            return Ok(http::Response::from_parts(head, body.boxed_unsync()));
        };
        let text = splice::apply(&text, &talk.insertions(&text, &self.desk));
        if head.headers.contains_key(CONTENT_LENGTH) {
            head.headers.insert(CONTENT_LENGTH, text.len().into());
        }
        let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
        Ok(http::Response::from_parts(head, body.boxed_unsync()))
    }

    /// A stream on which the client listens, with what is said to it besides.
    fn listen(&self, response: http::Response<Incoming>, session: Option<String>) -> Response {
        if response.headers().contains_key(CONTENT_ENCODING) {
            return response.map(passed);
        }
        let is_newer = self.has_posted.load(Ordering::Relaxed) || session.is_some();
        let talk = is_newer.then(|| self.sessions.talk(session.as_deref()));
        let (stream, ours) = Stream::new(session, talk.flatten().unwrap_or_default());
        self.sessions.listen(&stream);
        let older = match self.addresses.get() {
            Some(addresses) if !is_newer => Some(Older::new(addresses, &self.announced, &stream)),
            _ => None,
        };
        let (mut head, body) = response.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        let events = EventStream::new(&self.desk, &stream.talk);
        let answer = Answer::listening(body, events, (stream, ours), older);
        http::Response::from_parts(head, answer.boxed_unsync())
    }
}

/// Whether the headers say what the body says, as they must in the stateless era. If not, it is for the
/// server to say so.
fn fits(list: &ListRequest<'_>, headers: &HeaderMap) -> bool {
    match headers.get(MCP_METHOD) {
        Some(method) => method.as_bytes() == METHOD.as_bytes(),
        None => !list.is_stateless(),
    }
}

fn answered(answer: &[u8], headers: &HeaderMap) -> Response {
    let accepted: Vec<String> = headers
        .get_all(ACCEPT)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase())
        .collect();
    let accepts = |kind: &str| accepted.iter().any(|value| value.contains(kind));
    let takes_json = accepted.is_empty() || [JSON, "application/*", "*/*"].into_iter().any(accepts);
    if !takes_json && accepts(EVENTS) {
        return whole(StatusCode::OK, EVENTS, event(answer));
    }
    whole(StatusCode::OK, JSON, answer.to_vec())
}

fn session(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION)?;
    Some(String::from_utf8_lossy(id.as_bytes()).into_owned())
}

/// Whether the content is of a kind.
fn is(headers: &HeaderMap, kind: &str) -> bool {
    let value = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let value = value.and_then(|value| value.split(|byte| *byte == b';').next());
    value.is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(kind.as_bytes()))
}

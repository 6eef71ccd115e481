//! Answers the HTTP requests of a bridge.
//!
//! The response is held back until the server has sent something, for at most [`HOLD`]: a response
//! alone becomes JSON, with a status in the stateless era; anything else becomes an event stream.
//! The response to `server/discover` is held back as long as it takes: from its status, clients tell
//! the era, and a server may start slowly.
//! If the server ends before its first message, the client gets status 502, because official
//! clients survive that but not a broken connection. Later, the stream breaks.

mod accepts;
mod responses;

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use proctor_record::event::{Direction, FindingKind};
use proctor_record::message::tolerant::LenientReading;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use self::accepts::AcceptedFormats;
use self::responses::{empty, event_stream, gone, json, not_allowed, text};
use super::PATH;
use super::hub::{DeliveryError, Destination, Hub, PendingSession};
use super::inbound::{Inbound, MessageRejection, header, into_line};
use super::outlet::{BridgeEventStream, OutboundMessage, StreamReceiver};
use super::upstream::{SendFailure, StreamRefusal, UpstreamProcess};
use crate::transport::MAX_MESSAGE;
use crate::web::{ConnectionAbort, IncomingRequest, OutgoingResponse};

/// How long a response is held back until the server sends something.
const HOLD: Duration = Duration::from_secs(1);
/// How long a message may wait for memory.
const ROOM: Duration = Duration::from_secs(30);
/// How long it may take until the exit status of a server is known.
const LAST_WORDS: Duration = Duration::from_secs(5);
const UNREAD: &str = "the server no longer reads its input";
const SESSION: &str = "mcp-session-id";

/// Answers an HTTP request.
pub(super) async fn serve(
    hub: Arc<Hub>,
    request: IncomingRequest,
) -> Result<OutgoingResponse, ConnectionAbort> {
    let (head, body) = request.into_parts();
    if head.uri.path() != PATH {
        hub.refusals
            .refused(&format!("unknown path `{}`", head.uri.path()));
        return Ok(text(StatusCode::NOT_FOUND, "not found"));
    }
    Ok(match head.method {
        Method::POST => post(&hub, &head, body).await,
        Method::GET => get(&hub, &head),
        Method::DELETE => delete(&hub, &head),
        _ => not_allowed("GET, POST, DELETE"),
    })
}

async fn post(hub: &Arc<Hub>, head: &Parts, body: Incoming) -> OutgoingResponse {
    let Some(accepts) = AcceptedFormats::of(&head.headers) else {
        return text(StatusCode::NOT_ACCEPTABLE, "no acceptable content type");
    };
    let (mut message, room) = match take_in(hub, head, body).await {
        Ok(taken) => taken,
        Err(response) => return response,
    };
    let session = header(&head.headers, SESSION);
    let inbound = match Inbound::read(&message, &head.headers) {
        Ok(inbound) => inbound,
        Err(rejection) => {
            let upstream = session.and_then(|id| hub.session(id));
            // If a lenient server would accept the message as a call, it counts as one.
            if rejection.is_unreadable() && !LenientReading::of(&message).calls.is_empty() {
                match &upstream {
                    Some(upstream) => upstream.tap.frame(None, Direction::ToServer, &message),
                    None => hub.refusals.message(&message),
                }
            }
            return refuse(hub, upstream.as_ref(), head, &rejection);
        }
    };
    into_line(&mut message);
    match hub.place(session, &inbound, accepts != AcceptedFormats::Json) {
        Ok(place) => pass_on(head, place, &inbound, accepts, (message, room)).await,
        Err(unplaced) => {
            // Requests to an ended server are recorded too.
            if let Some(upstream) = session.and_then(|id| hub.past_session(id)) {
                upstream.tap.frame(None, Direction::ToServer, &message);
            }
            turned_away(hub, head, &inbound, unplaced)
        }
    }
}

/// Delivers a message to its process, and returns the response.
async fn pass_on(
    head: &Parts,
    place: Destination,
    inbound: &Inbound,
    accepts: AcceptedFormats,
    (message, room): (Vec<u8>, OwnedSemaphorePermit),
) -> OutgoingResponse {
    let Destination {
        upstream,
        receiver,
        opened,
    } = place;
    let exchange = BridgeExchange::begin(&upstream, head);
    let written = match upstream.send(message, Some(room)) {
        Ok(written) => written,
        Err(SendFailure(message)) => {
            upstream.tap.frame(None, Direction::ToServer, &message);
            return exchange.end(gone("the server has ended"));
        }
    };
    let Some(receiver) = receiver else {
        return exchange.end(match written.await {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(_) => gone(UNREAD),
        });
    };
    let limit = (accepts != AcceptedFormats::Json && !inbound.is_discovery).then_some(HOLD);
    let first = hold(receiver, written, accepts, limit).await;
    let has_failed = match &first {
        BufferedResponse::Broken(_) => true,
        BufferedResponse::Whole(answers) => answers.iter().any(|answer| answer.error.is_some()),
        BufferedResponse::Stream(..) | BufferedResponse::Over(_) => false,
    };
    let mut response = match first {
        BufferedResponse::Broken(why) => gone(&why),
        BufferedResponse::Stream(receiver, first) => {
            event_stream(BridgeEventStream::new(receiver, first))
        }
        BufferedResponse::Over(receiver) => event_stream(BridgeEventStream::over(receiver)),
        BufferedResponse::Whole(answers) => json(answers, inbound),
    };
    // A session whose handshake failed ends before the client knows its id.
    let session = opened
        .filter(|_| !has_failed)
        .and_then(PendingSession::tell);
    if let Some(id) = session.and_then(|id| HeaderValue::from_str(&id).ok()) {
        response.headers_mut().insert(SESSION, id);
    }
    exchange.end(response)
}

/// The server's output while the response was held back.
enum BufferedResponse {
    /// All responses, and no other message.
    Whole(Vec<OutboundMessage>),
    /// The first message, if any; more will follow.
    Stream(StreamReceiver, Option<OutboundMessage>),
    /// The stream ended without an error.
    Over(StreamReceiver),
    /// The stream failed, for this reason.
    Broken(String),
}

async fn hold(
    mut receiver: StreamReceiver,
    mut written: oneshot::Receiver<()>,
    accepts: AcceptedFormats,
    limit: Option<Duration>,
) -> BufferedResponse {
    let mut answers = Vec::new();
    let mut is_written = false;
    let deadline = tokio::time::sleep(limit.unwrap_or_default());
    tokio::pin!(deadline);
    loop {
        let next = tokio::select! {
            biased;
            next = receiver.next() => next,
            done = &mut written, if !is_written => {
                if done.is_err() {
                    return unread(receiver).await;
                }
                is_written = true;
                continue;
            }
            () = &mut deadline, if limit.is_some() => {
                return BufferedResponse::Stream(receiver, None);
            }
        };
        match (next, accepts) {
            (Err(ConnectionAbort(why)), _) => return BufferedResponse::Broken(why),
            (Ok(None), _) => return BufferedResponse::Over(receiver),
            (Ok(Some(message)), AcceptedFormats::Both) if message.is_last => {
                return BufferedResponse::Whole(vec![message]);
            }
            (Ok(Some(message)), AcceptedFormats::Both | AcceptedFormats::Stream) => {
                return BufferedResponse::Stream(receiver, Some(message));
            }
            (Ok(Some(message)), AcceptedFormats::Json) => {
                let is_last = message.is_last;
                // Progress, which a client without event streams can't receive.
                if message.answers {
                    answers.push(message);
                }
                if is_last {
                    return BufferedResponse::Whole(answers);
                }
            }
        }
    }
}

/// Returns the response to a request that could not be written. If the server has ended, its exit
/// status will be known soon.
async fn unread(mut receiver: StreamReceiver) -> BufferedResponse {
    match timeout(LAST_WORDS, receiver.next()).await {
        Ok(Ok(Some(message))) => BufferedResponse::Stream(receiver, Some(message)),
        Ok(Err(ConnectionAbort(why))) => BufferedResponse::Broken(why),
        _ => BufferedResponse::Broken(UNREAD.to_owned()),
    }
}

fn get(hub: &Arc<Hub>, head: &Parts) -> OutgoingResponse {
    let Some(id) = header(&head.headers, SESSION) else {
        return not_allowed("POST");
    };
    let Some(upstream) = hub.session(id) else {
        return no_session(hub, head);
    };
    let exchange = BridgeExchange::begin(&upstream, head);
    if !matches!(
        AcceptedFormats::of(&head.headers),
        Some(AcceptedFormats::Both | AcceptedFormats::Stream)
    ) {
        return exchange.end(text(
            StatusCode::NOT_ACCEPTABLE,
            "only `text/event-stream` is available",
        ));
    }
    exchange.end(match upstream.open_get() {
        Ok(receiver) => event_stream(BridgeEventStream::new(receiver, None)),
        Err(StreamRefusal::Ended) => no_session(hub, head),
        Err(StreamRefusal::Taken) => {
            text(StatusCode::CONFLICT, "the session already has a GET stream")
        }
    })
}

fn delete(hub: &Arc<Hub>, head: &Parts) -> OutgoingResponse {
    let Some(id) = header(&head.headers, SESSION) else {
        return not_allowed("POST");
    };
    match hub.end(id) {
        Some(upstream) => BridgeExchange::begin(&upstream, head).end(empty(StatusCode::NO_CONTENT)),
        None => no_session(hub, head),
    }
}

/// Reads a body of limited size, as soon as there is memory for it.
async fn take_in(
    hub: &Hub,
    head: &Parts,
    mut body: Incoming,
) -> Result<(Vec<u8>, OwnedSemaphorePermit), OutgoingResponse> {
    let too_large = || {
        hub.refusals.refused("message too large");
        let why = format!("the message exceeds {MAX_MESSAGE} bytes");
        text(StatusCode::PAYLOAD_TOO_LARGE, &why)
    };
    let length = header(&head.headers, CONTENT_LENGTH.as_str());
    let length = length.and_then(|length| length.parse().ok());
    let size = length.unwrap_or(MAX_MESSAGE);
    if size > MAX_MESSAGE {
        return Err(too_large());
    }
    let permits = u32::try_from(size.max(1 << 10)).unwrap_or(u32::MAX);
    let room = hub.bodies.clone().acquire_many_owned(permits);
    let Ok(Ok(room)) = timeout(ROOM, room).await else {
        let why = "too many messages are pending";
        return Err(text(StatusCode::SERVICE_UNAVAILABLE, why));
    };
    let mut message = Vec::with_capacity(length.unwrap_or_default() + 1);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(text(StatusCode::BAD_REQUEST, "the body is incomplete"));
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if message.len() + data.len() > MAX_MESSAGE {
            return Err(too_large());
        }
        message.extend_from_slice(&data);
    }
    Ok((message, room))
}

/// Returns the error response for a message that could not be delivered.
fn turned_away(
    hub: &Arc<Hub>,
    head: &Parts,
    inbound: &Inbound,
    unplaced: DeliveryError,
) -> OutgoingResponse {
    match unplaced {
        DeliveryError::NoSession => no_session(hub, head),
        DeliveryError::Taken(upstream) => {
            let rejection = MessageRejection::taken(inbound.asks.first());
            refuse(hub, Some(&upstream), head, &rejection)
        }
        DeliveryError::TooMany => {
            let why = "too many server processes";
            hub.refusals.refused(why);
            text(StatusCode::SERVICE_UNAVAILABLE, why)
        }
        DeliveryError::Start(error) => gone(&format!("the server could not be started: {error}")),
    }
}

/// Returns the error response for an invalid message, and records it.
fn refuse(
    hub: &Arc<Hub>,
    upstream: Option<&Arc<UpstreamProcess>>,
    head: &Parts,
    rejection: &MessageRejection,
) -> OutgoingResponse {
    let why = format!("message rejected: {}", rejection.why);
    let response = responses::rejection(rejection);
    let Some(upstream) = upstream else {
        hub.refusals.refused(&why);
        return response;
    };
    let exchange = BridgeExchange::begin(upstream, head);
    upstream.tap.finding(FindingKind::Refused, why);
    exchange.end(response)
}

/// Returns the response for an unknown or ended session. Clients of an ended session get it too, so
/// only a session that never existed is recorded as a refusal.
fn no_session(hub: &Hub, head: &Parts) -> OutgoingResponse {
    if !header(&head.headers, SESSION).is_some_and(|id| hub.knows(id)) {
        hub.refusals.refused("unknown session id");
    }
    text(StatusCode::NOT_FOUND, "unknown session")
}

/// The record of one request and its response.
struct BridgeExchange {
    upstream: Arc<UpstreamProcess>,
    number: u64,
}

impl BridgeExchange {
    fn begin(upstream: &Arc<UpstreamProcess>, head: &Parts) -> Self {
        let number = upstream.next_exchange();
        let line = format!("{} {}", head.method, head.uri.path());
        let tap = &upstream.tap;
        tap.http(number, Direction::ToServer, line, &head.headers);
        Self {
            upstream: upstream.clone(),
            number,
        }
    }

    fn end(self, response: OutgoingResponse) -> OutgoingResponse {
        let line = response.status().to_string();
        let tap = &self.upstream.tap;
        tap.http(self.number, Direction::ToClient, line, response.headers());
        response
    }
}

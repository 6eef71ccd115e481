//! One request, from its id to its response or its cancellation.
//!
//! Its main type is [`RequestWire`]. If a caller stops waiting for any reason, the server gets a
//! cancellation.

use std::sync::Arc;
use std::time::Duration;

use proctor_record::message::UNWANTED;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Era, meta};
use crate::peer::{Peer, PendingAnswer, RequestFailure};
use crate::recorder::ConnectionTap;
use crate::rpc;
use crate::transport::{Labels, Link};

/// The request that detects a server of the stateless era.
pub(super) const PROBE: &str = "server/discover";

/// Sends requests, before and after the handshake.
pub(super) struct RequestWire<'a> {
    pub(super) peer: &'a Arc<Peer>,
    pub(super) link: &'a Link,
    pub(super) tap: &'a Arc<ConnectionTap>,
    pub(super) era: Era,
}

/// The time limits of one response.
#[derive(Clone, Copy)]
pub(super) struct ResponseTimeout {
    /// The time limit without progress. Progress starts it again.
    pub(super) idle: Duration,
    pub(super) total: Duration,
}

/// Why a request has no result.
pub(super) enum WireError {
    Failed(RequestFailure),
    TimedOut(Duration),
    Gone,
}

impl RequestWire<'_> {
    pub(super) async fn request(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        headers: Vec<(String, String)>,
        patience: ResponseTimeout,
    ) -> Result<Box<RawValue>, WireError> {
        if self.peer.ended().is_some() {
            return Err(WireError::Gone);
        }
        let waiting = self.peer.expect(self.tap);
        let id = waiting.id;
        let capabilities = self.peer.answers().capabilities();
        meta::add(&mut params, self.era, id, capabilities);
        let params = to_raw_value(&params).ok();
        let message = rpc::request(id, method, params.as_deref());
        let labels = Labels {
            tap: self.tap.clone(),
            id: Some(id),
            method: Some(method.to_owned()),
            headers,
        };
        let mut flight = InFlightRequest {
            wire: self,
            id,
            exchange: None,
            // The requests that open a connection can't be cancelled.
            cancellable: !["initialize", PROBE].contains(&method),
            is_probe: method == PROBE,
            ended: RequestEnd::Left,
        };
        match self.link.send(self.peer, message, &labels).await {
            Ok(exchange) => flight.exchange = exchange,
            Err(_) => return Err(WireError::Gone),
        }
        let outcome = wait(waiting, patience).await;
        flight.ended = match outcome {
            Ok(_) | Err(WireError::Failed(_)) => RequestEnd::Answered,
            Err(WireError::TimedOut(_)) => RequestEnd::TimedOut,
            Err(WireError::Gone) => RequestEnd::Left,
        };
        flight.cancellable &= flight.ended == RequestEnd::TimedOut;
        outcome
    }
}

async fn wait(
    mut waiting: PendingAnswer,
    ResponseTimeout {
        idle: patience,
        total,
    }: ResponseTimeout,
) -> Result<Box<RawValue>, WireError> {
    let started = Instant::now();
    let mut idle = started + patience;
    loop {
        tokio::select! {
            biased;
            answer = &mut waiting.answer => {
                return match answer {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(failure)) => Err(WireError::Failed(failure)),
                    Err(_) => Err(WireError::Gone),
                };
            }
            Ok(()) = waiting.progress.changed() => {
                idle = *waiting.progress.borrow() + patience;
            }
            () = tokio::time::sleep_until(idle.min(started + total)) => {
                // The configured time, unless progress has extended it.
                let set = [total, patience].into_iter().find(|set| idle.min(started + total) == started + *set);
                return Err(WireError::TimedOut(set.unwrap_or_else(|| started.elapsed())));
            }
        }
    }
}

/// A request without a response. If it is dropped, the server gets a cancellation.
struct InFlightRequest<'a> {
    wire: &'a RequestWire<'a>,
    id: u64,
    exchange: Option<JoinHandle<()>>,
    cancellable: bool,
    /// Whether it only detects the era. A server that starts slowly may answer it late; that is not
    /// a finding.
    is_probe: bool,
    ended: RequestEnd,
}

/// Why a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestEnd {
    /// The caller dropped it.
    Left,
    /// The server did not respond in time.
    TimedOut,
    /// The response arrived, or the request failed.
    Answered,
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        let Self { wire, id, .. } = *self;
        let reason = if self.ended == RequestEnd::TimedOut {
            if self.is_probe {
                wire.peer.abandon_probe(id);
            }
            wire.peer.give_up(id);
            "no response in time"
        } else {
            wire.peer.abandon(id);
            UNWANTED
        };
        // In the stateless era, closing the HTTP exchange cancels the request.
        if let Some(exchange) = self.exchange.take() {
            let is_answered = self.ended == RequestEnd::Answered;
            wire.link.finish(wire.tap, exchange, is_answered);
        }
        let told = matches!(wire.link, Link::Http(_)) && wire.era == Era::Stateless;
        if self.cancellable && !told {
            let params = format!(r#"{{"requestId":{id},"reason":"{reason}"}}"#);
            let params = RawValue::from_string(params).ok();
            let message = rpc::notification("notifications/cancelled", params.as_deref());
            wire.link.send_soon(wire.peer, wire.tap, message);
        }
    }
}

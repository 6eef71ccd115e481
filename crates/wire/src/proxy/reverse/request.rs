//! A request without a response.
//!
//! Its main type is [`ProxiedRequest`]. If the client disconnects meanwhile, that is recorded.

use std::sync::Arc;

use http::Method;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use proctor_record::event::{EndedBy, HttpFailure};

use super::body::BodyKind;
use super::exchange::ProxyExchange;
use super::leftover::UnreadBody;
use super::stream::RecordedStream;
use crate::proxy::upstream::UpstreamError;
use crate::web::ConnectionAbort;

/// A request that was forwarded to the server.
pub(super) struct ProxiedRequest {
    pub(super) method: Method,
    pub(super) exchange: Arc<ProxyExchange>,
    /// The part of the request body that the server did not read.
    pub(super) leftover: UnreadBody,
    stream: Option<RecordedStream>,
    is_answered: bool,
}

impl ProxiedRequest {
    pub(super) fn new(
        method: &Method,
        exchange: ProxyExchange,
        stream: Option<RecordedStream>,
    ) -> Self {
        Self {
            method: method.clone(),
            exchange: Arc::new(exchange),
            leftover: UnreadBody::default(),
            stream,
            is_answered: false,
        }
    }

    /// Whether it opens an HTTP+SSE stream.
    pub(super) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Ends the wait with a response, and returns the exchange and stream of it.
    pub(super) fn answered(mut self) -> (Arc<ProxyExchange>, Option<RecordedStream>) {
        self.is_answered = true;
        // A server may answer a request without reading it.
        if self.leftover.is_open() {
            let (exchange, leftover) = (self.exchange.clone(), self.leftover.clone());
            tokio::spawn(async move { leftover.keep(&exchange).await });
        }
        (self.exchange.clone(), self.stream.take())
    }

    /// Ends the wait without a response.
    pub(super) async fn failed(mut self, error: &UpstreamError) -> ConnectionAbort {
        self.is_answered = true;
        self.leftover.keep(&self.exchange).await;
        let nothing = Ok(Vec::new());
        let why = if let UpstreamError::Unauthorized(why) = error {
            let failure = HttpFailure::Unauthorized;
            self.exchange.failed(failure, why, &nothing);
            why.clone()
        } else {
            let why = format!("the server did not answer: {error}");
            self.exchange.failed(HttpFailure::Broken, &why, &nothing);
            self.exchange.finding(why.clone());
            why
        };
        if let Some(stream) = self.stream.take() {
            stream.close(&why, EndedBy::Server);
        }
        ConnectionAbort(why)
    }

    /// Returns the kind of the response body, by its headers.
    pub(super) fn content(&self, headers: &HeaderMap) -> BodyKind {
        let encoding = text(headers, &CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|name| name != "identity") {
            let detail = format!("unrequested content encoding `{encoding}`");
            self.exchange.finding(detail);
            return BodyKind::message();
        }
        let kind = text(headers, &CONTENT_TYPE).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return BodyKind::events();
        }
        // The response to a POST is a message, whatever its content type.
        let wants_message = self.method == Method::POST && self.exchange.is_streamable();
        if wants_message || kind.starts_with("application/json") {
            return BodyKind::message();
        }
        BodyKind::other()
    }
}

impl Drop for ProxiedRequest {
    fn drop(&mut self) {
        if !self.is_answered {
            let why = "the client disconnected before the response";
            self.leftover.discard(&self.exchange);
            self.exchange
                .failed(HttpFailure::ClientLeft, why, &Ok(Vec::new()));
            if let Some(stream) = self.stream.take() {
                stream.close(why, EndedBy::Client);
            }
        }
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.trim().to_ascii_lowercase())
}

//! The body of a response, which is recorded before its end is sent.
//!
//! Its main type is [`RecordedBody`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use proctor_record::event::{Direction, EndedBy, HttpFailure};
use proctor_record::record::MAX_FRAME;

use super::endpoints::Endpoints;
use super::exchange::ProxyExchange;
use super::stream::RecordedStream;
use crate::transport::frames::BodyCollector;
use crate::transport::sse::Events;
use crate::web::{ConnectionAbort, ResponseBody};

/// The content of a body.
pub(super) enum BodyKind {
    /// One message, or a batch.
    Message(BodyCollector),
    /// Content of another type, such as HTML.
    Other(BodyCollector),
    /// Events with one message each.
    Events(Events),
}

impl BodyKind {
    pub(super) fn message() -> Self {
        Self::Message(BodyCollector::new(MAX_FRAME))
    }

    pub(super) fn other() -> Self {
        Self::Other(BodyCollector::new(MAX_FRAME))
    }

    pub(super) fn events() -> Self {
        Self::Events(Events::new(MAX_FRAME))
    }
}

/// Records a body while it is forwarded.
pub(super) struct RecordedBody {
    inner: ResponseBody,
    exchange: Arc<ProxyExchange>,
    /// `None` once the body has ended.
    content: Option<BodyKind>,
    /// The HTTP+SSE stream whose body it is.
    stream: Option<RecordedStream>,
    endpoints: Option<Endpoints>,
}

impl RecordedBody {
    pub(super) fn new(
        inner: ResponseBody,
        exchange: Arc<ProxyExchange>,
        content: BodyKind,
        stream: Option<RecordedStream>,
    ) -> Self {
        let is_stream = matches!(content, BodyKind::Events(_));
        let is_empty = http_body::Body::is_end_stream(&inner);
        let mut passing = Self {
            inner,
            exchange,
            content: Some(content),
            endpoints: stream
                .as_ref()
                .filter(|_| is_stream)
                .map(RecordedStream::endpoints),
            stream,
        };
        // An empty body is never polled.
        if is_empty {
            passing.end();
        }
        passing
    }

    /// Records a part, and returns the bytes to forward.
    fn part(&mut self, part: Bytes) -> Bytes {
        match &mut self.content {
            Some(BodyKind::Message(body) | BodyKind::Other(body)) => body.take(&part),
            Some(BodyKind::Events(events)) => {
                for event in events.take(&part) {
                    match &self.stream {
                        Some(stream) if event.name == "endpoint" => {
                            stream.announce(&self.exchange, &event.data);
                        }
                        _ => self.exchange.event(Direction::ToClient, event.data),
                    }
                }
            }
            None => {}
        }
        match &mut self.endpoints {
            Some(endpoints) => endpoints.take(&part).into(),
            None => part,
        }
    }

    /// Records what is only known at the end.
    fn end(&mut self) {
        let why = match self.content.take() {
            Some(BodyKind::Message(body)) => {
                self.exchange.body(Direction::ToClient, body.end());
                "the response of the server is not a stream"
            }
            Some(BodyKind::Other(body)) => {
                let body = body.end();
                if body.as_ref().map_or(true, |body| !body.is_empty()) {
                    self.exchange
                        .aside(Direction::ToClient, "not a message", &body);
                }
                "the response of the server is not a stream"
            }
            Some(BodyKind::Events(events)) => {
                if let Some(rest) = events.end() {
                    let why = "the last event is incomplete";
                    self.exchange.aside(Direction::ToClient, why, &rest);
                }
                "the server ended the stream"
            }
            None => return,
        };
        self.close(why, EndedBy::Server);
    }

    /// Handles a body that ended early.
    fn broke(&mut self, why: &str, failure: HttpFailure) {
        let said = match self.content.take() {
            Some(BodyKind::Message(body) | BodyKind::Other(body)) => body.end(),
            Some(BodyKind::Events(events)) => events.end().unwrap_or_else(|| Ok(Vec::new())),
            None => return,
        };
        self.exchange.failed(failure, why, &said);
        let by = match failure {
            HttpFailure::Broken => EndedBy::Server,
            HttpFailure::TimedOut | HttpFailure::ClientLeft | HttpFailure::Unauthorized => {
                EndedBy::Client
            }
        };
        self.close(why, by);
    }

    fn close(&mut self, why: &str, by: EndedBy) {
        if let Some(stream) = self.stream.take() {
            stream.close(why, by);
        }
    }

    /// Returns the bytes that were held back to the end.
    fn rest(&mut self) -> Option<Bytes> {
        let rest = self.endpoints.take()?.end();
        (!rest.is_empty()).then(|| rest.into())
    }
}

impl http_body::Body for RecordedBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        loop {
            if self.content.is_none() {
                return Poll::Ready(self.rest().map(|rest| Ok(Frame::data(rest))));
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                None => self.end(),
                Some(Err(error)) => {
                    let why = format!("the connection broke: {error}");
                    self.exchange.finding(why.clone());
                    self.broke(&why, HttpFailure::Broken);
                    return Poll::Ready(Some(Err(ConnectionAbort(why))));
                }
                Some(Ok(frame)) => {
                    // Trailers can't be forwarded: the header that announces them belongs to one connection.
                    let Ok(part) = frame.into_data() else {
                        continue;
                    };
                    let part = self.part(part);
                    if http_body::Body::is_end_stream(&self.inner) {
                        self.end();
                    }
                    if !part.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(part))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_none() && self.endpoints.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.endpoints {
            Some(_) => SizeHint::default(),
            None => http_body::Body::size_hint(&self.inner),
        }
    }
}

impl Drop for RecordedBody {
    fn drop(&mut self) {
        let why = "the client disconnected before the end of the response";
        self.broke(why, HttpFailure::ClientLeft);
    }
}

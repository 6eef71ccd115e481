//! A stream of events on its way to a client, with what is put into it and between them.
//!
//! Its main type is [`Answer`].

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;
use tokio::sync::mpsc::Receiver;

use super::super::LIMIT;
use super::super::events::EventStream;
use super::streams::{Announced, Stream};
use crate::proxy::reverse::addresses::Addresses;
use crate::proxy::reverse::endpoints::Endpoints;
use crate::proxy::upstream::causes;
use crate::transport::sse::Events;
use crate::web::Broken;

/// A response that is a stream of events.
pub(super) struct Answer {
    /// Nothing, once it has ended.
    inner: Option<Incoming>,
    events: EventStream,
    /// Events of ours, on a stream on which a client listens, and which is known as long as this is.
    ours: Option<(Arc<Stream>, Receiver<Vec<u8>>)>,
    older: Option<Older>,
    ready: VecDeque<Vec<u8>>,
}

/// What is done on a stream that may be one of the older HTTP.
pub(super) struct Older {
    pub(super) addresses: Arc<Addresses>,
    pub(super) announced: Arc<Announced>,
    pub(super) stream: Arc<Stream>,
    events: Events,
    endpoints: Endpoints,
}

impl Older {
    pub(super) fn new(
        addresses: &Arc<Addresses>,
        announced: &Arc<Announced>,
        stream: &Arc<Stream>,
    ) -> Self {
        Self {
            addresses: addresses.clone(),
            announced: announced.clone(),
            stream: stream.clone(),
            events: Events::new(LIMIT),
            endpoints: Endpoints::new(addresses.clone()),
        }
    }

    /// Takes note of the addresses in a part, and gives it with those that a client must use.
    fn take(&mut self, part: &[u8]) -> Vec<u8> {
        for event in self.events.take(part) {
            let data = event.data.ok().filter(|_| event.name == "endpoint");
            let written = data.as_deref().map(String::from_utf8_lossy);
            if let Some(path) = written.and_then(|written| self.addresses.path(&written)) {
                self.announced.add(path, &self.stream);
            }
        }
        self.endpoints.take(part)
    }
}

impl Answer {
    /// The answer to one request.
    pub(super) fn new(inner: Incoming, events: EventStream) -> Self {
        Self {
            inner: Some(inner),
            events,
            ours: None,
            older: None,
            ready: VecDeque::new(),
        }
    }

    /// A stream that a client listens on.
    pub(super) fn listening(
        inner: Incoming,
        events: EventStream,
        ours: (Arc<Stream>, Receiver<Vec<u8>>),
        older: Option<Older>,
    ) -> Self {
        Self {
            ours: Some(ours),
            older,
            ..Self::new(inner, events)
        }
    }

    fn part(&mut self, part: &[u8]) {
        let said = match &mut self.older {
            Some(older) => self.events.take(&older.take(part)),
            None => self.events.take(part),
        };
        let (before, after) = said.bytes.split_at(said.gap.unwrap_or_default());
        self.ready.push_back(before.to_vec());
        if said.gap.is_some()
            && let Some((_, ours)) = &mut self.ours
        {
            // A server that never pauses leaves no other moment for it.
            self.ready
                .extend(std::iter::from_fn(|| ours.try_recv().ok()));
        }
        self.ready.push_back(after.to_vec());
    }

    fn end(&mut self) {
        self.inner = None;
        if let Some(older) = &mut self.older {
            let rest = older.endpoints.end();
            let said = self.events.take(&rest);
            self.ready.push_back(said.bytes);
        }
        self.ready.push_back(self.events.end());
    }

    /// An event of ours, if there is one and it may come now.
    fn poll_ours(&mut self, context: &mut Context<'_>) -> Option<Vec<u8>> {
        let (_, ours) = self.ours.as_mut()?;
        if !self.events.is_between_events() {
            return None;
        }
        match ours.poll_recv(context) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            while let Some(bytes) = self.ready.pop_front() {
                if !bytes.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
                }
            }
            if let Some(event) = self.poll_ours(context) {
                return Poll::Ready(Some(Ok(Frame::data(event.into()))));
            }
            let Some(inner) = &mut self.inner else {
                return Poll::Ready(None);
            };
            match ready!(Pin::new(inner).poll_frame(context)) {
                None => self.end(),
                Some(Err(error)) => return Poll::Ready(Some(Err(Broken(causes(&error))))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(part) => self.part(&part),
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
            }
        }
    }
}

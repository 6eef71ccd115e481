//! An edited event stream on its way to a client.
//!
//! Its main type is [`EditedStream`].

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use reqwest::Url;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Sleep, sleep};

use super::conversations::Stream;
use crate::edit::conversation::Conversation;
use crate::edit::events::EventStreamEditor;
use crate::edit::output::Part;
use crate::proxy::addresses::{AnnouncedEndpoints, path_of};
use crate::proxy::upstream::{PooledBody, causes};
use crate::transport::sse::Events;
use crate::web::ConnectionAbort;

/// The maximum length of an announced URL.
const LONGEST: usize = 16 << 10;

/// A response that is an event stream.
pub(super) struct EditedStream {
    /// `None` once the stream has ended.
    inner: Option<PooledBody>,
    events: EventStreamEditor,
    listening: Option<StreamAdditions>,
    ready: VecDeque<Part>,
    sleeping: Option<Pin<Box<Sleep>>>,
}

/// The additions of a stream on which a client listens.
pub(super) struct StreamAdditions {
    /// Keeps the stream registered.
    stream: Arc<Stream>,
    /// Events of the editor, which the server never sent.
    ours: Receiver<Vec<u8>>,
    server: Url,
    announced: Arc<AnnouncedEndpoints<Stream>>,
    events: Events,
}

impl StreamAdditions {
    pub(super) fn new(
        (stream, ours): (Arc<Stream>, Receiver<Vec<u8>>),
        server: &Url,
        announced: &Arc<AnnouncedEndpoints<Stream>>,
    ) -> Self {
        Self {
            stream,
            ours,
            server: server.clone(),
            announced: announced.clone(),
            events: Events::new(LONGEST),
        }
    }

    /// Stores the endpoint URLs that HTTP+SSE announces.
    fn note(&mut self, part: &[u8]) {
        for event in self.events.take(part) {
            let data = event.data.ok().filter(|_| event.name == "endpoint");
            let written = data.as_deref().map(String::from_utf8_lossy);
            if let Some(path) = written.and_then(|written| path_of(&self.server, &written)) {
                self.announced.add(path, &self.stream);
            }
        }
    }
}

impl EditedStream {
    /// Edits the events of a conversation; with `listening`, also sends our own events.
    pub(super) fn new(
        inner: PooledBody,
        conversation: &Arc<Conversation>,
        listening: Option<StreamAdditions>,
    ) -> Self {
        Self {
            inner: Some(inner),
            events: EventStreamEditor::new(conversation),
            listening,
            ready: VecDeque::new(),
            sleeping: None,
        }
    }

    /// Returns our own events that wait.
    fn waiting(&mut self) -> Vec<u8> {
        let Some(StreamAdditions { ours, .. }) = &mut self.listening else {
            return Vec::new();
        };
        std::iter::from_fn(|| ours.try_recv().ok())
            .flatten()
            .collect()
    }

    /// Returns an event of ours, if there is one and it can be inserted now.
    fn poll_ours(&mut self, context: &mut Context<'_>) -> Option<Vec<u8>> {
        let StreamAdditions { ours, .. } = self.listening.as_mut()?;
        if !self.events.is_between_events() {
            return None;
        }
        match ours.poll_recv(context) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    /// Returns the output that is ready.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        loop {
            if let Some(sleeping) = &mut self.sleeping {
                ready!(sleeping.as_mut().poll(context));
                self.sleeping = None;
            }
            let bytes = match self.ready.pop_front() {
                Some(Part::Bytes(bytes)) => bytes,
                // A server that never pauses leaves no other opportunity.
                Some(Part::Gap) => self.waiting(),
                Some(Part::Wait(time)) => {
                    self.sleeping = Some(Box::pin(sleep(time)));
                    continue;
                }
                None => return Poll::Ready(None),
            };
            if !bytes.is_empty() {
                return Poll::Ready(Some(bytes));
            }
        }
    }
}

impl Body for EditedStream {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        loop {
            if let Some(bytes) = ready!(self.poll_ready(context)) {
                return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
            }
            if let Some(event) = self.poll_ours(context) {
                return Poll::Ready(Some(Ok(Frame::data(event.into()))));
            }
            let Some(inner) = &mut self.inner else {
                return Poll::Ready(None);
            };
            match ready!(Pin::new(inner).poll_frame(context)) {
                None => {
                    self.inner = None;
                    let torn = self.events.end();
                    self.ready.push_back(Part::Bytes(torn));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(ConnectionAbort(causes(&error))))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(part) => {
                        if let Some(listening) = &mut self.listening {
                            listening.note(&part);
                        }
                        let output = self.events.take(&part);
                        self.ready.extend(output.parts());
                    }
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
            }
        }
    }
}

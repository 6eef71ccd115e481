//! One open response: a queue from the server to the client.
//!
//! Its main types are [`StreamSender`] and [`StreamReceiver`]. The queue is bounded in bytes. A
//! full queue blocks the sender, and with it the output of the process, so a slow client slows the
//! server down like a full pipe would. A client that reads nothing for [`STALL`] loses its stream,
//! so that others don't wait forever.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::router::StreamId;
use super::upstream::UpstreamProcess;
use crate::web::ConnectionAbort;

/// How long a full stream may make no progress.
const STALL: Duration = Duration::from_secs(10);
/// The size of the queue in bytes. A larger message waits alone.
const ROOM: usize = 1 << 20;
/// The overhead per message in bytes.
const OVERHEAD: usize = 256;

/// A message for a client.
#[derive(Debug)]
pub(super) struct OutboundMessage {
    pub(super) bytes: Bytes,
    /// Whether it is a response.
    pub(super) answers: bool,
    /// Whether it is the last response of the stream.
    pub(super) is_last: bool,
    /// The code of an error response.
    pub(super) error: Option<i64>,
}

#[derive(Debug)]
enum StreamItem {
    Message(OutboundMessage, Option<OwnedSemaphorePermit>),
    /// The end of a stream without a last message.
    End,
    /// The expected response will not come, for this reason.
    Broken(String),
}

/// Why a message could not be queued.
#[derive(Debug)]
pub(super) enum PutError {
    /// The client closed the stream.
    Gone,
    /// The client does not read.
    Stalled,
}

/// The server's end of the queue.
#[derive(Debug, Clone)]
pub(super) struct StreamSender {
    to: mpsc::UnboundedSender<StreamItem>,
    room: Arc<Semaphore>,
    patience: Duration,
}

/// The client's end of the queue. Dropping it tells the process that the client has left.
pub(super) struct StreamReceiver {
    from: mpsc::UnboundedReceiver<StreamItem>,
    room: Arc<Semaphore>,
    leaving: AbandonSignal,
}

/// The process and stream to notify when the client leaves.
type AbandonSignal = Option<(Arc<UpstreamProcess>, StreamId)>;

/// Creates both ends of a stream.
pub fn stream(upstream: &Arc<UpstreamProcess>, stream: StreamId) -> (StreamSender, StreamReceiver) {
    ends(Some((upstream.clone(), stream)))
}

fn ends(leaving: AbandonSignal) -> (StreamSender, StreamReceiver) {
    let (to, from) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM));
    let sender = StreamSender {
        to,
        room: room.clone(),
        patience: STALL,
    };
    let receiver = StreamReceiver {
        from,
        room,
        leaving,
    };
    (sender, receiver)
}

impl StreamSender {
    /// Queues a message as soon as there is room.
    pub(super) async fn put(&self, message: OutboundMessage) -> Result<(), PutError> {
        let size = (message.bytes.len() + OVERHEAD).min(ROOM);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(size);
        match tokio::time::timeout(self.patience, room).await {
            Ok(Ok(room)) => {
                let piece = StreamItem::Message(message, Some(room));
                self.to.send(piece).map_err(|_| PutError::Gone)
            }
            Ok(Err(_)) => Err(PutError::Gone),
            Err(_) => Err(PutError::Stalled),
        }
    }

    /// Queues a small message that waited for a stream, without waiting for room.
    pub(super) fn put_now(&self, bytes: Bytes) {
        let message = OutboundMessage {
            bytes,
            answers: false,
            is_last: false,
            error: None,
        };
        let _ = self.to.send(StreamItem::Message(message, None));
    }

    /// Ends the stream normally.
    pub(super) fn end(&self) {
        self.room.close();
        let _ = self.to.send(StreamItem::End);
    }

    /// Ends the stream because the expected response will not come.
    pub(super) fn fail(&self, why: &str) {
        self.room.close();
        let _ = self.to.send(StreamItem::Broken(why.to_owned()));
    }
}

impl StreamReceiver {
    /// Returns the next message; `None` at the end; an error if the stream fails.
    pub(super) async fn next(&mut self) -> Result<Option<OutboundMessage>, ConnectionAbort> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<OutboundMessage>, ConnectionAbort>> {
        self.from.poll_recv(context).map(|piece| match piece {
            // The room becomes free once the message is handed over.
            Some(StreamItem::Message(message, _room)) => Ok(Some(message)),
            Some(StreamItem::End) => Ok(None),
            Some(StreamItem::Broken(why)) => Err(ConnectionAbort(why)),
            None => Err(ConnectionAbort("the stream was dropped".to_owned())),
        })
    }
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        self.room.close();
        if let Some((upstream, stream)) = &self.leaving {
            upstream.leave(*stream);
        }
    }
}

/// Encodes a stream as server-sent events.
pub(super) struct BridgeEventStream {
    receiver: StreamReceiver,
    /// Parts of events, so that large messages are not copied.
    parts: VecDeque<Bytes>,
    is_over: bool,
}

impl BridgeEventStream {
    /// Returns a stream that has already ended.
    pub(super) fn over(receiver: StreamReceiver) -> Self {
        Self {
            is_over: true,
            ..Self::new(receiver, None)
        }
    }

    /// Returns a stream that starts with a message that was already received.
    pub(super) fn new(receiver: StreamReceiver, first: Option<OutboundMessage>) -> Self {
        let mut events = Self {
            receiver,
            parts: VecDeque::new(),
            is_over: false,
        };
        if let Some(first) = first {
            events.add(first);
        }
        events
    }

    fn add(&mut self, message: OutboundMessage) {
        self.is_over = message.is_last;
        self.parts.extend([
            Bytes::from_static(b"event: message\ndata: "),
            message.bytes,
            Bytes::from_static(b"\n\n"),
        ]);
    }
}

impl http_body::Body for BridgeEventStream {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match std::task::ready!(self.receiver.poll(context)) {
                Ok(Some(message)) => self.add(message),
                Ok(None) => self.is_over = true,
                Err(broken) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(broken)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> OutboundMessage {
        OutboundMessage {
            bytes: vec![b'x'; size].into(),
            answers: false,
            is_last: false,
            error: None,
        }
    }

    #[tokio::test]
    async fn a_full_queue_blocks_the_sender() {
        let (sender, mut receiver) = ends(None);
        // A message larger than the queue waits alone.
        sender.put(message(3 * ROOM)).await.unwrap();
        let more = sender.clone();
        let waiting = tokio::spawn(async move { more.put(message(1)).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(
            receiver.next().await.unwrap().unwrap().bytes.len(),
            3 * ROOM
        );
        waiting.await.unwrap().unwrap();
        drop(receiver);
        assert!(matches!(sender.put(message(1)).await, Err(PutError::Gone)));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_stream() {
        let (mut sender, mut receiver) = ends(None);
        sender.patience = Duration::from_millis(20);
        sender.put(message(ROOM)).await.unwrap();
        let stalled = sender.put(message(1)).await;
        assert!(matches!(stalled, Err(PutError::Stalled)));
        sender.fail("it does not read");
        // Queued messages can still be read, and then the stream fails.
        assert!(receiver.next().await.unwrap().is_some());
        assert!(receiver.next().await.is_err());
    }

    #[tokio::test]
    async fn an_event_stream_ends_with_the_last_response() {
        let (sender, receiver) = ends(None);
        sender.put(message(2)).await.unwrap();
        let last = OutboundMessage {
            is_last: true,
            ..message(1)
        };
        sender.put(last).await.unwrap();
        let events = BridgeEventStream::new(receiver, None);
        let bytes = http_body_util::BodyExt::collect(events).await.unwrap();
        let expected = "event: message\ndata: xx\n\nevent: message\ndata: x\n\n";
        assert_eq!(bytes.to_bytes(), expected);
    }
}

//! One response that is open: what the server says goes in, what the client reads comes out.
//!
//! Its main types are [`StreamSender`] and [`StreamReceiver`]. What lies between them is bounded in bytes. Who puts
//! in more waits, and with it everything that the same process says: so a client that does not read
//! slows the server down, as it would on a pipe. One that takes nothing for [`STALL`] loses its
//! stream, so that others do not wait for ever.

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

/// How long a full stream may take nothing.
const STALL: Duration = Duration::from_secs(10);
/// How many bytes wait in a stream. A larger message waits alone.
const ROOM: usize = 1 << 20;
/// What a message takes up besides its bytes.
const OVERHEAD: usize = 256;

/// A message on its way to a client.
#[derive(Debug)]
pub(super) struct OutboundMessage {
    pub(super) bytes: Bytes,
    /// Whether it is an answer.
    pub(super) answers: bool,
    /// Whether nothing comes after it, since it is the last answer.
    pub(super) is_last: bool,
    /// The code of an answer that is an error.
    pub(super) error: Option<i64>,
}

#[derive(Debug)]
enum StreamItem {
    Message(OutboundMessage, Option<OwnedSemaphorePermit>),
    /// The end of a stream that never has a last message.
    End,
    /// What was waited for does not come.
    Broken(String),
}

/// Why a message could not be put in.
#[derive(Debug)]
pub(super) enum PutError {
    /// The client has gone.
    Gone,
    /// The client does not read.
    Stalled,
}

/// Where messages are put in.
#[derive(Debug, Clone)]
pub(super) struct StreamSender {
    to: mpsc::UnboundedSender<StreamItem>,
    room: Arc<Semaphore>,
    patience: Duration,
}

/// Where they come out. Dropping it tells the process that nobody waits any more.
pub(super) struct StreamReceiver {
    from: mpsc::UnboundedReceiver<StreamItem>,
    room: Arc<Semaphore>,
    leaving: AbandonSignal,
}

/// What is told that nobody waits any more.
type AbandonSignal = Option<(Arc<UpstreamProcess>, StreamId)>;

/// Both ends of a stream.
pub fn stream(upstream: &Arc<UpstreamProcess>, stream: StreamId) -> (StreamSender, StreamReceiver) {
    ends(Some((upstream.clone(), stream)))
}

fn ends(leaving: AbandonSignal) -> (StreamSender, StreamReceiver) {
    let (to, from) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM));
    let outlet = StreamSender {
        to,
        room: room.clone(),
        patience: STALL,
    };
    let inflow = StreamReceiver {
        from,
        room,
        leaving,
    };
    (outlet, inflow)
}

impl StreamSender {
    /// Puts in a message, once there is room.
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

    /// Puts in what has waited for a stream, which is little, without waiting more.
    pub(super) fn put_now(&self, bytes: Bytes) {
        let message = OutboundMessage {
            bytes,
            answers: false,
            is_last: false,
            error: None,
        };
        let _ = self.to.send(StreamItem::Message(message, None));
    }

    /// Ends the stream, as it should end.
    pub(super) fn end(&self) {
        self.room.close();
        let _ = self.to.send(StreamItem::End);
    }

    /// Ends the stream without what it waits for.
    pub(super) fn fail(&self, why: &str) {
        self.room.close();
        let _ = self.to.send(StreamItem::Broken(why.to_owned()));
    }
}

impl StreamReceiver {
    /// The next message; nothing at the end; or why there is none.
    pub(super) async fn next(&mut self) -> Result<Option<OutboundMessage>, ConnectionAbort> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<OutboundMessage>, ConnectionAbort>> {
        self.from.poll_recv(context).map(|piece| match piece {
            // The room is free once the message is handed on.
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

/// A stream as an event stream.
pub(super) struct BridgeEventStream {
    inflow: StreamReceiver,
    /// Parts of events, so that large messages are not copied.
    parts: VecDeque<Bytes>,
    is_over: bool,
}

impl BridgeEventStream {
    /// One that has ended before it began.
    pub(super) fn over(inflow: StreamReceiver) -> Self {
        Self {
            is_over: true,
            ..Self::new(inflow, None)
        }
    }

    /// Starts with a message that was taken already.
    pub(super) fn new(inflow: StreamReceiver, first: Option<OutboundMessage>) -> Self {
        let mut events = Self {
            inflow,
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
            match std::task::ready!(self.inflow.poll(context)) {
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
    async fn who_puts_in_too_much_waits_until_it_is_taken() {
        let (outlet, mut inflow) = ends(None);
        // Larger than all the room there is: it goes alone.
        outlet.put(message(3 * ROOM)).await.unwrap();
        let more = outlet.clone();
        let waiting = tokio::spawn(async move { more.put(message(1)).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(inflow.next().await.unwrap().unwrap().bytes.len(), 3 * ROOM);
        waiting.await.unwrap().unwrap();
        drop(inflow);
        assert!(matches!(outlet.put(message(1)).await, Err(PutError::Gone)));
    }

    #[tokio::test]
    async fn who_does_not_read_is_given_up() {
        let (mut outlet, mut inflow) = ends(None);
        outlet.patience = Duration::from_millis(20);
        outlet.put(message(ROOM)).await.unwrap();
        let stalled = outlet.put(message(1)).await;
        assert!(matches!(stalled, Err(PutError::Stalled)));
        outlet.fail("it does not read");
        // What it had is still there, and then nothing.
        assert!(inflow.next().await.unwrap().is_some());
        assert!(inflow.next().await.is_err());
    }

    #[tokio::test]
    async fn events_are_lines_and_end_with_the_last_answer() {
        let (outlet, inflow) = ends(None);
        outlet.put(message(2)).await.unwrap();
        let last = OutboundMessage {
            is_last: true,
            ..message(1)
        };
        outlet.put(last).await.unwrap();
        let events = BridgeEventStream::new(inflow, None);
        let bytes = http_body_util::BodyExt::collect(events).await.unwrap();
        let expected = "event: message\ndata: xx\n\nevent: message\ndata: x\n\n";
        assert_eq!(bytes.to_bytes(), expected);
    }
}

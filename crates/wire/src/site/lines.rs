//! Response bodies that are written while they are sent.
//!
//! Its main types are [`ChunkSender`] and [`ChunkBody`]. Only a few chunks are in memory: the sender waits for the
//! client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

use crate::web::ConnectionAbort;

/// How many chunks wait for the client.
const WAITING: usize = 4;

/// The body of a response that is not complete yet.
#[derive(Debug)]
pub struct ChunkBody(mpsc::Receiver<Result<Bytes, ConnectionAbort>>);

/// Writes a body. The body ends when this is dropped.
#[derive(Debug)]
pub struct ChunkSender(mpsc::Sender<Result<Bytes, ConnectionAbort>>);

/// A body, and the sender that writes it.
pub fn chunks() -> (ChunkSender, ChunkBody) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (ChunkSender(sender), ChunkBody(receiver))
}

impl ChunkSender {
    /// Waits until there is room. Returns `false` if the client is gone.
    pub async fn send(&self, chunk: impl Into<Bytes>) -> bool {
        self.0.send(Ok(chunk.into())).await.is_ok()
    }

    /// Like [`ChunkSender::send`], for a thread outside the runtime.
    pub fn send_blocking(&self, chunk: impl Into<Bytes>) -> bool {
        self.0.blocking_send(Ok(chunk.into())).is_ok()
    }

    /// Ends the connection, so that the client does not take the body for complete.
    pub fn abort_blocking(self, reason: String) {
        let _ = self.0.blocking_send(Err(ConnectionAbort(reason)));
    }

    /// Waits until the client is gone.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

impl http_body::Body for ChunkBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        let chunk = self.0.poll_recv(context);
        chunk.map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

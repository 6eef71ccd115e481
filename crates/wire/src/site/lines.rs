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

/// Bytes of a response. A copy is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk(pub(super) Bytes);

impl Chunk {
    /// The bytes in parts of at most this size.
    pub fn parts(mut self, size: usize) -> impl Iterator<Item = Self> {
        std::iter::from_fn(move || {
            let next = self.0.split_to(size.max(1).min(self.0.len()));
            (!next.is_empty()).then_some(Self(next))
        })
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<String> for Chunk {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

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
    pub async fn send(&self, chunk: impl Into<Chunk>) -> bool {
        self.0.send(Ok(chunk.into().0)).await.is_ok()
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

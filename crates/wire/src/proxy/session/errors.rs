//! Forwards a server's stderr to its client and into the record.
//!
//! Its main type is [`Errors`].

use std::io::{self, Write};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::OwnedWriteHalf;

use crate::relay::message::{self, RelayMessageKind};
use proctor_contain::tail::Tail;

/// The maximum number of bytes in one read.
const CHUNK: usize = 16 << 10;

/// Where a client sees the stderr of its server.
pub(crate) enum Errors {
    /// The stderr of this process.
    Own,
    /// The relay, which writes it to its own stderr.
    Relay(OwnedWriteHalf),
}

impl Errors {
    /// Forwards stderr until its end, and stores the end of it. If the client does not read it, the
    /// server is not blocked.
    pub(crate) async fn tell(mut self, mut stderr: impl AsyncRead + Unpin, tail: Tail) -> Self {
        let mut chunk = vec![0; CHUNK];
        let mut is_heard = true;
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            tail.push(&chunk[..read]);
            is_heard = is_heard && self.write(&chunk[..read]).await.is_ok();
        }
        self
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Own => {
                let bytes = bytes.to_vec();
                let writing = move || io::stderr().write_all(&bytes);
                tokio::task::spawn_blocking(writing).await?
            }
            Self::Relay(control) => {
                let message = message::render(RelayMessageKind::Errors, bytes);
                control.write_all(&message).await
            }
        }
    }
}

//! Where a server's stderr goes: to its client, and into the record.
//!
//! Its main type is [`Errors`].

use std::io::{self, Write};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::OwnedWriteHalf;

use crate::relay::message::{self, RelayMessageKind};
use proctor_contain::tail::Tail;

/// How much is passed on at once.
const CHUNK: usize = 16 << 10;

/// Where a client sees what its server says on stderr.
pub(crate) enum Errors {
    /// This process's own stderr.
    Own,
    /// The other end of a relay, which writes it to its own.
    Relay(OwnedWriteHalf),
}

impl Errors {
    /// Passes on what comes until there is nothing more, and keeps the end of it. A client that does
    /// not want it does not keep the server from saying it.
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

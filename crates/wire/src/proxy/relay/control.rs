//! The run's end of the relay socket.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::relay::message::{self, HEAD, RelayMessageKind};
use crate::streams::is_stream;
use proctor_contain::os::receive_descriptors;
use proctor_contain::process::ProcessExit;

/// How long sending the last message may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Receives the input and output with the first message; `None` if the relay disconnected first; an
/// error if the message is invalid.
pub(super) async fn hand_over(stream: &UnixStream) -> Result<Option<(OwnedFd, OwnedFd)>, String> {
    let mut head = [0; HEAD];
    let received = stream
        .async_io(Interest::READABLE, || {
            receive_descriptors(stream, &mut head)
        })
        .await;
    let (read, streams) = match received {
        Ok((0, _)) | Err(_) => return Ok(None),
        Ok(received) => received,
    };
    if read < HEAD || message::read_head(head) != Some((RelayMessageKind::HandOver, 0)) {
        return Err("unexpected message from the relay".to_owned());
    }
    match <[OwnedFd; 2]>::try_from(streams) {
        Ok([input, output]) if is_stream(&input) && is_stream(&output) => Ok(Some((input, output))),
        Ok(_) => Err("the descriptors that it handed over are not streams".to_owned()),
        Err(streams) => Err(format!("it handed over {} streams, not two", streams.len())),
    }
}

/// The last message of a relay.
pub(super) enum RelayMessage {
    /// It was asked to end, or it disconnected.
    Leave,
    /// An unexpected message, with its description.
    Unexpected(String),
}

/// Waits for the last message of a relay.
pub(super) async fn listen(mut reader: OwnedReadHalf) -> RelayMessage {
    let mut head = [0; HEAD];
    if reader.read_exact(&mut head).await.is_err() {
        return RelayMessage::Leave;
    }
    match message::read_head(head) {
        Some((RelayMessageKind::Leave, 0)) => RelayMessage::Leave,
        Some((RelayMessageKind::HandOver, _)) => {
            RelayMessage::Unexpected("it handed over streams twice".to_owned())
        }
        _ => RelayMessage::Unexpected("unexpected message from the relay".to_owned()),
    }
}

/// Sends a relay the exit status of the server.
pub(super) async fn tell(mut writer: OwnedWriteHalf, how: ProcessExit) {
    let (kind, number) = match how {
        ProcessExit::Exited(code) => (RelayMessageKind::Exited, code),
        ProcessExit::Signalled(signal) => (RelayMessageKind::Signalled, signal),
        ProcessExit::Unknown => (RelayMessageKind::Exited, 1),
    };
    let message = message::render(kind, &number.to_le_bytes());
    // The relay may already be gone.
    let _ = timeout(LAST_WORD, writer.write_all(&message)).await;
}

/// Tells a relay that it gets no server, and why.
pub(super) async fn refuse(mut writer: OwnedWriteHalf, why: &str) {
    let message = message::render(RelayMessageKind::Refused, why.as_bytes());
    let _ = timeout(LAST_WORD, writer.write_all(&message)).await;
}

//! The body of a request. The client has sent it, so all of it is recorded, whatever the server reads.
//!
//! Its main type is [`Upload`]. The connection to the server reads the body through an [`UploadReader`], which records it.
//! If the server stops reading, [`Upload::keep`] reads and records the rest.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use proctor_record::event::Direction;
use proctor_record::record::MAX_FRAME;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::exchange::ProxyExchange;
use crate::transport::frames::BodyCollector;
use crate::web::{ConnectionAbort, ResponseBody};

/// How long the server may read nothing, and how long the client may then take to send the rest.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the client may take to send the rest when the proxy is closed.
const AT_CLOSE: Duration = Duration::from_secs(1);

/// Why a request has no response if its body is incomplete.
pub(super) const BROKEN: &str = "the client broke off its request";

const UNREAD: &str = "the server did not read the rest of the request";

/// A body that the connection to the server and the exchange share.
#[derive(Clone, Default)]
pub(super) struct Upload(Arc<SharedUpload>);

#[derive(Default)]
struct SharedUpload {
    state: Mutex<UploadState>,
    /// The reader has finished, or was dropped.
    settled: Notify,
}

#[derive(Default)]
struct UploadState {
    stage: UploadStage,
    /// Wakes the connection to the server, which waits for more of the body.
    reader: Option<Waker>,
    /// Whether the reader records what it has read if it is dropped.
    is_abandoned: bool,
}

#[derive(Default)]
enum UploadStage {
    /// The connection to the server reads it.
    Reading(PartialBody),
    /// The connection to the server was closed before the end.
    Left(PartialBody),
    /// The exchange reads the rest.
    Taken,
    /// The client broke it off.
    Broken,
    /// It is recorded, or there is none.
    #[default]
    Done,
}

/// A body of which a part was read.
struct PartialBody {
    rest: ResponseBody,
    read: BodyCollector,
    bytes: usize,
}

impl Upload {
    /// Returns the body for the connection to the server.
    pub(super) fn reader(&self, body: ResponseBody, exchange: Arc<ProxyExchange>) -> UploadReader {
        let length = body.size_hint();
        if !body.is_end_stream() {
            self.lock().stage = UploadStage::Reading(PartialBody {
                rest: body,
                read: BodyCollector::new(MAX_FRAME),
                bytes: 0,
            });
        }
        UploadReader {
            upload: self.clone(),
            exchange,
            length,
        }
    }

    /// Whether a part may be neither read nor recorded.
    pub(super) fn is_open(&self) -> bool {
        let stage = &self.lock().stage;
        matches!(stage, UploadStage::Reading(_) | UploadStage::Left(_))
    }

    /// Whether the client broke it off.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.lock().stage, UploadStage::Broken)
    }

    /// Records the whole body. Waits while the server reads it. If the server stops, or the proxy is closed, the rest is
    /// read here, and the connection to the server is closed.
    pub(super) async fn keep(&self, exchange: &ProxyExchange, mut closing: watch::Receiver<bool>) {
        while let Some(bytes) = self.bytes_read() {
            tokio::select! {
                () = self.0.settled.notified() => {}
                () = closed(&mut closing) => break,
                () = sleep(PATIENCE) => if self.bytes_read() == Some(bytes) {
                    break;
                }
            }
        }
        let Some(mut body) = self.take() else {
            return;
        };
        let limit = async {
            tokio::select! {
                () = sleep(PATIENCE) => {}
                () = closed(&mut closing) => sleep(AT_CLOSE).await,
            }
        };
        let is_whole = tokio::select! {
            biased;
            is_whole = body.finish() => is_whole,
            () = limit => false,
        };
        let message = body.read.end();
        if is_whole {
            exchange.body(Direction::ToServer, message);
        } else {
            exchange.aside(Direction::ToServer, UNREAD, &message);
        }
    }

    /// Records the part that was read, without waiting for the rest. The body may still be on its way to the server.
    pub(super) fn abandon(&self, exchange: &ProxyExchange) {
        let left = {
            let mut state = self.lock();
            state.is_abandoned = true;
            match state.stage {
                UploadStage::Left(_) => state.take(),
                _ => None,
            }
        };
        if let Some(body) = left {
            exchange.aside(Direction::ToServer, UNREAD, &body.read.end());
        }
    }

    /// How much the connection to the server has read, while it reads.
    fn bytes_read(&self) -> Option<usize> {
        match &self.lock().stage {
            UploadStage::Reading(body) => Some(body.bytes),
            _ => None,
        }
    }

    fn take(&self) -> Option<PartialBody> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, UploadState> {
        let state = self.0.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the proxy is being closed.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // Without a sender it is closed, too.
    let _ = closing.wait_for(|is_closing| *is_closing).await;
}

impl UploadState {
    fn take(&mut self) -> Option<PartialBody> {
        match std::mem::replace(&mut self.stage, UploadStage::Taken) {
            UploadStage::Reading(body) | UploadStage::Left(body) => {
                if let Some(reader) = self.reader.take() {
                    reader.wake();
                }
                Some(body)
            }
            settled => {
                self.stage = settled;
                None
            }
        }
    }
}

impl PartialBody {
    /// Takes a frame, and returns the bytes to forward. Trailers can't be forwarded: the header that announces them
    /// belongs to one connection.
    fn part(&mut self, frame: Frame<Bytes>) -> Option<Bytes> {
        let part = frame.into_data().ok()?;
        self.read.take(&part);
        self.bytes += part.len();
        Some(part).filter(|part| !part.is_empty())
    }

    /// Reads the rest. Returns `false` if the client breaks off.
    async fn finish(&mut self) -> bool {
        while !self.rest.is_end_stream()
            && let Some(frame) = self.rest.frame().await
        {
            let Ok(frame) = frame else {
                return false;
            };
            self.part(frame);
        }
        true
    }
}

/// Reads a body for the connection to the server, and records it before its end is sent.
pub(super) struct UploadReader {
    upload: Upload,
    exchange: Arc<ProxyExchange>,
    /// The length, as it was at the beginning.
    length: SizeHint,
}

impl UploadReader {
    fn record(&self, stage: &mut UploadStage) {
        if let UploadStage::Reading(body) = std::mem::take(stage) {
            // Recorded first: whoever sees that it is done may close the record.
            self.exchange.body(Direction::ToServer, body.read.end());
        }
        self.upload.0.settled.notify_one();
    }

    fn broke(&self, stage: &mut UploadStage) -> ConnectionAbort {
        if let UploadStage::Reading(body) = std::mem::replace(stage, UploadStage::Broken) {
            self.exchange
                .aside(Direction::ToServer, BROKEN, &body.read.end());
        }
        self.upload.0.settled.notify_one();
        ConnectionAbort(BROKEN.to_owned())
    }
}

impl Body for UploadReader {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        let mut state = self.upload.lock();
        let UploadState { stage, reader, .. } = &mut *state;
        loop {
            let body = match stage {
                UploadStage::Reading(body) => body,
                UploadStage::Done => return Poll::Ready(None),
                UploadStage::Left(_) | UploadStage::Taken | UploadStage::Broken => {
                    let why = "the rest of the request is not sent".to_owned();
                    return Poll::Ready(Some(Err(ConnectionAbort(why))));
                }
            };
            let Poll::Ready(frame) = Pin::new(&mut body.rest).poll_frame(context) else {
                *reader = Some(context.waker().clone());
                return Poll::Pending;
            };
            match frame {
                None => self.record(stage),
                Some(Err(_)) => return Poll::Ready(Some(Err(self.broke(stage)))),
                Some(Ok(frame)) => {
                    let part = body.part(frame);
                    if body.rest.is_end_stream() {
                        self.record(stage);
                    }
                    if let Some(part) = part {
                        return Poll::Ready(Some(Ok(Frame::data(part))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.upload.lock().stage, UploadStage::Done)
    }

    fn size_hint(&self) -> SizeHint {
        self.length
    }
}

impl Drop for UploadReader {
    fn drop(&mut self) {
        let mut state = self.upload.lock();
        state.stage = match std::mem::take(&mut state.stage) {
            UploadStage::Reading(body) if state.is_abandoned => {
                let read = body.read.end();
                self.exchange.aside(Direction::ToServer, UNREAD, &read);
                UploadStage::Taken
            }
            UploadStage::Reading(body) => UploadStage::Left(body),
            settled => settled,
        };
        self.upload.0.settled.notify_one();
    }
}

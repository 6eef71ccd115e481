//! A request on its way to the server.
//!
//! Its main type is [`PendingSend`]. A client's request reaches the server even if the client
//! disconnects right after it, as it would without a proxy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::pool::{PoolError, PooledBody};
use crate::web::{ConnectionAbort, ResponseBody};

/// A response that may still arrive.
type PendingResponse =
    Pin<Box<dyn Future<Output = Result<http::Response<PooledBody>, PoolError>> + Send>>;

/// How long sending the request of a disconnected client may take.
const LEAVING: Duration = Duration::from_secs(1);

/// Waits for the response. If it is dropped earlier, the request is still sent, and then its
/// connection is closed so that the server notices.
pub(super) struct PendingSend {
    /// `None` once there is a response.
    answer: Option<PendingResponse>,
    said: Arc<Notify>,
    is_closing: Arc<AtomicBool>,
}

impl PendingSend {
    /// Creates the wait for a response; the request body reports when it was sent.
    pub(super) fn new(
        answer: PendingResponse,
        said: Arc<Notify>,
        is_closing: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            answer: Some(answer),
            said,
            is_closing: is_closing.clone(),
        }
    }
}

impl Future for PendingSend {
    type Output = Result<http::Response<PooledBody>, PoolError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answer) = &mut self.answer else {
            return Poll::Pending;
        };
        let answer = ready!(Pin::new(answer).poll(context));
        self.answer = None;
        Poll::Ready(answer)
    }
}

impl Drop for PendingSend {
    fn drop(&mut self) {
        let (Some(answer), Ok(runtime)) = (self.answer.take(), Handle::try_current()) else {
            return;
        };
        if self.is_closing.load(Ordering::Relaxed) {
            return;
        }
        let said = self.said.clone();
        runtime.spawn(async move {
            tokio::select! {
                biased;
                () = said.notified() => {}
                // A request without a body does not report that it was sent, but its response
                // proves it.
                _ = answer => {}
                () = tokio::time::sleep(LEAVING) => {}
            }
        });
    }
}

/// A body that reports when all of it was read.
pub(super) struct NotifyingBody {
    pub(super) inner: ResponseBody,
    pub(super) said: Arc<Notify>,
}

impl http_body::Body for NotifyingBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() || self.inner.is_end_stream() {
            self.said.notify_one();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

//! A request on its way to the server.
//!
//! Its main type is [`PendingSend`]. What a client has said reaches the server also if the client is gone
//! the moment after, as it would without a proxy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper_util::client::legacy::ResponseFuture;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::web::{ConnectionAbort, ResponseBody};

/// How long a request without a client may take to leave.
const LEAVING: Duration = Duration::from_secs(1);

/// Waits for the answer. If it is dropped before, the request still leaves, and then its connection is
/// closed: a server learns from that that nobody waits.
pub(super) struct PendingSend {
    /// Nothing, once there is an answer.
    answer: Option<ResponseFuture>,
    said: Arc<Notify>,
    is_closing: Arc<AtomicBool>,
}

impl PendingSend {
    /// An answer to a request whose body tells when all of it was taken.
    pub(super) fn new(
        answer: ResponseFuture,
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
    type Output = <ResponseFuture as Future>::Output;

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
                // A request without a body can't tell that it has left, but its answer can.
                _ = answer => {}
                () = tokio::time::sleep(LEAVING) => {}
            }
        });
    }
}

/// A body that tells when all of it was taken.
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

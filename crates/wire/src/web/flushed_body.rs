//! A response body that breaks off only after all before it is sent.
//!
//! Its main type is [`FlushedBody`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{ConnectionAbort, ResponseBody};

/// Returns an error one poll later, since hyper closes the connection without sending what it has buffered. A client
/// that gets no byte on a connection that it used before repeats its request.
pub(super) struct FlushedBody {
    inner: ResponseBody,
    error: Option<ConnectionAbort>,
}

impl FlushedBody {
    pub(super) fn new(inner: ResponseBody) -> Self {
        Self { inner, error: None }
    }
}

impl Body for FlushedBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            Some(Err(error)) => {
                self.error = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            frame => Poll::Ready(frame),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.error.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

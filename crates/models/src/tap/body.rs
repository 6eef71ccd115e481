//! A reply on its way to an agent. The tap parses and records it once it has passed.
//!
//! The main type is [`TappedBody`].

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use proctor_record::json;
use proctor_record::record::MAX_FRAME;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep};

use super::PendingModelRequest;
use crate::wire::{self, FormatError, StreamedReply};
use proctor_wire::proxy::{PooledBody, causes};
use proctor_wire::transport::frames::BodyCollector;
use proctor_wire::web::ConnectionAbort;
use proctor_wire::worker;

/// A response body that passes unchanged.
pub(super) struct TappedBody {
    inner: PooledBody,
    /// `None` once the body has ended.
    reply: Option<TappedReply>,
    /// The timer that ends a silent stream.
    silence: Pin<Box<Sleep>>,
}

struct TappedReply {
    asked: PendingModelRequest,
    raw: BodyCollector,
    /// The assembled reply, if it is a stream.
    gathered: Option<StreamedReply>,
}

impl TappedBody {
    pub(super) fn new(inner: PooledBody, asked: PendingModelRequest, is_stream: bool) -> Self {
        let gathered = is_stream.then(|| StreamedReply::new(asked.format));
        let silence = Box::pin(sleep(asked.inside.silence));
        let reply = TappedReply {
            asked,
            raw: BodyCollector::new(MAX_FRAME),
            gathered,
        };
        let mut listening = Self {
            inner,
            reply: Some(reply),
            silence,
        };
        // The body is never polled if it is empty.
        if listening.inner.is_end_stream() {
            listening.end();
        }
        listening
    }

    fn end(&mut self) {
        if let Some(reply) = self.reply.take() {
            reply.end();
        }
    }

    /// Waits for more data, with a timeout.
    fn wait(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        if self.silence.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let why = match self.reply.take() {
            Some(reply) => reply.asked.timed_out(),
            None => "the provider stopped sending".to_owned(),
        };
        Poll::Ready(Some(Err(ConnectionAbort(why))))
    }
}

impl TappedReply {
    fn take(&mut self, part: &[u8]) {
        self.raw.take(part);
        if let Some(gathered) = &mut self.gathered {
            gathered.take(part);
        }
    }

    fn end(self) {
        let Self {
            asked,
            raw,
            gathered,
        } = self;
        let raw = raw.end().ok();
        // A reply that was too long to keep counts as large.
        let size = raw.as_ref().map_or(usize::MAX, Vec::len);
        worker::on_body(size, || Self::understand(&asked, raw.as_deref(), gathered));
    }

    fn understand(
        asked: &PendingModelRequest,
        raw: Option<&[u8]>,
        gathered: Option<StreamedReply>,
    ) {
        let body = match gathered {
            Some(gathered) => Ok(gathered.end()),
            None => json::from_slice::<Value>(raw.unwrap_or_default()),
        };
        let body = match body {
            Ok(body) => body,
            Err(error) => return asked.broke(format!("not JSON: {error}")),
        };
        match wire::reply(asked.format, &body, &asked.request) {
            Ok(reply) => asked.replied(&reply, raw),
            Err(FormatError::Error(error)) => asked.refused(&error),
            Err(why) => asked.broke(why.to_string()),
        }
    }
}

impl Body for TappedBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) else {
            return this.wait(cx);
        };
        match frame {
            Some(Ok(frame)) => {
                if let (Some(part), Some(reply)) = (frame.data_ref(), &mut this.reply) {
                    let silence = reply.asked.inside.silence;
                    this.silence.as_mut().reset(Instant::now() + silence);
                    reply.take(part);
                }
                // Recorded before the last bytes leave: the agent may continue or exit right after
                // them.
                if this.inner.is_end_stream() {
                    this.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let why = causes(&error);
                if let Some(reply) = this.reply.take() {
                    reply
                        .asked
                        .broke(format!("the connection closed early: {why}"));
                }
                Poll::Ready(Some(Err(ConnectionAbort(why))))
            }
            None => {
                this.end();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for TappedBody {
    fn drop(&mut self) {
        // The agent has closed the connection: it has seen only what came so far.
        self.end();
    }
}

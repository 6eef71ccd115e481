//! A body that is read before it is forwarded.
//!
//! Its main type is [`PeekedBody`].

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use crate::web::{ConnectionAbort, ResponseBody};

/// A body whose start was read; it can be forwarded from its start.
pub(crate) struct PeekedBody {
    taken: VecDeque<Frame<Bytes>>,
    /// The unread rest, if the body exceeds the limit.
    rest: Option<ResponseBody>,
}

impl PeekedBody {
    /// Reads a body, up to the limit.
    pub(crate) async fn take(
        mut body: ResponseBody,
        limit: usize,
    ) -> Result<Self, ConnectionAbort> {
        let mut taken = VecDeque::new();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            length += frame.data_ref().map_or(0, Bytes::len);
            taken.push_back(frame);
            if length > limit {
                let rest = Some(body);
                return Ok(Self { taken, rest });
            }
        }
        Ok(Self { taken, rest: None })
    }

    /// Returns the whole body, if it is within the limit.
    pub(crate) fn whole(&self) -> Option<Vec<u8>> {
        if self.rest.is_some() {
            return None;
        }
        let parts = self.taken.iter().filter_map(Frame::data_ref);
        Some(parts.flatten().copied().collect())
    }
}

impl http_body::Body for PeekedBody {
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        if let Some(frame) = self.taken.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.rest {
            None => Poll::Ready(None),
            Some(rest) => Pin::new(rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.taken.is_empty()
            && self
                .rest
                .as_ref()
                .is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let taken = self.taken.iter().filter_map(Frame::data_ref);
        let taken: u64 = taken.map(|part| part.len() as u64).sum();
        let rest = match &self.rest {
            None => SizeHint::with_exact(0),
            Some(rest) => rest.size_hint(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + taken);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + taken);
        }
        hint
    }
}

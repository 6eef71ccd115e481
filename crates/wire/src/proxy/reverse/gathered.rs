//! Sends the head of a response together with its body.
//!
//! Its main type is [`ResponseGatherer`]. Most servers write the head of a response and its body apart. Two writes to
//! the client, each of which wakes it up, would cost more than all other work of the proxy.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::web::{ConnectionAbort, OutgoingResponse};

/// Longer bodies are forwarded as they arrive, because they need several writes anyway.
const LIMIT: u64 = 64 << 10;
/// The maximum time that a head waits for its body.
const TICK: Duration = Duration::from_millis(20);

/// Waits for the bodies of responses, for at most a tick.
#[derive(Default)]
pub(super) struct ResponseGatherer(Arc<Clock>);

impl ResponseGatherer {
    /// Returns a response once its body is there, if that is short and its length is known. The body of any other
    /// response, or of one that takes long, is forwarded as it arrives.
    pub(super) async fn gather<B>(&self, response: http::Response<B>) -> OutgoingResponse
    where
        B: Body<Data = Bytes, Error = ConnectionAbort> + Send + Unpin + 'static,
    {
        let length = response.body().size_hint().exact();
        if length.is_none_or(|length| length == 0 || length > LIMIT) {
            return response.map(BodyExt::boxed_unsync);
        }
        let mut response = response.map(GatheredBody::new);
        let body = response.body_mut();
        let is_whole = std::future::poll_fn(|context| Poll::Ready(body.gather(context).is_ready()));
        if !is_whole.await {
            let mut tick = pin!(self.0.tick());
            std::future::poll_fn(|context| match body.gather(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => tick.as_mut().poll(context),
            })
            .await;
        }
        response.map(BodyExt::boxed_unsync)
    }
}

/// A timer that all responses share, because starting one takes a system call. It runs only while there are waits.
#[derive(Default)]
struct Clock {
    state: Mutex<ClockState>,
    ticks: Notify,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum ClockState {
    #[default]
    Stopped,
    /// Nothing has waited since the last tick.
    Idle,
    Used,
}

impl Clock {
    /// Waits for the next tick.
    fn tick(self: &Arc<Self>) -> Notified<'_> {
        let mut state = self.lock();
        if *state == ClockState::Stopped {
            tokio::spawn(self.clone().run());
        }
        *state = ClockState::Used;
        // Created under the lock, so that the clock does not stop before it wakes this.
        self.ticks.notified()
    }

    async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            let mut state = self.lock();
            if *state == ClockState::Idle {
                *state = ClockState::Stopped;
                return;
            }
            *state = ClockState::Idle;
            self.ticks.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body of which a part has arrived.
struct GatheredBody<B> {
    arrived: VecDeque<Result<Frame<Bytes>, ConnectionAbort>>,
    rest: B,
    /// Whether the rest has ended.
    has_ended: bool,
}

impl<B> GatheredBody<B>
where
    B: Body<Data = Bytes, Error = ConnectionAbort> + Unpin,
{
    fn new(rest: B) -> Self {
        Self {
            arrived: VecDeque::new(),
            rest,
            has_ended: false,
        }
    }

    /// Reads until the end, or until the connection breaks.
    fn gather(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.has_ended {
            let frame = ready!(Pin::new(&mut self.rest).poll_frame(context));
            self.has_ended = !matches!(frame, Some(Ok(_))) || self.rest.is_end_stream();
            self.arrived.extend(frame);
        }
        Poll::Ready(())
    }
}

impl<B> Body for GatheredBody<B>
where
    B: Body<Data = Bytes, Error = ConnectionAbort> + Unpin,
{
    type Data = Bytes;
    type Error = ConnectionAbort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionAbort>>> {
        if let Some(frame) = self.arrived.pop_front() {
            return Poll::Ready(Some(frame));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.rest).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.arrived.is_empty() && (self.has_ended || self.rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let parts = self.arrived.iter().flatten().filter_map(Frame::data_ref);
        let arrived: u64 = parts.map(|part| part.len() as u64).sum();
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + arrived);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + arrived);
        }
        hint
    }
}

#[cfg(test)]
mod tests;

//! The rest of a request body if the server can't be reached. The client has sent it, so it belongs
//! in the record.
//!
//! Its main type is [`UnreadBody`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt;
use proctor_record::event::Direction;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::exchange::ProxyExchange;
use crate::transport::frames::BodyCollector;
use crate::web::ResponseBody;

/// How long a client may take to send the rest.
const PATIENCE: Duration = Duration::from_secs(5);

/// Holds a body that the server no longer reads.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<Leftover>);

#[derive(Default)]
struct Leftover {
    state: Mutex<LeftoverState>,
    /// The state is no longer open.
    settled: Notify,
}

#[derive(Default)]
enum LeftoverState {
    /// The rest may still be needed.
    #[default]
    Open,
    /// The rest, with the part that was already read.
    Left(ResponseBody, BodyCollector),
    /// The rest is no longer needed.
    Closed,
}

impl UnreadBody {
    /// Stores a body; returns the part that was already read if the rest is no longer needed.
    pub(super) fn put(&self, inner: ResponseBody, body: BodyCollector) -> Option<BodyCollector> {
        let mut state = self.lock();
        if matches!(*state, LeftoverState::Closed) {
            return Some(body);
        }
        *state = LeftoverState::Left(inner, body);
        self.0.settled.notify_one();
        None
    }

    /// Says that there is no rest.
    pub(super) fn close(&self) {
        *self.lock() = LeftoverState::Closed;
        self.0.settled.notify_one();
    }

    /// Whether there is a rest, or may be.
    pub(super) fn is_open(&self) -> bool {
        !matches!(*self.lock(), LeftoverState::Closed)
    }

    /// Reads the rest, and records the message. The body may still be on its way to the server, whose connection then
    /// gives it back. Later bodies are not accepted.
    pub(super) async fn keep(&self, exchange: &ProxyExchange) {
        // Without a rest by then, the record gets the part that was read.
        let _ = timeout(PATIENCE, self.settled()).await;
        let Some((mut inner, mut body)) = self.take() else {
            return;
        };
        let reading = async {
            while !inner.is_end_stream()
                && let Some(frame) = inner.frame().await
            {
                match frame.map(http_body::Frame::into_data) {
                    Ok(Ok(data)) => body.take(&data),
                    Ok(Err(_)) => {}
                    Err(_) => return false,
                }
            }
            true
        };
        let is_whole = timeout(PATIENCE, reading).await == Ok(true);
        if is_whole {
            exchange.body(Direction::ToServer, body.end());
        } else {
            let why = "the server did not read the rest of the request";
            exchange.aside(Direction::ToServer, why, &body.end());
        }
    }

    /// Records the start of the body without waiting for the rest.
    pub(super) fn discard(&self, exchange: &ProxyExchange) {
        if let Some((_, body)) = self.take() {
            let why = "the server did not read the rest of the request";
            exchange.aside(Direction::ToServer, why, &body.end());
        }
    }

    async fn settled(&self) {
        while matches!(*self.lock(), LeftoverState::Open) {
            self.0.settled.notified().await;
        }
    }

    fn take(&self) -> Option<(ResponseBody, BodyCollector)> {
        match std::mem::replace(&mut *self.lock(), LeftoverState::Closed) {
            LeftoverState::Left(inner, body) => Some((inner, body)),
            LeftoverState::Open | LeftoverState::Closed => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, LeftoverState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

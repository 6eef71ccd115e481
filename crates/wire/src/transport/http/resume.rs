//! Resumes event streams that a server closes early.
//!
//! Its main type is [`Cursor`], the position in a stream. A stream is resumed only if the server
//! gave its events ids, and only while something is expected: the response to its request, or other
//! messages of the server. The timeout of the request limits the total time.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proctor_record::event::Direction;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Response};

use super::super::sse::{Events, SseEvent};
use super::super::{Labels, MAX_MESSAGE};
use super::{HttpLink, STREAM, is_stream, line};
use crate::peer::{MessageSource, Peer, RequestFailure};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The maximum length of an event id that is sent back.
const MAX_ID: usize = 4 << 10;
/// The default reconnection delay.
const PAUSE: Duration = Duration::from_secs(1);
/// The range of reconnection delays; the minimum prevents a busy loop.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_mins(1));
/// How often in a row resuming a stream may fail.
const MAX_FAILURES: u32 = 3;
/// How often a stream is resumed at most.
const MAX_RESUMED: u32 = 1_000;
/// How many events are remembered to detect repeated ones.
const REMEMBERED: usize = 1_024;

/// The position in a stream.
pub(super) struct Cursor {
    /// Whether it is the GET stream for messages that belong to no request.
    is_standing: bool,
    id: Option<HeaderValue>,
    failures: u32,
    resumed: u32,
    /// The hashes of events that have an id.
    seen: VecDeque<u64>,
}

impl Cursor {
    /// Creates the cursor of a stream with the response to a request.
    pub(super) fn of_answer() -> Self {
        Self {
            is_standing: false,
            id: None,
            failures: 0,
            resumed: 0,
            seen: VecDeque::new(),
        }
    }

    /// Creates the cursor of the GET stream.
    pub(super) fn of_listener() -> Self {
        Self {
            is_standing: true,
            ..Self::of_answer()
        }
    }

    /// Whether an event was received before the stream was resumed. Only an event with the same id
    /// and the same data is a repetition.
    fn is_repeated(&mut self, event: &SseEvent) -> bool {
        let (Some(id), Ok(data)) = (&event.id, &event.data) else {
            return false;
        };
        let mut hasher = DefaultHasher::new();
        (id, data).hash(&mut hasher);
        let event = hasher.finish();
        if self.resumed > 0 && self.seen.contains(&event) {
            return true;
        }
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back(event);
        false
    }

    fn note(&mut self, events: &Events) {
        let id = events.last_id().filter(|id| id.len() <= MAX_ID);
        if let Some(id) = id.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            self.id = Some(id);
        }
    }
}

impl HttpLink {
    /// Processes a stream, and resumes it while something is expected.
    pub(super) async fn take_stream(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        mut response: Response,
        from: &MessageSource<'_>,
        labels: &Labels,
        mut cursor: Cursor,
    ) -> Result<(), RequestFailure> {
        let mut from = *from;
        loop {
            if cursor.is_standing {
                // What was announced before, was announced to nobody.
                peer.signal_change();
            }
            let ended = self.take_events(peer, response, &from, &mut cursor).await;
            if !self.is_owed(peer, &from, &cursor) {
                return ended.map_err(|error| self.broken(&error, labels));
            }
            let (resumed, exchange) = self.resume(&mut cursor, labels).await?;
            response = resumed;
            from.exchange = Some(exchange);
        }
    }

    async fn take_events(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        mut response: Response,
        from: &MessageSource<'_>,
        cursor: &mut Cursor,
    ) -> Result<(), reqwest::Error> {
        let mut events = Events::new(MAX_MESSAGE);
        while let Some(chunk) = response.chunk().await? {
            from.tap.room().await;
            for event in events.take(&chunk) {
                cursor.failures = 0;
                let is_repeated = cursor.is_repeated(&event);
                match event.data {
                    // A server may start a stream with an empty event to make it resumable.
                    Ok(data) if data.is_empty() || is_repeated => {}
                    Ok(data) => {
                        peer.record(&data, from);
                        self.receive(peer, &data, from);
                    }
                    Err(cut) => peer.oversized(&cut, from),
                }
            }
            cursor.note(&events);
            if let Some(pause) = events.retry() {
                self.lock().pause = Some(pause);
            }
        }
        Ok(())
    }

    /// Whether a stream that has ended must be resumed.
    fn is_owed(&self, peer: &Peer, from: &MessageSource<'_>, cursor: &Cursor) -> bool {
        // Only sessions of the handshake era have resumable streams.
        let has_session = self.lock().version.is_some();
        let is_awaited = cursor.is_standing || from.own.is_some_and(|id| peer.is_waiting(id));
        has_session && is_awaited && cursor.id.is_some() && cursor.resumed < MAX_RESUMED
    }

    /// Requests the events after the last one, after the delay that the server set.
    async fn resume(
        &self,
        cursor: &mut Cursor,
        labels: &Labels,
    ) -> Result<(Response, u64), RequestFailure> {
        let tap = &labels.tap;
        loop {
            let wanted = self.lock().pause;
            tokio::time::sleep(pause(wanted)).await;
            cursor.resumed += 1;
            let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
            let mut request = self.request(Method::GET, STREAM, &[]);
            if let Some(id) = &cursor.id {
                request.headers_mut().insert(LAST_EVENT_ID, id.clone());
            }
            let (head, headers) = (line(&request), request.headers());
            tap.http(exchange, Direction::ToServer, head, headers);
            let failure = match self.client.send(request, tap, exchange).await {
                Ok(response) => {
                    let status = response.status();
                    if status.is_success() && is_stream(&response) {
                        // It counts as a failure until an event arrives.
                        cursor.failures += 1;
                        return Ok((response, exchange));
                    }
                    if !status.is_server_error() {
                        return Err(not_resumed(labels, &format!("HTTP status {status}")));
                    }
                    format!("HTTP status {status}")
                }
                Err(failure) => self.unsent(failure, labels).to_string(),
            };
            cursor.failures += 1;
            if cursor.failures >= MAX_FAILURES {
                return Err(not_resumed(labels, &failure));
            }
        }
    }
}

/// Returns the delay before a stream is resumed.
fn pause(wanted: Option<Duration>) -> Duration {
    wanted.unwrap_or(PAUSE).clamp(PAUSES.0, PAUSES.1)
}

fn not_resumed(labels: &Labels, why: &str) -> RequestFailure {
    let what = match &labels.method {
        Some(method) => format!("the event stream ended before the response to `{method}`"),
        None => "the event stream ended".to_owned(),
    };
    RequestFailure::Broken(format!("{what}, and could not be resumed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, data: &str) -> SseEvent {
        SseEvent {
            name: "message".to_owned(),
            id: id.map(|id| id.as_bytes().to_vec()),
            data: Ok(data.as_bytes().to_vec()),
        }
    }

    #[test]
    fn an_event_is_repeated_only_with_its_id_and_data_on_a_resumed_stream() {
        let mut cursor = Cursor::of_answer();
        let mut is_repeated = |resumed, id, data| {
            cursor.resumed = resumed;
            cursor.is_repeated(&event(id, data))
        };
        assert!(!is_repeated(0, Some("1"), "a"));
        assert!(!is_repeated(0, Some("1"), "a"));
        assert!(is_repeated(1, Some("1"), "a"));
        assert!(!is_repeated(1, Some("1"), "b"));
        assert!(!is_repeated(1, Some("2"), "a"));
        assert!(!is_repeated(1, None, "a"));
    }

    #[test]
    fn a_pause_is_neither_too_short_nor_too_long() {
        assert_eq!(pause(None), PAUSE);
        assert_eq!(pause(Some(Duration::ZERO)), PAUSES.0);
        assert_eq!(
            pause(Some(Duration::from_millis(250))),
            Duration::from_millis(250)
        );
        assert_eq!(pause(Some(Duration::MAX)), PAUSES.1);
    }

    #[test]
    fn a_cursor_keeps_valid_event_ids() {
        let after = |text: &str| {
            let mut cursor = Cursor::of_answer();
            let mut events = Events::new(99);
            events.take(text.as_bytes());
            cursor.note(&events);
            cursor.id.is_some()
        };
        assert!(after("id: 1\n\n"));
        assert!(!after("data: a\n\n"));
        assert!(!after("id: \u{1}\n\n"));
        assert!(!after(&format!("id: {}\n\n", "x".repeat(MAX_ID + 1))));
    }
}

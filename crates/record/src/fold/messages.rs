//! Reads the messages between clients and servers: which calls were made, what they returned, and
//! what breaks the protocol.

use super::Fold;
use super::pairing::{CancelReason, RequestMatch};
use crate::event::{Actor, Body, ConnectionId, Direction, FindingKind, Frame, WireKind};
use crate::message::tolerant::LenientReading;
use crate::message::{self, Id, Message, MessageKind, MessageParseError};
use crate::record::{Blobs, RecordError};
use crate::transcript::UnreadMessage;

/// The position of a message in the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessagePosition {
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) conn: ConnectionId,
    pub(super) exchange: Option<u64>,
    pub(super) direction: Direction,
}

impl Fold {
    pub(super) fn frame(
        &mut self,
        place: MessagePosition,
        frame: &Frame,
        blobs: &Blobs,
    ) -> Result<(), RecordError> {
        if let Body::Cut { bytes, .. } = frame.body {
            match frame.direction {
                Direction::ToServer if self.counts(place.conn) => {
                    let reason = format!("its {bytes} bytes were truncated in the record");
                    self.unread.push(UnreadMessage {
                        seq: place.seq,
                        server: self.server(place.conn).to_owned(),
                        kind: None,
                        name: None,
                        reason,
                    });
                }
                Direction::ToServer => {}
                Direction::ToClient => self.pairing.cut(place, bytes),
            }
            return Ok(());
        }
        let Some(bytes) = blobs.body_bytes(&frame.body)? else {
            return Ok(());
        };
        match frame.direction {
            Direction::ToServer if frame.exchange.is_none() => self.conduct.posted(place),
            Direction::ToServer => {}
            Direction::ToClient => {
                self.conduct.spoke(place.conn);
                if let Some(status) = self.conduct.refusal(place) {
                    self.refused(place, status, &bytes);
                    return Ok(());
                }
            }
        }
        let is_sent = frame.direction == Direction::ToServer;
        let is_unclear = is_sent && self.unclear(place, &bytes);
        let parsed = message::each(&bytes, &mut |message| match frame.direction {
            Direction::ToServer => self.sent(place, message),
            Direction::ToClient => self.received(place, message),
        });
        if let Err(MessageParseError {
            looks_like_json,
            reason,
        }) = parsed
        {
            let is_line = self
                .connections
                .get(&place.conn)
                .is_some_and(|opened| opened.transport == WireKind::Stdio);
            let kind = if is_line && !looks_like_json {
                FindingKind::Noise
            } else {
                FindingKind::Malformed
            };
            match (is_sent, is_unclear) {
                (false, _) => self.findings.derived(place, kind, &reason),
                (true, false) => self.findings.derived(
                    place,
                    FindingKind::ClientMessage,
                    &format!("the client sent an invalid message: {reason}"),
                ),
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// Adds messages that a lenient server may read as a call, though they are not calls of the
    /// transcript.
    fn unclear(&mut self, place: MessagePosition, bytes: &[u8]) -> bool {
        let reading = LenientReading::of(bytes);
        for id in reading.ids {
            self.pairing.asked(place, id, None);
        }
        if reading.calls.is_empty() || !self.counts(place.conn) {
            return false;
        }
        let server = self.server(place.conn).to_owned();
        for call in reading.calls {
            let message = UnreadMessage {
                seq: place.seq,
                server: server.clone(),
                kind: call.kind,
                name: call.name,
                reason: call.reason,
            };
            let detail =
                format!("the client sent an invalid message that some servers read as {message}");
            self.findings
                .derived(place, FindingKind::ClientMessage, &detail);
            self.unread.push(message);
        }
        true
    }

    fn server(&self, conn: ConnectionId) -> &str {
        let opened = self.connections.get(&conn);
        opened.map_or("", |opened| opened.server.as_str())
    }

    fn sent(&mut self, place: MessagePosition, message: &Message<'_>) {
        match message.kind() {
            MessageKind::Request { id, method } => {
                let call = if self.counts(place.conn) {
                    self.server_requests.called(place, message);
                    let opened = self.connections.get(&place.conn);
                    let server = opened.map_or("", |opened| opened.server.as_str());
                    self.calls.request(place, server, method, message.params)
                } else {
                    None
                };
                self.pairing.asked(place, id, call);
            }
            MessageKind::Notification {
                method: "notifications/cancelled",
            } => {
                if let Some(id) = message.cancelled() {
                    let why = CancelReason::of(message);
                    self.pairing.cancelled(place, &id, why);
                }
            }
            // A response to a request of the server is not part of the transcript.
            MessageKind::Answer { id } => self.server_requests.replied(place, &id, message),
            MessageKind::Notification { .. } => {}
            MessageKind::Neither => self.findings.derived(
                place,
                FindingKind::ClientMessage,
                "the client sent a message that is neither a request nor a response",
            ),
        }
    }

    pub(super) fn received(&mut self, place: MessagePosition, message: &Message<'_>) {
        let id = match message.kind() {
            MessageKind::Answer { id } => id,
            MessageKind::Request { id, method } => {
                if self.counts(place.conn) {
                    let server = self.server(place.conn).to_owned();
                    let request = (id, method);
                    self.server_requests.asked(place, &server, request, message);
                }
                return;
            }
            MessageKind::Notification { .. } => return,
            MessageKind::Neither => {
                let detail = "a message without `method`, `result` or `error`";
                self.findings.derived(place, FindingKind::Malformed, detail);
                return;
            }
        };
        if message.result.is_some() && message.error.is_some() {
            let detail = format!("the response to {id} has both a result and an error");
            self.findings
                .derived(place, FindingKind::ResultAndError, &detail);
        }
        let (kind, detail) = match self.pairing.answered(place, &id, message.error.is_some()) {
            RequestMatch::Asked(asked) => {
                if let Some(call) = asked.call {
                    let server = self.server(place.conn).to_owned();
                    self.server_requests.answered(place, &server, message);
                    let opened = self.connections.get(&place.conn);
                    let is_timed = opened.is_none_or(|opened| opened.actor != Actor::Imported);
                    self.calls.answer(place, call, message, is_timed);
                }
                return;
            }
            RequestMatch::Unwanted => return,
            // This is how HTTP rejects requests that expect no response: a GET, or a notification.
            RequestMatch::Never if id == Id::Absent && self.pairing.asks_nothing(place) => return,
            RequestMatch::Late(asked) => {
                self.conduct.late(place.conn, asked);
                let detail = format!("response to {id} after its cancellation");
                (FindingKind::LateAnswer, detail)
            }
            RequestMatch::Again => (
                FindingKind::DuplicateAnswer,
                format!("duplicate response to {id}"),
            ),
            RequestMatch::Never => (
                FindingKind::UnknownId,
                format!("unexpected response with {id}"),
            ),
        };
        self.findings.derived(place, kind, &detail);
    }

    fn counts(&self, conn: ConnectionId) -> bool {
        self.connections
            .get(&conn)
            .is_some_and(|opened| self.actors.contains(&opened.actor))
    }
}

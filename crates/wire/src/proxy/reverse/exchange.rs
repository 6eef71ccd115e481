//! Records one request and its response.
//!
//! Its main type is [`ProxyExchange`].

use std::sync::Arc;

use http::HeaderMap;
use proctor_record::event::{Direction, FindingKind, HttpFailure};

use crate::recorder::{ConnectionTap, OversizedMessage};

/// The record of one request and its response.
pub(super) struct ProxyExchange {
    pub(super) tap: Arc<ConnectionTap>,
    number: u64,
    kind: ExchangeKind,
}

/// How the responses to an exchange arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    /// In the same exchange (streamable HTTP).
    Streamable,
    /// On the stream (a message of HTTP+SSE).
    Posted,
    /// This exchange is that stream.
    Stream,
}

impl ProxyExchange {
    pub(super) fn new(tap: Arc<ConnectionTap>, number: u64, kind: ExchangeKind) -> Self {
        Self { tap, number, kind }
    }

    pub(super) fn is_streamable(&self) -> bool {
        self.kind == ExchangeKind::Streamable
    }

    pub(super) fn head(&self, direction: Direction, line: String, headers: &HeaderMap) {
        self.tap
            .head_of_message(self.number, direction, line, headers);
    }

    /// Records a message of a stream, or the head of an oversized one.
    pub(super) fn event(&self, direction: Direction, message: Result<Vec<u8>, OversizedMessage>) {
        let number = (self.kind == ExchangeKind::Streamable).then_some(self.number);
        self.frame(number, direction, message);
    }

    /// Records a message that is a whole body.
    pub(super) fn body(&self, direction: Direction, message: Result<Vec<u8>, OversizedMessage>) {
        let number = (self.kind != ExchangeKind::Posted).then_some(self.number);
        self.frame(number, direction, message);
    }

    fn frame(
        &self,
        number: Option<u64>,
        direction: Direction,
        message: Result<Vec<u8>, OversizedMessage>,
    ) {
        match message {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => self.tap.frame(number, direction, &bytes),
            Err(cut) => self.tap.cut_frame(number, direction, &cut),
        }
    }

    /// Records the start of a body that is not a message, so that it is not parsed as one.
    pub(super) fn aside(
        &self,
        direction: Direction,
        what: &str,
        said: &Result<Vec<u8>, OversizedMessage>,
    ) {
        self.tap.aside(self.number, direction, what, said);
    }

    /// Records why the response ended early, with the start of its body.
    pub(super) fn failed(
        &self,
        failure: HttpFailure,
        why: &str,
        said: &Result<Vec<u8>, OversizedMessage>,
    ) {
        let line = self.tap.aside_line(why, said);
        self.tap.http_failed(self.number, line, failure);
    }

    pub(super) fn finding(&self, detail: String) {
        self.tap.finding(FindingKind::Protocol, detail);
    }
}

//! One request and what comes back of it, in the record.
//!
//! Its main type is [`ProxyExchange`].

use std::sync::Arc;

use http::HeaderMap;
use proctor_core::event::{Direction, FindingKind, HttpFailure};

use crate::recorder::{ConnectionTap, OversizedMessage};

/// Where one request and its answer are kept.
pub(super) struct ProxyExchange {
    pub(super) tap: Arc<ConnectionTap>,
    number: u64,
    kind: ExchangeKind,
}

/// How answers are found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    /// They come back in the same exchange.
    Newer,
    /// A message of the older HTTP: they come on the stream.
    Posted,
    /// That stream: what comes on it answers what was posted.
    Stream,
}

impl ProxyExchange {
    pub(super) fn new(tap: Arc<ConnectionTap>, number: u64, kind: ExchangeKind) -> Self {
        Self { tap, number, kind }
    }

    pub(super) fn is_newer(&self) -> bool {
        self.kind == ExchangeKind::Newer
    }

    pub(super) fn head(&self, direction: Direction, line: String, headers: &HeaderMap) {
        self.tap.http(self.number, direction, line, headers);
    }

    /// Keeps a message of a stream, or what is known of one that was too large.
    pub(super) fn event(&self, direction: Direction, message: Result<Vec<u8>, OversizedMessage>) {
        let number = (self.kind == ExchangeKind::Newer).then_some(self.number);
        self.frame(number, direction, message);
    }

    /// Keeps a message that is a body.
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

    /// Keeps the start of something that is no message: it must not be taken for one.
    pub(super) fn aside(
        &self,
        direction: Direction,
        what: &str,
        said: &Result<Vec<u8>, OversizedMessage>,
    ) {
        self.tap.aside(self.number, direction, what, said);
    }

    /// Keeps why the response ended early, with the start of what came of it.
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

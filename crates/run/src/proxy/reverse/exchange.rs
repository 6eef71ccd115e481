//! One request and what comes back of it, in the record.
//!
//! Its main type is [`Exchange`].

use std::sync::Arc;

use http::HeaderMap;
use proctor_core::event::{Direction, FindingKind};

use crate::recorder::{Oversized, Tap};

/// How much is kept of what is no message.
const ASIDE: usize = 500;

/// Where one request and its answer are kept.
pub(super) struct Exchange {
    pub(super) tap: Arc<Tap>,
    number: u64,
    /// Whether its answers come with it, so that they are found by its number.
    is_paired: bool,
}

impl Exchange {
    /// One whose answers come back with it.
    pub(super) fn paired(tap: Arc<Tap>, number: u64) -> Self {
        Self {
            tap,
            number,
            is_paired: true,
        }
    }

    /// One of the older HTTP, whose answers come over another.
    pub(super) fn unpaired(tap: Arc<Tap>, number: u64) -> Self {
        Self {
            tap,
            number,
            is_paired: false,
        }
    }

    pub(super) fn is_paired(&self) -> bool {
        self.is_paired
    }

    pub(super) fn head(&self, direction: Direction, line: String, headers: &HeaderMap) {
        self.tap.http(self.number, direction, line, headers);
    }

    /// Keeps a message, or what is known of one that was too large.
    pub(super) fn frame(&self, direction: Direction, message: Result<Vec<u8>, Oversized>) {
        let number = self.is_paired.then_some(self.number);
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
        said: &Result<Vec<u8>, Oversized>,
    ) {
        let (bytes, length) = match said {
            Ok(bytes) => (bytes, bytes.len() as u64),
            Err(cut) => (&cut.head, cut.bytes),
        };
        let line = match length {
            0 => what.to_owned(),
            _ => format!("{what} ({length} bytes): {}", self.tap.head(bytes, ASIDE)),
        };
        self.tap
            .http(self.number, direction, line, &HeaderMap::new());
    }

    pub(super) fn finding(&self, detail: String) {
        self.tap.finding(FindingKind::Protocol, detail);
    }
}

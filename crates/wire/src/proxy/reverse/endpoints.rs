//! Rewrites the endpoint URL of HTTP+SSE, the only thing that the proxy changes.
//!
//! Its main type is [`Endpoints`], which processes an event stream as it arrives. All other bytes
//! stay unchanged.

use std::sync::Arc;

use memchr::memchr2;

use crate::proxy::addresses::Addresses;

/// Longer events are not held back, because no URL is that long.
const LONGEST: usize = 16 << 10;

/// Rewrites the URLs in the `endpoint` events of a stream.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is where the stream is in one respect"
)]
pub(super) struct Endpoints {
    addresses: Arc<Addresses>,
    /// The bytes that are held back: an incomplete line, or an incomplete event with data.
    held: Vec<u8>,
    /// The start of the last line in `held`.
    line_start: usize,
    line_length: usize,
    /// The rest of the event is too long to be held back.
    is_passing: bool,
    is_endpoint: bool,
    /// The position of the last data in `held`, and the number of data lines.
    data: Option<(usize, usize)>,
    data_lines: usize,
    /// A carriage return ended the last line, so a line feed right after it belongs to it.
    after_return: bool,
    /// Whether this is the first line of the stream.
    is_first: bool,
}

impl Endpoints {
    pub(super) fn new(addresses: Arc<Addresses>) -> Self {
        Self {
            addresses,
            held: Vec::new(),
            line_start: 0,
            line_length: 0,
            is_passing: false,
            is_endpoint: false,
            data: None,
            data_lines: 0,
            after_return: false,
            is_first: true,
        }
    }

    /// Processes a chunk, and returns the bytes that can be sent.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len() + chunk.len());
        let mut rest = chunk;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                self.break_again(&mut out);
                rest = &rest[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', rest);
            self.part(&rest[..end.unwrap_or(rest.len())], &mut out);
            let Some(end) = end else { break };
            self.line_end(rest[end], &mut out);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
        out
    }

    /// Returns the bytes that were held back at the end of the stream.
    pub(super) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn part(&mut self, part: &[u8], out: &mut Vec<u8>) {
        self.line_length += part.len();
        if !self.is_passing && self.held.len() + part.len() > LONGEST {
            self.is_passing = true;
            out.append(&mut self.held);
        }
        let to = if self.is_passing { out } else { &mut self.held };
        to.extend_from_slice(part);
    }

    fn line_end(&mut self, end: u8, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.line_length) == 0 {
            self.is_first = false;
            self.event_end();
            out.append(&mut self.held);
            out.push(end);
            self.line_start = 0;
            return;
        }
        if self.is_passing {
            out.push(end);
            return;
        }
        self.field();
        self.held.push(end);
        if self.data_lines == 0 {
            out.append(&mut self.held);
        }
        self.line_start = self.held.len();
    }

    /// Handles the second half of a line break.
    fn break_again(&mut self, out: &mut Vec<u8>) {
        let to = if self.held.is_empty() {
            out
        } else {
            &mut self.held
        };
        to.push(b'\n');
        self.line_start = self.held.len();
    }

    fn field(&mut self) {
        let line = &self.held[self.line_start..];
        let mark = b"\xef\xbb\xbf";
        let is_first = std::mem::take(&mut self.is_first);
        let line = line.strip_prefix(mark).filter(|_| is_first).unwrap_or(line);
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.is_endpoint = value == b"endpoint",
            b"data" => {
                self.data_lines += 1;
                self.data = Some((self.held.len() - value.len(), self.held.len()));
            }
            _ => {}
        }
    }

    fn event_end(&mut self) {
        let is_whole = !std::mem::take(&mut self.is_passing);
        let is_endpoint = std::mem::take(&mut self.is_endpoint);
        let is_one = std::mem::take(&mut self.data_lines) == 1;
        let Some((start, end)) = self
            .data
            .take()
            .filter(|_| is_whole && is_endpoint && is_one)
        else {
            return;
        };
        let written = std::str::from_utf8(&self.held[start..end]).ok();
        if let Some(changed) = written.and_then(|written| self.addresses.changed(written)) {
            self.held.splice(start..end, changed.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests;

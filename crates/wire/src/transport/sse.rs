//! Parses server-sent events in bounded memory.
//!
//! Its main type is [`Events`].

use std::time::Duration;

use super::frames::BodyCollector;
use crate::recorder::OversizedMessage;

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The event name; `message` by default.
    pub(crate) name: String,
    /// The id of this event itself.
    pub(crate) id: Option<Vec<u8>>,
    /// The data, or the head of data that exceeds the size limit.
    pub data: Result<Vec<u8>, OversizedMessage>,
}

/// Parses chunks of a stream into events.
pub struct Events {
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// Whether the line is data that is processed as it arrives, because it may be long.
    in_data: bool,
    name: String,
    id: Option<Vec<u8>>,
    data: Option<BodyCollector>,
    /// The id of the last complete event that has one, for resuming the stream.
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
    limit: usize,
    /// A carriage return ended the last line, so a line feed right after it belongs to it.
    after_return: bool,
    /// How many bytes of a byte order mark were read; all once the stream has started.
    mark: usize,
}

/// A byte order mark at the start of the stream is not part of its first line.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The maximum length of a field other than `data`; longer ones are ignored.
const MAX_FIELD: usize = 64 << 10;

impl Events {
    /// Creates a parser for events with at most `limit` bytes of data.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            in_data: false,
            name: String::new(),
            id: None,
            data: None,
            last_id: None,
            retry: None,
            limit,
            after_return: false,
            mark: 0,
        }
    }

    /// Processes a chunk, and returns the events that it completes.
    pub fn take(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut found = Vec::new();
        let mut rest = self.without_mark(chunk);
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            self.part(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { break };
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            found.extend(self.line_end());
        }
        found
    }

    fn without_mark<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let mut rest = chunk;
        while let (Some(expected), Some(byte)) = (MARK.get(self.mark), rest.first()) {
            if byte != expected {
                self.line.extend_from_slice(&MARK[..self.mark]);
                self.mark = MARK.len();
                break;
            }
            self.mark += 1;
            rest = &rest[1..];
        }
        rest
    }

    /// Returns the id for resuming the stream: that of the last complete event, with or without
    /// data.
    pub(crate) fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// Returns the reconnection delay that the server set.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the data of an incomplete last event.
    pub(crate) fn end(self) -> Option<Result<Vec<u8>, OversizedMessage>> {
        let line = (!self.line.is_empty()).then_some(Ok(self.line));
        self.data.map(BodyCollector::end).or(line)
    }

    /// Processes a part of a line.
    fn part(&mut self, part: &[u8]) {
        if self.in_data {
            if let Some(data) = &mut self.data {
                data.take(part);
            }
            return;
        }
        let room = MAX_FIELD.saturating_sub(self.line.len());
        let (head, tail) = part.split_at(part.len().min(room));
        self.line.extend_from_slice(head);
        // Once the line is known to be data, it is no longer buffered.
        let Some(value) = self.line.strip_prefix(b"data:") else {
            return;
        };
        if value.is_empty() {
            return;
        }
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        self.begin_data();
        if let Some(data) = &mut self.data {
            data.take(&value);
            data.take(tail);
        }
    }

    fn begin_data(&mut self) {
        self.in_data = true;
        self.line.clear();
        match &mut self.data {
            Some(data) => data.take(b"\n"),
            None => self.data = Some(BodyCollector::new(self.limit)),
        }
    }

    fn line_end(&mut self) -> Option<SseEvent> {
        if std::mem::take(&mut self.in_data) {
            return None;
        }
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let id = self.id.take();
            if let Some(id) = &id {
                // An empty id resets the last one.
                self.last_id = Some(id.clone()).filter(|id| !id.is_empty());
            }
            let data = self.data.take()?.end();
            let name = if name.is_empty() {
                "message".to_owned()
            } else {
                name
            };
            return Some(SseEvent { name, id, data });
        }
        if line == b"data" || line == b"data:" {
            self.begin_data();
            self.in_data = false;
        } else if let Some(name) = line.strip_prefix(b"event:") {
            String::from_utf8_lossy(name)
                .trim()
                .clone_into(&mut self.name);
        } else if let Some(id) = field(&line, b"id") {
            // An id with a NUL is ignored.
            self.id = Some(id.to_vec()).filter(|id| !id.contains(&0));
        } else if let Some(time) = field(&line, b"retry") {
            let digits = std::str::from_utf8(time).ok();
            let digits = digits.filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            let time = digits.and_then(|text| text.parse().ok());
            self.retry = time.map(Duration::from_millis).or(self.retry);
        }
        None
    }
}

/// Returns the value of a field, if the line has this field name.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

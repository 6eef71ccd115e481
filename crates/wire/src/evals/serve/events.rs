//! Server-sent events between a server and a client: bytes in, bytes out.
//!
//! Its main type is [`EventStream`]. What comes out is what went in, but for what is put into the data
//! of the event that answers a handshake; where chunks end makes no difference.

use std::sync::Arc;

use mcp_evals::splice::{self, Insertion};

use super::lines::Said;
use super::talk::{BOM, Talk};
use super::{Desk, LIMIT};

/// A stream of events on its way to a client.
pub(super) struct EventStream {
    desk: Arc<Desk>,
    talk: Arc<Talk>,
    /// An event that is looked at once it is whole.
    held: Vec<u8>,
    place: Place,
    line_length: usize,
    /// A carriage return ended the last line, so that a line feed right after it is part of it.
    after_return: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Between,
    Holding,
    Passing,
}

impl EventStream {
    pub(super) fn new(desk: &Arc<Desk>, talk: &Arc<Talk>) -> Self {
        Self {
            desk: desk.clone(),
            talk: talk.clone(),
            held: Vec::new(),
            place: Place::Between,
            line_length: 0,
            after_return: false,
        }
    }

    /// Takes in a chunk, and gives what the client gets.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Said {
        let mut said = Said {
            gap: self.is_between_events().then_some(0),
            bytes: Vec::with_capacity(chunk.len()),
        };
        let mut rest = chunk;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                self.put(b"\n", &mut said);
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            self.part(&rest[..end.unwrap_or(rest.len())], &mut said);
            let Some(end) = end else { break };
            self.put(&rest[end..=end], &mut said);
            self.line_end(&mut said);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
        said
    }

    /// Whether an event of ours may come now.
    pub(super) fn is_between_events(&self) -> bool {
        self.place != Place::Passing
    }

    /// What is left of an event that has no end.
    pub(super) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn part(&mut self, part: &[u8], said: &mut Said) {
        if part.is_empty() {
            return;
        }
        if self.place == Place::Between {
            self.place = if self.talk.is_waiting() {
                Place::Holding
            } else {
                Place::Passing
            };
        }
        self.line_length += part.len();
        self.put(part, said);
    }

    fn put(&mut self, bytes: &[u8], said: &mut Said) {
        if self.place == Place::Holding {
            if self.held.len() + bytes.len() <= LIMIT {
                return self.held.extend_from_slice(bytes);
            }
            self.place = Place::Passing;
            said.bytes.append(&mut self.held);
        }
        said.bytes.extend_from_slice(bytes);
        if self.place == Place::Between {
            said.gap = Some(said.bytes.len());
        }
    }

    fn line_end(&mut self, said: &mut Said) {
        let is_blank = std::mem::take(&mut self.line_length) == 0;
        if !is_blank || self.place == Place::Between {
            return;
        }
        let event = std::mem::take(&mut self.held);
        let insertions = self.insertions(&event);
        said.bytes.extend(splice::apply(&event, &insertions));
        said.gap = Some(said.bytes.len());
        self.place = Place::Between;
    }

    /// What is put into an event, by its own places.
    fn insertions(&self, event: &[u8]) -> Vec<Insertion> {
        let data = Data::of(event);
        let mut insertions = self.talk.insertions(&data.text, &self.desk);
        for insertion in &mut insertions {
            insertion.at = data.place(insertion.at);
        }
        insertions
    }
}

/// The data of an event.
#[derive(Default)]
struct Data {
    text: Vec<u8>,
    /// Where each line of it starts: in the text, and in the event.
    lines: Vec<(usize, usize)>,
}

impl Data {
    fn of(event: &[u8]) -> Self {
        let mut data = Self::default();
        let lines = event.strip_prefix(BOM).unwrap_or(event);
        let mut start = event.len() - lines.len();
        for line in lines.split(|byte| matches!(byte, b'\n' | b'\r')) {
            if let Some(value) = line.strip_prefix(b"data:") {
                let value = value.strip_prefix(b" ").unwrap_or(value);
                if !data.lines.is_empty() {
                    data.text.push(b'\n');
                }
                let place = start + line.len() - value.len();
                data.lines.push((data.text.len(), place));
                data.text.extend_from_slice(value);
            }
            start += line.len() + 1;
        }
        data
    }

    /// Where in the event a place of the text is.
    fn place(&self, at: usize) -> usize {
        let line = self.lines.iter().rev().find(|(start, _)| *start <= at);
        line.map_or(at, |(start, place)| place + at - start)
    }
}

/// An event with a message.
pub(super) fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

#[cfg(test)]
mod tests;

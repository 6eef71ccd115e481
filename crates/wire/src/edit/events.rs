//! Server-sent events between a server and a client: bytes in, bytes out.
//!
//! Its main type is [`EvalsEventStream`]. What comes out is what went in, but for the messages that an edit does
//! not pass; where chunks end makes no difference.

use std::ops::Range;
use std::sync::Arc;

use super::conversation::Conversation;
use super::lines::one_line;
use super::output::Output;
use super::{BOM, Passage};

/// A stream of events on its way to a client.
pub(crate) struct EvalsEventStream {
    conversation: Arc<Conversation>,
    /// An event that is looked at once it is whole.
    held: Vec<u8>,
    place: EventParseState,
    line_length: usize,
    /// A carriage return ended the last line, so that a line feed right after it is part of it.
    after_return: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventParseState {
    Between,
    Holding,
    Passing,
}

impl EvalsEventStream {
    pub(crate) fn new(conversation: &Arc<Conversation>) -> Self {
        Self {
            conversation: conversation.clone(),
            held: Vec::new(),
            place: EventParseState::Between,
            line_length: 0,
            after_return: false,
        }
    }

    /// Takes in a chunk, and gives what the client gets.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Output {
        let mut output = Output::of(chunk.len());
        if self.is_between_events() {
            output.gap();
        }
        let mut rest = chunk;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                self.put(b"\n", &mut output);
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            self.part(&rest[..end.unwrap_or(rest.len())], &mut output);
            let Some(end) = end else { break };
            self.put(&rest[end..=end], &mut output);
            self.line_end(&mut output);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
        output
    }

    /// Whether an event of ours may come now.
    pub(crate) fn is_between_events(&self) -> bool {
        self.place != EventParseState::Passing
    }

    /// What is left of an event that has no end.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn part(&mut self, part: &[u8], output: &mut Output) {
        if part.is_empty() {
            return;
        }
        if self.place == EventParseState::Between {
            self.place = if self.conversation.reads_server() {
                EventParseState::Holding
            } else {
                EventParseState::Passing
            };
        }
        self.line_length += part.len();
        self.put(part, output);
    }

    fn put(&mut self, bytes: &[u8], output: &mut Output) {
        if self.place == EventParseState::Holding {
            if self.held.len() + bytes.len() <= self.conversation.limit() {
                return self.held.extend_from_slice(bytes);
            }
            self.place = EventParseState::Passing;
            output.bytes.append(&mut self.held);
        }
        output.bytes.extend_from_slice(bytes);
        if self.place == EventParseState::Between {
            output.gap();
        }
    }

    fn line_end(&mut self, output: &mut Output) {
        let is_blank = std::mem::take(&mut self.line_length) == 0;
        if !is_blank || self.place == EventParseState::Between {
            return;
        }
        let event = std::mem::take(&mut self.held);
        self.put_event(&event, output);
        output.gap();
        self.place = EventParseState::Between;
    }

    /// Puts out what becomes of an event.
    fn put_event(&self, event: &[u8], output: &mut Output) {
        let data = EventData::of(event);
        let passage = if data.is_message {
            self.conversation.on_server_message(&data.text)
        } else {
            Passage::Pass
        };
        match passage {
            Passage::Pass => output.bytes.extend_from_slice(event),
            Passage::Replace(message) => output.bytes.extend(data.replaced(event, &message)),
            Passage::Delay(time) => {
                output.wait(time);
                output.bytes.extend_from_slice(event);
            }
            Passage::Drop => {}
        }
    }
}

/// The data of an event.
struct EventData {
    /// All of it.
    text: Vec<u8>,
    /// Where in the event each line of it is.
    lines: Vec<Range<usize>>,
    /// Whether clients take it for a message.
    is_message: bool,
}

impl EventData {
    fn of(event: &[u8]) -> Self {
        let mut data = Self {
            text: Vec::new(),
            lines: Vec::new(),
            is_message: true,
        };
        let lines = event.strip_prefix(BOM).unwrap_or(event);
        let mut start = event.len() - lines.len();
        for line in lines.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let end = start + line.len();
            if let Some(value) = value(line, b"data:") {
                if !data.lines.is_empty() {
                    data.text.push(b'\n');
                }
                data.lines.push(end - value.len()..end);
                data.text.extend_from_slice(value);
            } else if let Some(name) = value(line, b"event:") {
                data.is_message = matches!(name, b"" | b"message");
            }
            start = end + 1;
        }
        data.is_message &= !data.lines.is_empty();
        data
    }

    /// The event with another message. What is around the data stays; so do its lines, as far as they can.
    fn replaced(&self, event: &[u8], message: &[u8]) -> Vec<u8> {
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut new: Vec<&[u8]> = message.split(is_break).collect();
        let whole;
        if new.len() != self.lines.len() {
            // In JSON, a line break is white space between tokens: the first line can hold all of it.
            whole = new.join(&b' ');
            new = vec![&whole];
        }
        new.resize(self.lines.len(), b"");
        let mut out = Vec::with_capacity(event.len() + message.len());
        let mut done = 0;
        for (range, value) in self.lines.iter().zip(new) {
            out.extend_from_slice(&event[done..range.start]);
            // The first space behind the colon is no part of the value.
            if value.starts_with(b" ") && out.ends_with(b":") {
                out.push(b' ');
            }
            out.extend_from_slice(value);
            done = range.end;
        }
        out.extend_from_slice(&event[done..]);
        out
    }
}

/// The value of a field, if the line is one of this name.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.strip_prefix(name)?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// An event with a message.
pub(crate) fn event(message: Vec<u8>) -> Vec<u8> {
    [b"event: message\ndata: ", &*one_line(message), b"\n\n"].concat()
}

#[cfg(test)]
mod tests;

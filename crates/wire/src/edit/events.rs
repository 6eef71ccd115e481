//! Edits server-sent events on their way to a client.
//!
//! Its main type is [`EventStreamEditor`]. The output equals the input, except for the messages that
//! an edit changes; the chunk boundaries don't matter.

use std::ops::Range;
use std::sync::Arc;

use super::conversation::Conversation;
use super::lines::one_line;
use super::output::Output;
use super::{BOM, Passage};

/// An event stream on its way to a client.
pub(crate) struct EventStreamEditor {
    conversation: Arc<Conversation>,
    /// An event that is not complete yet.
    held: Vec<u8>,
    place: EventParseState,
    line_length: usize,
    /// A carriage return ended the last line, so a line feed right after it belongs to it.
    after_return: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventParseState {
    Between,
    Holding,
    Passing,
}

impl EventStreamEditor {
    pub(crate) fn new(conversation: &Arc<Conversation>) -> Self {
        Self {
            conversation: conversation.clone(),
            held: Vec::new(),
            place: EventParseState::Between,
            line_length: 0,
            after_return: false,
        }
    }

    /// Processes a chunk, and returns the output for the client.
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

    /// Whether an event of ours can be inserted now.
    pub(crate) fn is_between_events(&self) -> bool {
        self.place != EventParseState::Passing
    }

    /// Returns the rest of an incomplete event.
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

    /// Applies the edit to an event, and writes the output.
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

struct EventData {
    text: Vec<u8>,
    /// The position of each data line in the event.
    lines: Vec<Range<usize>>,
    /// Whether clients treat the event as a message.
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

    /// Returns the event with another message. Everything around the data stays; the data keeps its
    /// lines where possible.
    fn replaced(&self, event: &[u8], message: &[u8]) -> Vec<u8> {
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut new: Vec<&[u8]> = message.split(is_break).collect();
        let whole;
        if new.len() != self.lines.len() {
            // In JSON, a line break is white space between tokens, so the first line can hold
            // everything.
            whole = new.join(&b' ');
            new = vec![&whole];
        }
        new.resize(self.lines.len(), b"");
        let mut out = Vec::with_capacity(event.len() + message.len());
        let mut done = 0;
        for (range, value) in self.lines.iter().zip(new) {
            out.extend_from_slice(&event[done..range.start]);
            // The first space after the colon is not part of the value.
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

/// Returns the value of a field, if the line has this field name.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.strip_prefix(name)?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// Encodes a message as an event.
pub(crate) fn event(message: Vec<u8>) -> Vec<u8> {
    [b"event: message\ndata: ", &*one_line(message), b"\n\n"].concat()
}

#[cfg(test)]
mod tests;

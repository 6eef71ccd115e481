//! Edits lines between a client and a server.
//!
//! Its main types are [`ClientLines`] and [`ServerLines`]. The output equals the input, except for
//! the messages that an edit changes; the chunk boundaries don't matter.

use std::sync::Arc;

use super::conversation::Conversation;
use super::output::Output;
use super::{ClientMessageAction, Passage};

/// Edits the lines of the client.
pub(crate) struct ClientLines {
    conversation: Arc<Conversation>,
    held: PartialLine,
}

/// Edits the lines of the server.
pub(crate) struct ServerLines {
    conversation: Arc<Conversation>,
    held: PartialLine,
}

/// The output for a chunk of client input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientOutput {
    /// The bytes for the server.
    pub(crate) on: Output,
    /// Responses that the client gets instead of the server's, without newlines.
    pub(crate) answers: Vec<Vec<u8>>,
}

impl ClientLines {
    pub(crate) fn new(conversation: &Arc<Conversation>) -> Self {
        Self {
            conversation: conversation.clone(),
            held: PartialLine::new(conversation.limit()),
        }
    }

    /// Takes the next bytes of the client, which may end within a line.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> ClientOutput {
        let mut output = ClientOutput::default();
        let conversation = &self.conversation;
        self.held.take(chunk, |part| match part {
            LinePart::Passing(bytes) => output.on.bytes.extend_from_slice(bytes),
            LinePart::Line(line) => match conversation.on_client_message(message_of(line)) {
                ClientMessageAction::Answer(answer) => output.answers.push(answer),
                ClientMessageAction::Forward(passage) => put(line, passage, &mut output.on),
            },
        });
        output
    }

    /// Returns the rest of an incomplete line.
    pub(crate) fn end(self) -> Vec<u8> {
        self.held.line
    }
}

impl ServerLines {
    pub(crate) fn new(conversation: &Arc<Conversation>) -> Self {
        Self {
            conversation: conversation.clone(),
            held: PartialLine::new(conversation.limit()),
        }
    }

    /// Processes a chunk, and returns the output for the client.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Output {
        let mut output = Output::of(chunk.len());
        if self.is_between_lines() {
            output.gap();
        }
        let conversation = &self.conversation;
        self.held.take(chunk, |part| {
            let (LinePart::Line(bytes) | LinePart::Passing(bytes)) = part;
            match part {
                LinePart::Line(line) => {
                    let passage = conversation.on_server_message(message_of(line));
                    put(line, passage, &mut output);
                }
                LinePart::Passing(bytes) => output.bytes.extend_from_slice(bytes),
            }
            if bytes.ends_with(b"\n") {
                output.gap();
            }
        });
        output
    }

    /// Whether a line of ours can be inserted now: no part of a line was forwarded alone.
    pub(crate) fn is_between_lines(&self) -> bool {
        !self.held.is_passing
    }

    /// Returns the rest of an incomplete line.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held.line)
    }
}

/// Returns a line without its newline.
fn message_of(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Applies the edit to a line, and writes the output.
fn put(line: &[u8], passage: Passage, output: &mut Output) {
    match passage {
        Passage::Pass => output.bytes.extend_from_slice(line),
        Passage::Replace(message) => {
            output.bytes.extend(one_line(message));
            output
                .bytes
                .extend_from_slice(&line[message_of(line).len()..]);
        }
        Passage::Delay(time) => {
            output.wait(time);
            output.bytes.extend_from_slice(line);
        }
        Passage::Drop => {}
    }
}

/// Returns a message as one line: in JSON, a line break is white space between tokens.
pub(crate) fn one_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message
}

/// An incomplete line, which is held back until its end.
struct PartialLine {
    line: Vec<u8>,
    /// Longer lines are not held back.
    limit: usize,
    /// Whether the line is too long, and is forwarded as it arrives.
    is_passing: bool,
}

#[derive(Clone, Copy)]
enum LinePart<'a> {
    /// A complete line with its newline.
    Line(&'a [u8]),
    /// A part of a line that is too long for an edit.
    Passing(&'a [u8]),
}

impl PartialLine {
    fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            limit,
            is_passing: false,
        }
    }

    /// Processes a chunk, and calls `on` for every part that can be forwarded.
    fn take(&mut self, chunk: &[u8], mut on: impl FnMut(LinePart<'_>)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest);
            let (part, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            rest = after;
            if !self.is_passing && self.line.len() + part.len() > self.limit {
                on(LinePart::Passing(&std::mem::take(&mut self.line)));
                self.is_passing = true;
            }
            if self.is_passing {
                on(LinePart::Passing(part));
            } else if end.is_some() && self.line.is_empty() {
                // Most lines are complete in one chunk.
                on(LinePart::Line(part));
            } else {
                self.line.extend_from_slice(part);
            }
            if end.is_some() {
                if !self.line.is_empty() {
                    on(LinePart::Line(&self.line));
                    self.line.clear();
                    self.line.shrink_to(64 << 10);
                }
                self.is_passing = false;
            }
        }
    }
}

#[cfg(test)]
mod tests;

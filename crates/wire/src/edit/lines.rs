//! Lines between a client and a server: bytes in, bytes out.
//!
//! Its main types are [`ClientLines`] and [`ServerLines`]. What comes out is what went in, but for the
//! messages that an edit does not pass; where chunks end makes no difference.

use std::sync::Arc;

use super::conversation::Conversation;
use super::output::Output;
use super::{Handling, Passage};

/// What the client says.
pub(crate) struct ClientLines {
    conversation: Arc<Conversation>,
    held: PartialLine,
}

/// What the server says.
pub(crate) struct ServerLines {
    conversation: Arc<Conversation>,
    held: PartialLine,
}

/// What becomes of something that the client said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientOutput {
    /// What the server gets.
    pub(crate) on: Output,
    /// What the client gets instead of the server's answers: messages without line ends.
    pub(crate) answers: Vec<Vec<u8>>,
}

impl ClientLines {
    pub(crate) fn new(conversation: &Arc<Conversation>) -> Self {
        Self {
            conversation: conversation.clone(),
            held: PartialLine::new(conversation.limit()),
        }
    }

    /// Takes in a chunk.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> ClientOutput {
        let mut output = ClientOutput::default();
        let conversation = &self.conversation;
        self.held.take(chunk, |part| match part {
            LinePart::Passing(bytes) => output.on.bytes.extend_from_slice(bytes),
            LinePart::Line(line) => match conversation.on_client_message(message_of(line)) {
                Handling::Answer(answer) => output.answers.push(answer),
                Handling::Forward(passage) => put(line, passage, &mut output.on),
            },
        });
        output
    }

    /// What is left of a line that has no end.
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

    /// Takes in a chunk, and gives what the client gets.
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

    /// Whether a line of ours may come now: no part of a line has gone on alone.
    pub(crate) fn is_between_lines(&self) -> bool {
        !self.held.is_passing
    }

    /// What is left of a line that has no end.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held.line)
    }
}

/// A line without its end.
fn message_of(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Puts out what becomes of a line.
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

/// A message as one line: in JSON, a line break is white space between tokens.
pub(crate) fn one_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message
}

/// A line as far as it has come. Nobody can do anything with a part of it, so it is held back.
struct PartialLine {
    line: Vec<u8>,
    /// Lines up to this length are held.
    limit: usize,
    /// Whether the line is too long, and passes as it comes.
    is_passing: bool,
}

#[derive(Clone, Copy)]
enum LinePart<'a> {
    /// A line with its end.
    Line(&'a [u8]),
    /// Bytes of a line that nobody looks at.
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

    /// Takes in a chunk, and hands on what can go on.
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
                // Most lines come whole.
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

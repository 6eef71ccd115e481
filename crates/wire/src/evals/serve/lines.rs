//! Lines between a client and a server: bytes in, bytes out.
//!
//! Its main types are [`FromClient`] and [`FromServer`]. What comes out is what went in, but for the
//! lines that are ours; where chunks end makes no difference.

use std::sync::Arc;

use mcp_evals::splice;

use super::asked::{self, Asked};
use super::talk::Talk;
use super::{Desk, LIMIT};

/// What the client says.
pub(super) struct FromClient {
    desk: Arc<Desk>,
    talk: Arc<Talk>,
    held: Held,
}

/// What the server says.
pub(super) struct FromServer {
    desk: Arc<Desk>,
    talk: Arc<Talk>,
    held: Held,
}

/// What becomes of something that the client said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// What the server gets.
    pub(super) on: Vec<u8>,
    /// What the client gets instead of the server's answers: messages without line ends.
    pub(super) answers: Vec<Vec<u8>>,
}

/// What the client gets of something that the server said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) bytes: Vec<u8>,
    /// Where lines of ours may come between: behind the last line that ended.
    pub(super) gap: Option<usize>,
}

impl FromClient {
    pub(super) fn new(desk: &Arc<Desk>, talk: &Arc<Talk>) -> Self {
        Self {
            desk: desk.clone(),
            talk: talk.clone(),
            held: Held::default(),
        }
    }

    /// Takes in a chunk.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Turn {
        let mut turn = Turn::default();
        let (desk, talk) = (&self.desk, &self.talk);
        self.held.take(chunk, |part| match part {
            Part::Passing(bytes) => turn.on.extend_from_slice(bytes),
            Part::Line(line) => {
                match asked::read(line) {
                    Asked::List(request) => return turn.answers.push(desk.answer(&request)),
                    Asked::Handshake(handshake) => talk.wait_for(handshake),
                    Asked::Initialized => talk.initialized(),
                    Asked::Other => {}
                }
                turn.on.extend_from_slice(line);
            }
        });
        turn
    }

    /// What is left of a line that has no end.
    pub(super) fn end(self) -> Vec<u8> {
        self.held.line
    }
}

impl FromServer {
    pub(super) fn new(desk: &Arc<Desk>, talk: &Arc<Talk>) -> Self {
        Self {
            desk: desk.clone(),
            talk: talk.clone(),
            held: Held::default(),
        }
    }

    /// Takes in a chunk, and gives what the client gets.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Said {
        let mut said = Said {
            gap: self.is_between_lines().then_some(0),
            bytes: Vec::with_capacity(chunk.len()),
        };
        let (desk, talk) = (&self.desk, &self.talk);
        self.held.take(chunk, |part| {
            let (Part::Line(bytes) | Part::Passing(bytes)) = part;
            match part {
                Part::Line(_) if talk.is_waiting() => {
                    let insertions = talk.insertions(bytes, desk);
                    said.bytes.extend(splice::apply(bytes, &insertions));
                }
                Part::Line(_) | Part::Passing(_) => said.bytes.extend_from_slice(bytes),
            }
            if bytes.ends_with(b"\n") {
                said.gap = Some(said.bytes.len());
            }
        });
        said
    }

    /// Whether a line of ours may come now: no part of a line has gone on alone.
    pub(super) fn is_between_lines(&self) -> bool {
        !self.held.is_passing
    }

    /// What is left of a line that has no end.
    pub(super) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held.line)
    }
}

/// A line as far as it has come. Nobody can do anything with a part of it, so it is held back.
#[derive(Default)]
struct Held {
    line: Vec<u8>,
    /// Whether the line is too long, and passes as it comes.
    is_passing: bool,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    /// A line with its end.
    Line(&'a [u8]),
    /// Bytes of a line that nobody looks at.
    Passing(&'a [u8]),
}

impl Held {
    /// Takes in a chunk, and hands on what can go on.
    fn take(&mut self, chunk: &[u8], mut on: impl FnMut(Part<'_>)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest);
            let (part, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            rest = after;
            if !self.is_passing && self.line.len() + part.len() > LIMIT {
                on(Part::Passing(&std::mem::take(&mut self.line)));
                self.is_passing = true;
            }
            if self.is_passing {
                on(Part::Passing(part));
            } else if end.is_some() && self.line.is_empty() {
                // Most lines come whole.
                on(Part::Line(part));
            } else {
                self.line.extend_from_slice(part);
            }
            if end.is_some() {
                if !self.line.is_empty() {
                    on(Part::Line(&self.line));
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

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
        let is_of_interest = || true;
        self.held.take(chunk, is_of_interest, |part| match part {
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
        let is_of_interest = || talk.is_waiting();
        self.held.take(chunk, is_of_interest, |part| {
            let (Part::Line(bytes) | Part::Passing(bytes)) = part;
            match part {
                Part::Passing(_) => said.bytes.extend_from_slice(bytes),
                Part::Line(_) => {
                    let insertions = talk.insertions(bytes, desk);
                    said.bytes.extend(splice::apply(bytes, &insertions));
                }
            }
            if bytes.ends_with(b"\n") {
                said.gap = Some(said.bytes.len());
            }
        });
        said
    }

    /// Whether a line of ours may come now: no line of the server has been begun and not ended.
    pub(super) fn is_between_lines(&self) -> bool {
        !matches!(self.held.place, Place::Passing)
    }

    /// What is left of a line that has no end.
    pub(super) fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held.line)
    }
}

/// A line as far as it has come.
#[derive(Default)]
struct Held {
    line: Vec<u8>,
    place: Place,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before a line.
    #[default]
    Between,
    /// In a line that is looked at once it is whole.
    Holding,
    /// In a line that passes as it comes.
    Passing,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    /// A line with its end.
    Line(&'a [u8]),
    /// Bytes of a line that nobody looks at.
    Passing(&'a [u8]),
}

impl Held {
    /// Takes in a chunk, and hands on what can go on. Whether a line is of interest is asked when it
    /// begins.
    fn take(
        &mut self,
        chunk: &[u8],
        is_of_interest: impl Fn() -> bool,
        mut on: impl FnMut(Part<'_>),
    ) {
        let mut rest = chunk;
        while !rest.is_empty() {
            if self.place == Place::Between {
                self.place = if is_of_interest() {
                    Place::Holding
                } else {
                    Place::Passing
                };
            }
            let end = memchr::memchr(b'\n', rest);
            let (part, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            rest = after;
            if self.place == Place::Holding && self.line.len() + part.len() > LIMIT {
                on(Part::Passing(&std::mem::take(&mut self.line)));
                self.place = Place::Passing;
            }
            match self.place {
                Place::Passing => on(Part::Passing(part)),
                // Most lines come whole.
                _ if end.is_some() && self.line.is_empty() => on(Part::Line(part)),
                _ => self.line.extend_from_slice(part),
            }
            if end.is_some() {
                if !self.line.is_empty() {
                    on(Part::Line(&self.line));
                    self.line.clear();
                    self.line.shrink_to(64 << 10);
                }
                self.place = Place::Between;
            }
        }
    }
}

#[cfg(test)]
mod tests;

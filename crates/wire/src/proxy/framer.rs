//! Splits chunks into lines while they are forwarded.
//!
//! Its main type is [`Framer`]. It buffers at most one line, up to its limit; longer lines are only
//! counted and hashed.

use std::mem;

use crate::recorder::OversizedMessage;
use crate::transport::frames::BodyCollector;

/// A complete line, or the digest of one that is too long to keep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FramedLine<'a> {
    /// The line without its newline.
    Whole(&'a [u8]),
    /// The line exceeds the limit.
    Oversized(OversizedMessage),
}

/// Assembles lines from chunks.
pub(crate) struct Framer {
    line: BodyCollector,
    /// Whether a line has started and not ended.
    begun: bool,
    limit: usize,
}

impl Framer {
    /// Creates a framer that buffers lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: BodyCollector::new(limit),
            begun: false,
            limit,
        }
    }

    /// Processes a chunk, and calls `keep` for every line that ends in it.
    pub(crate) fn feed(&mut self, mut chunk: &[u8], mut keep: impl FnMut(FramedLine<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (part, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            if !self.begun && part.len() <= self.limit {
                keep(FramedLine::Whole(part));
                continue;
            }
            self.line.take(part);
            self.hand_out(&mut keep);
        }
        if !chunk.is_empty() {
            self.begun = true;
            self.line.take(chunk);
        }
    }

    /// Calls `keep` for the incomplete last line, if there is one.
    pub(crate) fn end(&mut self, mut keep: impl FnMut(FramedLine<'_>)) {
        if self.begun {
            self.hand_out(&mut keep);
        }
    }

    fn hand_out(&mut self, keep: &mut impl FnMut(FramedLine<'_>)) {
        self.begun = false;
        match mem::replace(&mut self.line, BodyCollector::new(self.limit)).end() {
            Ok(line) => keep(FramedLine::Whole(&line)),
            Err(cut) => keep(FramedLine::Oversized(cut)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the lines of these chunks, and the incomplete last line.
    fn lines(chunks: &[Vec<u8>], limit: usize) -> Vec<Result<Vec<u8>, u64>> {
        let mut framer = Framer::new(limit);
        let mut found = Vec::new();
        let mut keep = |passing: FramedLine<'_>| {
            found.push(match passing {
                FramedLine::Whole(line) => Ok(line.to_vec()),
                FramedLine::Oversized(cut) => Err(cut.bytes),
            });
        };
        for chunk in chunks {
            framer.feed(chunk, &mut keep);
        }
        framer.end(&mut keep);
        found
    }

    #[test]
    fn lines_end_at_line_feeds_only() {
        let check = |text: &[u8], expected: &[&[u8]]| {
            let expected: Vec<_> = expected.iter().map(|line| Ok(line.to_vec())).collect();
            assert_eq!(lines(&[text.to_vec()], 10), expected);
        };
        check(b"", &[]);
        check(b"\n", &[b""]);
        check(b"a\nb\r\n\nc", &[b"a", b"b\r", b"", b"c"]);
        check(b"\xff\0\n", &[b"\xff\0"]);
    }

    #[test]
    fn an_oversized_line_is_hashed_and_does_not_affect_the_next() {
        let chunks = [b"0123456789\n01234".to_vec(), b"567890\nok".to_vec()];
        let ok = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(lines(&chunks, 10), [ok("0123456789"), Err(11), ok("ok")]);
        let mut framer = Framer::new(3);
        let mut hash = String::new();
        framer.feed(b"abcd\n", |passing| {
            if let FramedLine::Oversized(cut) = passing {
                hash = cut.sha256;
            }
        });
        let expected = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589";
        assert_eq!(hash, expected);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(
            chunks in prop::collection::vec(
                prop::collection::vec(prop_oneof![4 => any::<u8>(), 1 => Just(b'\n')], 0..40),
                0..12,
            ),
            limit in 0_usize..30,
        ) {
            let text: Vec<u8> = chunks.concat();
            let mut expected: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            let expected: Vec<_> = expected
                .into_iter()
                .map(|line| if line.len() > limit { Err(line.len() as u64) } else { Ok(line) })
                .collect();
            prop_assert_eq!(lines(&chunks, limit), expected);
        }
    }
}

//! Lines out of bytes, in bounded memory.
//!
//! Its main type is [`LineReader`]. A line that is too long is counted and hashed while it passes by, and
//! the next one is read as if nothing had been.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::recorder::OversizedMessage;

/// What stands between two line breaks.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamLine {
    /// A line, without its line feed. A carriage return is left in.
    Whole(Vec<u8>),
    /// A line that the end of the stream cut short.
    Torn(Vec<u8>),
    /// A line that was too long.
    Oversized(OversizedMessage),
}

/// Reads lines of bounded length.
pub struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            limit,
        }
    }

    /// The next line, or nothing at the end.
    pub async fn next(&mut self) -> std::io::Result<Option<StreamLine>> {
        let mut line = Vec::new();
        let mut passed: Option<DiscardedBytes> = None;
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(match (passed, line.is_empty()) {
                    (Some(passed), _) => Some(StreamLine::Oversized(passed.end())),
                    (None, true) => None,
                    (None, false) => Some(StreamLine::Torn(line)),
                });
            }
            let end = memchr::memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            match &mut passed {
                Some(passed) => passed.take(part),
                None if line.len() + part.len() > self.limit => {
                    let mut begun = DiscardedBytes::default();
                    begun.take(&line);
                    begun.take(part);
                    line = Vec::new();
                    passed = Some(begun);
                }
                None => line.extend_from_slice(part),
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(Some(match passed {
                    Some(passed) => StreamLine::Oversized(passed.end()),
                    None => StreamLine::Whole(line),
                }));
            }
        }
    }
}

/// Bytes that were not kept.
#[derive(Default)]
pub struct DiscardedBytes {
    bytes: u64,
    hash: Sha256,
    head: Vec<u8>,
}

/// How much of the start of what passes by is kept.
const HEAD: usize = 512;

impl DiscardedBytes {
    pub fn take(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend_from_slice(&part[..part.len().min(room)]);
        self.hash.update(part);
    }

    pub fn end(self) -> OversizedMessage {
        let digest = self.hash.finalize();
        OversizedMessage {
            bytes: self.bytes,
            sha256: HEXLOWER.encode(&digest),
            head: self.head,
        }
    }
}

/// Collects a body of bounded size, or what its hash would be.
pub struct BodyCollector {
    kept: Vec<u8>,
    passed: Option<DiscardedBytes>,
    limit: usize,
}

impl BodyCollector {
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            passed: None,
            limit,
        }
    }

    pub fn take(&mut self, part: &[u8]) {
        match &mut self.passed {
            Some(passed) => passed.take(part),
            None if self.kept.len() + part.len() > self.limit => {
                let mut begun = DiscardedBytes::default();
                begun.take(&self.kept);
                begun.take(part);
                self.kept = Vec::new();
                self.passed = Some(begun);
            }
            None => self.kept.extend_from_slice(part),
        }
    }

    /// Whether it has become too large already.
    pub fn is_over(&self) -> bool {
        self.passed.is_some()
    }

    pub fn end(self) -> Result<Vec<u8>, OversizedMessage> {
        match self.passed {
            Some(passed) => Err(passed.end()),
            None => Ok(self.kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], limit: usize) -> Vec<StreamLine> {
        let mut lines = LineReader::new(text, limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        found
    }

    fn whole(text: &str) -> StreamLine {
        StreamLine::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_at_line_feeds_only() {
        assert_eq!(lines(b"", 10).await, []);
        assert_eq!(
            lines(b"a\nb\r\n\nc", 10).await,
            [
                whole("a"),
                whole("b\r"),
                whole(""),
                StreamLine::Torn(b"c".to_vec())
            ]
        );
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_does_not_touch_the_next() {
        let text = format!("{}\nok\n{}", "x".repeat(200_000), "y".repeat(11));
        let found = lines(text.as_bytes(), 10).await;
        let StreamLine::Oversized(first) = &found[0] else {
            panic!("{found:?}")
        };
        assert_eq!(first.bytes, 200_000);
        let mut passed = DiscardedBytes::default();
        passed.take("x".repeat(200_000).as_bytes());
        assert_eq!(first.sha256, passed.end().sha256);
        assert_eq!(found[1], whole("ok"));
        assert!(matches!(&found[2], StreamLine::Oversized(cut) if cut.bytes == 11));
        assert_eq!(lines(b"0123456789\n", 10).await, [whole("0123456789")]);
    }
}

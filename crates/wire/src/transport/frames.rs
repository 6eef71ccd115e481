//! Reads lines in bounded memory.
//!
//! Its main type is [`LineReader`]. A line that exceeds the limit is counted and hashed, and does
//! not affect the next one.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::recorder::OversizedMessage;
use crate::worker;

/// How much is read before other tasks get a turn, even if there is more.
const TURN: usize = 1 << 20;

/// One line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamLine {
    /// The line without its line feed. A carriage return is kept.
    Whole(Vec<u8>),
    /// An incomplete line at the end of the stream.
    Torn(Vec<u8>),
    /// A line that exceeds the limit.
    Oversized(OversizedMessage),
}

/// Reads lines of limited length.
pub struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader for lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            limit,
        }
    }

    /// Reads the next line; `None` at the end.
    pub async fn next(&mut self) -> std::io::Result<Option<StreamLine>> {
        let mut line = Vec::new();
        let mut passed: Option<DiscardedBytes> = None;
        let mut read = 0;
        loop {
            if read >= TURN {
                tokio::task::yield_now().await;
                read = 0;
            }
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
                    passed = Some(DiscardedBytes::of(&std::mem::take(&mut line), part));
                }
                None => append(&mut line, part),
            }
            let consumed = part.len() + usize::from(end.is_some());
            read += consumed;
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

/// Adds a part. Growing a large buffer copies all of it.
fn append(buffer: &mut Vec<u8>, part: &[u8]) {
    if buffer.capacity() - buffer.len() < part.len() {
        worker::on_body(buffer.len(), || buffer.reserve(part.len()));
    }
    buffer.extend_from_slice(part);
}

/// The length, hash and start of bytes that were not stored.
#[derive(Default)]
pub struct DiscardedBytes {
    bytes: u64,
    hash: Sha256,
    head: Vec<u8>,
}

/// How much of the start is stored.
const HEAD: usize = 512;

impl DiscardedBytes {
    /// Starts with bytes that were kept so far, and the part that exceeds the limit.
    fn of(kept: &[u8], part: &[u8]) -> Self {
        let mut discarded = Self::default();
        worker::on_body(kept.len(), || discarded.take(kept));
        discarded.take(part);
        discarded
    }

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

/// Collects a body up to a size limit, then only its hash.
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
                let kept = std::mem::take(&mut self.kept);
                self.passed = Some(DiscardedBytes::of(&kept, part));
            }
            None => append(&mut self.kept, part),
        }
    }

    /// Whether the body exceeds the limit.
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
    async fn an_oversized_line_does_not_affect_the_next() {
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

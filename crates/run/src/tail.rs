//! Drains a stream for as long as it lasts, and keeps its end: a program that writes a lot must
//! never block on us, nor fill our memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of the end is kept.
const KEPT: usize = 64 * 1024;

/// The rest of a longer line is worth more than what it may give away.
const LONGEST_LINE: usize = 16 * 1024;

/// The end of what a stream has said so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads until the end of the stream. A stream that fails has ended.
    pub async fn drain(self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; KEPT];
        while let Ok(read @ 1..) = stream.read(&mut chunk).await {
            self.push(&chunk[..read]);
        }
    }

    /// The end as text. Bytes that are no UTF-8 become U+FFFD. What is left of a line, or else of a
    /// character, that was cut at the front is left out: half a secret is not known for what it is.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = kept.len() == KEPT;
        let rest_of_line = kept
            .iter()
            .take(LONGEST_LINE)
            .position(|byte| *byte == b'\n');
        let rest_of_character = kept.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80);
        let skipped = match rest_of_line {
            _ if !is_cut => 0,
            Some(end) => end + 1,
            None => rest_of_character.count(),
        };
        let bytes: Vec<u8> = kept.iter().skip(skipped).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = (kept.len() + bytes.len()).saturating_sub(KEPT);
        let from_kept = surplus.min(kept.len());
        kept.drain(..from_kept);
        kept.extend(&bytes[surplus - from_kept..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_read_lossily() {
        let check = |pushes: &[&[u8]], expected: &str| {
            let tail = Tail::default();
            for bytes in pushes {
                tail.push(bytes);
            }
            assert!(tail.text() == expected, "{pushes:?}");
        };
        let full = "x".repeat(KEPT);
        check(&[], "");
        check(&[b"one\n", b"two\n"], "one\ntwo\n");
        check(&[b"\xff!"], "\u{fffd}!");
        check(&[b"lost", full.as_bytes()], &full);
        check(&["lost".repeat(KEPT).as_bytes(), full.as_bytes()], &full);
        check(&[full.as_bytes(), b"end"], &(full[3..].to_owned() + "end"));
        check(&["é".as_bytes(), &full.as_bytes()[1..]], &full[1..]);
        check(&[b"half a line\n", &full.as_bytes()[5..]], &full[5..]);
    }
}

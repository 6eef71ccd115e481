//! Drains a stream for as long as it lasts, and keeps its end: a program that writes a lot must
//! never block on us, nor fill our memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of the end is kept.
const KEPT: usize = 64 * 1024;

/// The rest of a longer line is worth more than what it may give away.
const LONGEST_LINE: usize = 16 * 1024;

/// The end of what a stream has said so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    end: VecDeque<u8>,
    /// How many bytes there were in all.
    total: u64,
}

impl Tail {
    /// The end as text. Bytes that are no UTF-8 become U+FFFD. What is left of a line, or else of a
    /// character, that was cut at the front is left out: half a secret is not known for what it is.
    pub fn text(&self) -> String {
        let kept = self.lock();
        let is_cut = kept.end.len() == KEPT;
        let rest_of_line = kept
            .end
            .iter()
            .take(LONGEST_LINE)
            .position(|byte| *byte == b'\n');
        let rest_of_character = kept.end.iter().take(3);
        let rest_of_character = rest_of_character.take_while(|byte| **byte & 0xC0 == 0x80);
        let skipped = match rest_of_line {
            _ if !is_cut => 0,
            Some(end) => end + 1,
            None => rest_of_character.count(),
        };
        let bytes: Vec<u8> = kept.end.iter().skip(skipped).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The end as text, after a line that says how much came before it, if anything did.
    pub fn text_and_gap(&self) -> String {
        let text = self.text();
        let total = self.lock().total;
        if total <= KEPT as u64 {
            return text;
        }
        let left_out = total.saturating_sub(text.len() as u64);
        format!("[{left_out} bytes left out]\n{text}")
    }

    /// The end as text, like `text_and_gap`, and starts anew.
    pub fn take(&self) -> String {
        let text = self.text_and_gap();
        *self.lock() = Kept::default();
        text
    }

    /// Adds bytes.
    pub fn push(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        kept.total += bytes.len() as u64;
        let kept = &mut kept.end;
        let surplus = (kept.len() + bytes.len()).saturating_sub(KEPT);
        let from_kept = surplus.min(kept.len());
        kept.drain(..from_kept);
        kept.extend(&bytes[surplus - from_kept..]);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads until the end of the stream, for several tails. A stream that fails has ended.
pub async fn drain(mut stream: impl AsyncRead + Unpin, tails: &[Tail]) {
    let mut chunk = vec![0; KEPT];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        for tail in tails {
            tail.push(&chunk[..read]);
        }
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

    #[test]
    fn what_was_left_out_is_counted() {
        let tail = Tail::default();
        tail.push(b"all\n");
        assert_eq!(tail.text_and_gap(), "all\n");
        tail.push("line\n".repeat(KEPT).as_bytes());
        let text = tail.text_and_gap();
        let (gap, rest) = text.split_once('\n').unwrap();
        let left_out = 4 + 5 * KEPT - rest.len();
        assert_eq!(gap, format!("[{left_out} bytes left out]"));
        assert!(rest.starts_with("line\n"));
    }
}

//! Reads a stream to its end and keeps the last part, so that a program that writes a lot neither
//! blocks nor fills Proctor's memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use proctor_record::redact::{self, Redactor};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How many bytes at the end are shown.
const SHOWN: usize = 64 * 1024;

/// How many bytes are kept: enough to recognize a secret that starts before the shown part.
const KEPT: usize = SHOWN + redact::LONGEST;

/// If the shown part starts within a line longer than this, the rest of that line is shown.
const LONGEST_LINE: usize = 16 * 1024;

/// The last part of a stream so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<TailBuffer>>);

#[derive(Debug, Default)]
struct TailBuffer {
    end: VecDeque<u8>,
    /// The total number of bytes so far.
    total: u64,
    /// The words to count, if any.
    counted: Option<CountedWord>,
}

/// How often a word occurred in a stream, also in the part that was not kept.
#[derive(Debug)]
struct CountedWord {
    word: &'static [u8],
    count: usize,
    /// The last bytes, in which the word may have begun.
    begun: Vec<u8>,
}

impl CountedWord {
    fn push(&mut self, bytes: &[u8]) {
        // A word that spans two pushes lies in the end of one and the beginning of the other.
        let room = self.word.len() - 1;
        self.begun.extend(&bytes[..bytes.len().min(room)]);
        self.count += memmem::find_iter(&self.begun, self.word).count();
        self.count += memmem::find_iter(bytes, self.word).count();
        if bytes.len() >= room {
            self.begun.clear();
            self.begun.extend(&bytes[bytes.len() - room..]);
        } else {
            let surplus = self.begun.len().saturating_sub(room);
            self.begun.drain(..surplus);
        }
    }
}

impl Tail {
    /// A tail that also counts a word of two bytes or more in the whole stream.
    pub fn counting(word: &'static [u8]) -> Self {
        let counted = CountedWord {
            word,
            count: 0,
            begun: Vec::new(),
        };
        Self(Arc::new(Mutex::new(TailBuffer {
            counted: Some(counted),
            ..TailBuffer::default()
        })))
    }

    /// How often the word occurred that the tail counts, also in the part that was not kept.
    pub fn count(&self) -> usize {
        self.lock().counted.as_ref().map_or(0, |word| word.count)
    }

    /// The last part as text, with secrets redacted.
    pub fn redacted(&self, redactor: &Redactor) -> String {
        redactor.text(&self.text(redactor)).into_owned()
    }

    /// The last part as text; invalid UTF-8 becomes U+FFFD. It never starts within a secret that
    /// the redactor knows, which would show half of it. An incomplete first line, or at least an
    /// incomplete first character, is left out.
    pub fn text(&self, redactor: &Redactor) -> String {
        let kept = Vec::from(self.lock().end.clone());
        let Some(before) = kept.len().checked_sub(SHOWN).filter(|before| *before > 0) else {
            return String::from_utf8_lossy(&kept).into_owned();
        };
        let end = &kept[redactor.cut(&kept, before)..];
        let mut first_line = end.iter().take(LONGEST_LINE);
        let newline = first_line.position(|byte| *byte == b'\n');
        let rest_of_character = end.iter().take(3);
        let rest_of_character = rest_of_character.take_while(|byte| **byte & 0xC0 == 0x80);
        let skipped = newline.map_or_else(|| rest_of_character.count(), |newline| newline + 1);
        String::from_utf8_lossy(&end[skipped..]).into_owned()
    }

    /// Like `text`, after a line that says how many bytes were left out, if any.
    pub fn text_and_gap(&self, redactor: &Redactor) -> String {
        let text = self.text(redactor);
        let total = self.lock().total;
        if total <= SHOWN as u64 {
            return text;
        }
        let left_out = total.saturating_sub(text.len() as u64);
        format!("[{left_out} bytes left out]\n{text}")
    }

    /// Returns `text_and_gap` and starts over.
    pub fn take(&self, redactor: &Redactor) -> String {
        let text = self.text_and_gap(redactor);
        *self.lock() = TailBuffer::default();
        text
    }

    pub fn push(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        kept.total += bytes.len() as u64;
        if let Some(counted) = &mut kept.counted {
            counted.push(bytes);
        }
        let kept = &mut kept.end;
        let surplus = (kept.len() + bytes.len()).saturating_sub(KEPT);
        let from_kept = surplus.min(kept.len());
        kept.drain(..from_kept);
        kept.extend(&bytes[surplus - from_kept..]);
    }

    fn lock(&self) -> MutexGuard<'_, TailBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a stream to its end into several tails. An error ends the stream.
pub async fn drain(mut stream: impl AsyncRead + Unpin, tails: &[Tail]) {
    let mut chunk = vec![0; SHOWN];
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
    fn the_last_part_is_kept_and_decoded_lossily() {
        let check = |pushes: &[&[u8]], expected: &str| {
            let tail = Tail::default();
            for bytes in pushes {
                tail.push(bytes);
            }
            assert!(tail.text(&Redactor::default()) == expected, "{pushes:?}");
        };
        let full = "x".repeat(SHOWN);
        check(&[], "");
        check(&[b"one\n", b"two\n"], "one\ntwo\n");
        check(&[b"\xff!"], "\u{fffd}!");
        check(&[b"lost", full.as_bytes()], &full);
        check(&["lost".repeat(SHOWN).as_bytes(), full.as_bytes()], &full);
        check(&[full.as_bytes(), b"end"], &(full[3..].to_owned() + "end"));
        check(&["é".as_bytes(), &full.as_bytes()[1..]], &full[1..]);
        check(&[b"half a line\n", &full.as_bytes()[5..]], &full[5..]);
    }

    #[test]
    fn a_word_is_counted_in_the_whole_stream() {
        let check = |pushes: &[&str], expected: usize| {
            let tail = Tail::counting(b"word");
            for text in pushes {
                tail.push(text.as_bytes());
            }
            assert_eq!(tail.count(), expected, "{pushes:?}");
        };
        check(&[], 0);
        check(&["a word and a word"], 2);
        check(&["wo", "rd", "w", "o", "r", "d"], 2);
        check(&["wordw", "ord wor", "k"], 2);
        check(&["word", &"x".repeat(2 * KEPT), "word"], 2);
    }

    #[test]
    fn omitted_bytes_are_counted() {
        let tail = Tail::default();
        tail.push(b"all\n");
        assert_eq!(tail.text_and_gap(&Redactor::default()), "all\n");
        tail.push("line\n".repeat(SHOWN).as_bytes());
        let text = tail.text_and_gap(&Redactor::default());
        let (gap, rest) = text.split_once('\n').unwrap();
        let left_out = 4 + 5 * SHOWN - rest.len();
        assert_eq!(gap, format!("[{left_out} bytes left out]"));
        assert!(rest.starts_with("line\n"));
    }

    #[test]
    fn the_last_part_never_starts_within_a_secret() {
        const SECRET: &str = "-----BEGIN-----\n0123456789abcdef\nfedcba9876543210\n-----END-----";
        let redactor = Redactor::new([("KEY".to_owned(), SECRET.to_owned())]);
        let escaped = SECRET.replace('\n', "\\u000A");
        for secret in [SECRET, &escaped] {
            for cut in (1..secret.len()).step_by(9) {
                for rest in ["x", "x\n"] {
                    let tail = Tail::default();
                    tail.push(b"before it ");
                    tail.push(secret.as_bytes());
                    let behind = SHOWN - (secret.len() - cut);
                    tail.push(&rest.repeat(SHOWN).as_bytes()[..behind]);
                    let text = tail.redacted(&redactor);
                    assert!(text.starts_with('x'), "{cut}: {}", &text[..40]);
                    assert!(text.len() >= behind - 2, "{cut}");
                }
            }
        }
    }
}

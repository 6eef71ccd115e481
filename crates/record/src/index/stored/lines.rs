//! Lines of a file: all of them in order, or any one by its place.
//!
//! Both read large parts of the file at a time, and copy a line only if it crosses the end of a part.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use crate::record::MAX_LINE;

/// How many bytes are read at a time.
const PART: usize = 1 << 18;

/// Calls `take` with the offset and the bytes of each line, without its line feed. Returns whether all of the file could be
/// read.
pub(super) fn each_line(file: &File, mut take: impl FnMut(u64, &[u8])) -> bool {
    let mut input = BufReader::with_capacity(PART, file);
    let mut offset = 0;
    // The beginning of a line that is not in the buffer any more.
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let Ok(buffer) = input.fill_buf() else {
            return false;
        };
        if buffer.is_empty() {
            if !begun.is_empty() {
                take(offset, &begun);
            }
            return true;
        }
        let mut rest = buffer;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            let bytes = if begun.is_empty() {
                take(offset, line);
                line.len()
            } else {
                begun.extend_from_slice(line);
                take(offset, &begun);
                begun.len()
            };
            begun.clear();
            offset += bytes as u64 + 1;
        }
        begun.extend_from_slice(rest);
        // Proctor writes no such line.
        if begun.len() > MAX_LINE {
            return false;
        }
        let read = buffer.len();
        input.consume(read);
    }
}

/// Reads lines whose places are known.
#[derive(Debug)]
pub(super) struct LineReader {
    file: File,
    /// A part of the file, and its offset.
    part: Vec<u8>,
    at: u64,
    /// The end of the latest line.
    end: u64,
}

impl LineReader {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            part: Vec::new(),
            at: 0,
            end: 0,
        }
    }

    /// The bytes of a line.
    pub(super) fn line(&mut self, offset: u64, bytes: usize) -> io::Result<&[u8]> {
        let known = |this: &Self| {
            let start = usize::try_from(offset.checked_sub(this.at)?).ok()?;
            let end = start.checked_add(bytes)?;
            (end <= this.part.len()).then_some(start..end)
        };
        if known(self).is_none() {
            // Lines in another order than that of the file are read one by one: a part would hold few of them.
            let is_next = offset >= self.end && offset - self.end < PART as u64 / 16;
            let length = if is_next { bytes.max(PART) } else { bytes };
            self.read(offset, length)?;
        }
        self.end = offset + bytes as u64;
        let range = known(self).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(&self.part[range])
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<()> {
        self.part.clear();
        self.at = offset;
        self.file.seek(SeekFrom::Start(offset))?;
        let file = &mut self.file;
        file.take(length as u64).read_to_end(&mut self.part)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Lines that cross the ends of parts, empty ones, one that is longer than a part, and one without a line feed.
    fn sample() -> Vec<Vec<u8>> {
        let lengths = [0, 1, 3 * PART, 0, 7].into_iter();
        let lengths = lengths.chain((0..2_000).map(|number| number % 977));
        let mut lines: Vec<Vec<u8>> = lengths
            .zip((0_u8..=255).cycle())
            .map(|(length, byte)| vec![b'a' + byte % 26; length])
            .collect();
        lines.push(b"the last".to_vec());
        lines
    }

    #[test]
    fn lines_are_the_same_in_order_and_by_place() {
        let lines = sample();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&lines.join(&b'\n')).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut places = Vec::new();
        let mut read = Vec::new();
        assert!(each_line(&file, |offset, line| {
            places.push((offset, line.len()));
            read.push(line.to_vec());
        }));
        assert!(read == lines, "in order");
        let mut reader = LineReader::new(file);
        let count = lines.len();
        // Forwards, backwards, and from one end to the other.
        let across = (0..count).map(|n| if n % 2 == 0 { n } else { count - n });
        for index in (0..count).chain((0..count).rev()).chain(across) {
            let (offset, bytes) = places[index];
            assert!(
                reader.line(offset, bytes).unwrap() == lines[index],
                "{index}"
            );
        }
        let (offset, bytes) = places[count - 1];
        assert!(
            reader.line(offset, bytes + 1).is_err(),
            "the file is shorter"
        );
        assert!(reader.line(offset + 100, 1).is_err(), "beyond the end");
    }
}

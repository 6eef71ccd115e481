//! Reads the lines of a file one at a time, with a length limit.

use std::io::{self, BufRead, Read};

/// The next line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordLine<'a> {
    /// A complete line, without its newline.
    Line(&'a [u8]),
    /// An incomplete last line of this many bytes.
    Torn(u64),
    /// A line longer than the limit.
    TooLong,
    End,
}

#[derive(Debug)]
pub(super) struct RecordLines<R> {
    input: R,
    limit: usize,
    line: Vec<u8>,
}

impl<R: BufRead> RecordLines<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            line: Vec::new(),
        }
    }

    pub(super) fn input(&mut self) -> &mut R {
        &mut self.input
    }

    pub(super) fn next(&mut self) -> io::Result<RecordLine<'_>> {
        self.line.clear();
        let limit = self.limit as u64;
        let taken = (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.line)?;
        Ok(match self.line.split_last() {
            None => RecordLine::End,
            Some((b'\n', line)) => RecordLine::Line(line),
            Some(_) if taken as u64 == limit => RecordLine::TooLong,
            Some(_) => RecordLine::Torn(taken as u64),
        })
    }
}

//! Lines of a file, one at a time, none longer than it may be.

use std::io::{self, BufRead, Read};

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordLine<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// The file ends within a line, after this many bytes of it.
    Torn(u64),
    /// A line longer than the limit.
    TooLong,
    /// The end.
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

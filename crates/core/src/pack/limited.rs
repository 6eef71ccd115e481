//! Stops a pack that expands too far.
//!
//! The main type is [`LimitedReader`]: it decompresses, and compares the bytes that come out with those that
//! went in.

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

use super::PackLimits;

/// The content of a pack, as far as its limits allow.
pub(super) struct LimitedReader<R> {
    input: MultiGzDecoder<BufReader<CountedInput<R>>>,
    expanded: u64,
    limits: PackLimits,
    /// Whether a limit ended the content.
    pub(super) is_exceeded: bool,
}

impl<R: Read> LimitedReader<R> {
    pub(super) fn new(input: R, limits: PackLimits) -> Self {
        let input = CountedInput { input, bytes: 0 };
        Self {
            input: MultiGzDecoder::new(BufReader::new(input)),
            expanded: 0,
            limits,
            is_exceeded: false,
        }
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.expanded += read as u64;
        let taken = self.input.get_ref().get_ref().bytes;
        let allowed = taken.saturating_mul(self.limits.ratio);
        if self.expanded > allowed.max(self.limits.bytes) {
            self.is_exceeded = true;
            return Err(io::Error::other("the pack expands too far"));
        }
        Ok(read)
    }
}

struct CountedInput<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for CountedInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

//! Blocks of data: JSON lines, deflated, as base64.
//!
//! The main type is [`Block`].

use std::io::{self, Write};

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

/// The last part of a deflate stream: an empty block that is marked as the last.
const LAST: [u8; 2] = [0x03, 0x00];

/// The details of some trials.
pub(super) struct Block {
    pub(super) deflated: Vec<u8>,
    /// The number of trials in it.
    pub(super) trials: usize,
}

/// The first of these pages, as many as fit into `room` bytes of base64.
pub(super) fn block(pages: impl Iterator<Item = impl Serialize>, room: u64) -> io::Result<Block> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let (mut trials, mut end) = (0, 0);
    for page in pages {
        serde_json::to_writer(&mut encoder, &page)?;
        encoder.write_all(b"\n")?;
        // The output up to a flush is whole bytes, so that the stream can end there.
        encoder.flush()?;
        if encoded_len(encoder.get_ref().len() + LAST.len()) > room {
            break;
        }
        trials += 1;
        end = encoder.get_ref().len();
    }
    let mut deflated = encoder.finish()?;
    deflated.truncate(end);
    deflated.extend(LAST);
    Ok(Block { deflated, trials })
}

/// A value as deflated JSON.
pub(super) fn deflated(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut encoder, value)?;
    encoder.finish()
}

/// The length of base64.
fn encoded_len(bytes: usize) -> u64 {
    (bytes.div_ceil(3) * 4) as u64
}

/// Writes base64, a part at a time.
pub(super) fn encoded(bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for part in bytes.chunks(48 * 1024) {
        out.write_all(BASE64.encode(part).as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    fn inflated(deflated: &[u8]) -> String {
        let mut text = String::new();
        DeflateDecoder::new(deflated)
            .read_to_string(&mut text)
            .expect("a whole stream");
        text
    }

    /// Text that does not shrink much.
    fn page(number: u64) -> String {
        let mut state = number + 1;
        let mut step = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'a' + u8::try_from(state >> 33 & 15).unwrap())
        };
        (0..3000).map(|_| step()).collect()
    }

    #[test]
    fn a_block_holds_as_many_trials_as_fit() {
        let all = block((0..10).map(page), u64::MAX).unwrap();
        assert_eq!(all.trials, 10);
        let lines: Vec<String> = (0..10).map(|n| format!("\"{}\"\n", page(n))).collect();
        assert_eq!(inflated(&all.deflated), lines.concat());
        let size = encoded_len(all.deflated.len());
        let part = block((0..10).map(page), size / 2).unwrap();
        assert!((1..10).contains(&part.trials), "{}", part.trials);
        assert!(encoded_len(part.deflated.len()) <= size / 2);
        assert_eq!(inflated(&part.deflated), lines[..part.trials].concat());
        assert_eq!(block((0..10).map(page), 10).unwrap().trials, 0);
    }

    #[test]
    fn base64_in_parts_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let mut out = Vec::new();
        encoded(&bytes, &mut out).unwrap();
        assert_eq!(out, BASE64.encode(&bytes).into_bytes());
        assert_eq!(out.len() as u64, encoded_len(bytes.len()));
    }
}

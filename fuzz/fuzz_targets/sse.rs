//! Server-sent events: the same however the stream is cut, the data is what the standard says, and events that are written
//! again are read as the same events.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proctor_fuzz::chunks;
use proctor_wire::transport::sse::{Events, SseEvent};

const NO_LIMIT: usize = 1 << 30;

fuzz_target!(|data: &[u8]| {
    let [seed, limit, text @ ..] = data else {
        return;
    };
    let whole = Events::new(NO_LIMIT).take(text);
    assert_eq!(in_pieces(text, *seed, NO_LIMIT), whole);
    let data: Vec<&Vec<u8>> = whole
        .iter()
        .filter_map(|event| event.data.as_ref().ok())
        .collect();
    assert_eq!(data.len(), whole.len(), "no data exceeds the limit");
    let expected = as_the_standard_says(text);
    assert!(data.iter().copied().eq(&expected), "{data:?} {expected:?}");
    let mut written = Vec::new();
    for lines in &expected {
        for line in lines.split(|byte| *byte == b'\n') {
            written.extend_from_slice(b"data: ");
            written.extend_from_slice(line);
            written.push(b'\n');
        }
        written.push(b'\n');
    }
    let again: Vec<_> = Events::new(NO_LIMIT).take(&written);
    assert!(
        again
            .iter()
            .filter_map(|event| event.data.as_ref().ok())
            .eq(&expected)
    );

    let limit = usize::from(*limit);
    let limited = in_pieces(text, *seed, limit);
    assert_eq!(limited.len(), whole.len(), "a limit loses no event");
    for (event, data) in limited.iter().zip(&expected) {
        match &event.data {
            Ok(kept) => assert!(kept == data && kept.len() <= limit),
            Err(cut) => assert!(data.len() > limit && cut.bytes == data.len() as u64),
        }
    }
});

fn in_pieces(text: &[u8], seed: u8, limit: usize) -> Vec<SseEvent> {
    let mut events = Events::new(limit);
    let pieces = chunks(text, seed).into_iter();
    pieces.flat_map(|piece| events.take(piece)).collect()
}

/// The data of each event, by the text of the standard.
fn as_the_standard_says(stream: &[u8]) -> Vec<Vec<u8>> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut found = Vec::new();
    let mut data: Vec<u8> = Vec::new();
    for line in complete_lines(stream) {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                found.push(std::mem::take(&mut data));
            }
            continue;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        if field == b"data" {
            data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            data.push(b'\n');
        }
    }
    found
}

/// The lines that end, by a line feed, a carriage return, or both.
fn complete_lines(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&rest[..at]);
        let length = if rest[at..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = &rest[at + length..];
    }
    lines
}

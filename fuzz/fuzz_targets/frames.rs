//! The frame reader: the lines of a stream are those that a simple split finds, however the stream is cut; a line over the
//! limit is counted and hashed, and does not affect the next. A message that is written again is the same message.
#![no_main]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use libfuzzer_sys::fuzz_target;
use proctor_fuzz::chunks;
use proctor_record::message::{self, Message, MessageKind};
use proctor_wire::transport::frames::{BodyCollector, LineReader, StreamLine};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, ReadBuf};

/// A stream that arrives in these pieces.
struct Pieces<'a>(std::vec::IntoIter<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // An empty piece would be the end of the stream.
        if let Some(piece) = self.0.find(|piece| !piece.is_empty()) {
            buffer.put_slice(piece);
        }
        Poll::Ready(Ok(()))
    }
}

fn hash(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

fuzz_target!(|data: &[u8]| {
    let [limit, seed, text @ ..] = data else {
        return;
    };
    let limit = usize::from(*limit) * 2;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let pieces = Pieces(chunks(text, *seed).into_iter());
        let mut lines = LineReader::new(pieces, limit);
        let mut expected = text.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next().await.expect("no error of the stream") {
            let whole = expected.next().expect("no more lines than the stream has");
            match line {
                StreamLine::Whole(line) => {
                    assert!(expected.peek().is_some(), "the last line is torn");
                    assert!(line.len() <= limit);
                    assert_eq!(line, whole);
                }
                StreamLine::Torn(line) => {
                    assert!(expected.peek().is_none(), "a line feed ends this line");
                    assert!(!line.is_empty() && line.len() <= limit);
                    assert_eq!(line, whole);
                }
                StreamLine::Oversized(cut) => {
                    assert!(whole.len() > limit);
                    assert_eq!(cut.bytes, whole.len() as u64);
                    assert_eq!(cut.sha256, hash(whole));
                }
            }
        }
        // After the last line feed comes nothing.
        assert!(expected.all(<[u8]>::is_empty), "every line was read");
    });
    let mut body = BodyCollector::new(limit);
    chunks(text, *seed)
        .into_iter()
        .for_each(|part| body.take(part));
    match body.end() {
        Ok(kept) => assert_eq!(kept, text),
        Err(cut) => assert_eq!((cut.bytes, cut.sha256), (text.len() as u64, hash(text))),
    }
    let mut messages = Vec::new();
    let _ = message::each(text, &mut |message| messages.push(written(message)));
    for text in messages {
        let mut again = Vec::new();
        message::each(text.as_bytes(), &mut |message| again.push(written(message)))
            .expect("what was read can be read again");
        assert_eq!(again, [text]);
    }
});

/// The message as JSON, with its parts as they were.
fn written(message: &Message<'_>) -> String {
    let mut parts = Vec::new();
    let mut put = |key: &str, value: String| parts.push(format!("\"{key}\":{value}"));
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    if let Some(version) = &message.jsonrpc {
        put("jsonrpc", quoted(version));
    }
    match message.kind() {
        MessageKind::Request { method, .. } | MessageKind::Notification { method } => {
            put("method", quoted(method));
        }
        MessageKind::Answer { .. } | MessageKind::Neither => {}
    }
    for (key, value) in [
        ("id", message.id),
        ("params", message.params),
        ("result", message.result),
        ("error", message.error),
    ] {
        if let Some(value) = value.map(RawValue::get) {
            put(key, value.to_owned());
        }
    }
    format!("{{{}}}", parts.join(","))
}

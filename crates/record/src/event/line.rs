//! Writes events as the lines of a record.
//!
//! Most events are messages and the heads of their HTTP requests and responses. A proxy forwards a message only after its
//! line is written, so these lines are written here; serde writes all others. Tests compare both.

use super::{Body, Event, EventKind, Frame, HttpHead};

impl Event {
    /// Appends the event as a line without its line feed.
    pub(crate) fn write(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        match &self.event {
            EventKind::Frame(Frame {
                conn,
                exchange,
                direction,
                body: Body::Text(text),
            }) => {
                self.start("frame", line);
                member(line, b"\"conn\":", conn.0.into());
                if let Some(exchange) = exchange {
                    member(line, b",\"exchange\":", *exchange);
                }
                member_text(line, b",\"direction\":", direction.name());
                member_text(line, b",\"body\":{\"text\":", text);
                line.extend_from_slice(b"}}}}");
            }
            EventKind::Http(HttpHead {
                conn,
                exchange,
                direction,
                line: first,
                headers,
                failure: None,
            }) => {
                self.start("http", line);
                member(line, b"\"conn\":", conn.0.into());
                member(line, b",\"exchange\":", *exchange);
                member_text(line, b",\"direction\":", direction.name());
                member_text(line, b",\"line\":", first);
                line.extend_from_slice(b",\"headers\":{");
                for (index, (name, value)) in headers.iter().enumerate() {
                    if index > 0 {
                        line.push(b',');
                    }
                    text(line, name);
                    line.push(b':');
                    text(line, value);
                }
                line.extend_from_slice(b"}}}}");
            }
            _ => serde_json::to_writer(line, self)?,
        }
        Ok(())
    }

    fn start(&self, kind: &str, line: &mut Vec<u8>) {
        member(line, b"{\"seq\":", self.seq);
        member(line, b",\"at\":", self.at);
        line.extend_from_slice(b",\"event\":{\"");
        line.extend_from_slice(kind.as_bytes());
        line.extend_from_slice(b"\":{");
    }
}

fn member(line: &mut Vec<u8>, name: &[u8], number: u64) {
    line.extend_from_slice(name);
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn member_text(line: &mut Vec<u8>, name: &[u8], content: &str) {
    line.extend_from_slice(name);
    text(line, content);
}

/// How a byte is written: as it is (0), as `\u00XX` (`u`), or as a backslash and this letter.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[0x08] = b'b';
    escapes[b'\t' as usize] = b't';
    escapes[b'\n' as usize] = b'n';
    escapes[0x0c] = b'f';
    escapes[b'\r' as usize] = b'r';
    escapes
};

/// Appends a JSON string, with the same escapes as serde.
fn text(line: &mut Vec<u8>, content: &str) {
    // In JSON, some fifth of all bytes are quotes.
    line.reserve(content.len() + content.len() / 4 + 2);
    line.push(b'"');
    let mut rest = content.as_bytes();
    while let Some(at) = rest
        .iter()
        .position(|byte| ESCAPES[usize::from(*byte)] != 0)
    {
        let (plain, from) = rest.split_at(at);
        line.extend_from_slice(plain);
        match ESCAPES[usize::from(from[0])] {
            b'u' => {
                let digit = |number: u8| b"0123456789abcdef"[usize::from(number)];
                line.extend_from_slice(b"\\u00");
                line.extend_from_slice(&[digit(from[0] >> 4), digit(from[0] & 0xf)]);
            }
            letter => line.extend_from_slice(&[b'\\', letter]),
        }
        rest = &from[1..];
    }
    line.extend_from_slice(rest);
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::{ConnectionId, Direction, HttpFailure};
    use super::*;

    fn written(event: &Event) -> String {
        let mut line = Vec::new();
        event.write(&mut line).unwrap();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn every_character_is_escaped_as_serde_does() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let mut line = Vec::new();
        text(&mut line, &all);
        assert_eq!(line, serde_json::to_vec(&all).unwrap());
    }

    proptest! {
        #[test]
        fn lines_are_those_of_serde(
            seq: u64,
            at: u64,
            conn: u32,
            exchange: Option<u64>,
            goes_to_server: bool,
            body in prop_oneof![
                any::<String>().prop_map(Body::Text),
                any::<String>().prop_map(Body::Base64),
                (any::<String>(), any::<u64>()).prop_map(|(sha256, bytes)| Body::Blob { sha256, bytes }),
                (any::<String>(), any::<u64>()).prop_map(|(sha256, bytes)| Body::Cut { sha256, bytes }),
            ],
            headers: BTreeMap<String, String>,
            first: String,
            failed: bool,
        ) {
            let conn = ConnectionId(conn);
            let direction = if goes_to_server { Direction::ToServer } else { Direction::ToClient };
            let failure = failed.then_some(HttpFailure::Broken);
            let frame = EventKind::Frame(Frame { conn, exchange, direction, body });
            let exchange = exchange.unwrap_or_default();
            let http = EventKind::Http(HttpHead { conn, exchange, direction, line: first, headers, failure });
            for event in [frame, http] {
                let event = Event { seq, at, event };
                prop_assert_eq!(written(&event), serde_json::to_string(&event).unwrap());
            }
        }
    }
}

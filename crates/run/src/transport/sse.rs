//! Server-sent events out of bytes, in bounded memory.
//!
//! Its main type is [`Events`].

use super::frames::Bounded;
use crate::recorder::Oversized;

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its name, `message` if it has none.
    pub(crate) name: String,
    /// Its data, or what is known of it if it was too large.
    pub(crate) data: Result<Vec<u8>, Oversized>,
}

/// Turns chunks of a stream into events.
pub(crate) struct Events {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// Whether the line is data that is handed on as it comes, since it may be very long.
    in_data: bool,
    name: String,
    data: Option<Bounded>,
    limit: usize,
    /// A carriage return ended the last line, so that a line feed right after it is part of it.
    after_return: bool,
}

/// A field name and its colon are short; anything longer is no field that means something.
const MAX_FIELD: usize = 64 << 10;

impl Events {
    /// Events whose data is at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            in_data: false,
            name: String::new(),
            data: None,
            limit,
            after_return: false,
        }
    }

    /// Takes in a chunk, and gives the events that it completes.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut found = Vec::new();
        let mut rest = chunk;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            self.part(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { break };
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            found.extend(self.line_end());
        }
        found
    }

    /// What came after the last whole event.
    pub(crate) fn end(self) -> Option<Result<Vec<u8>, Oversized>> {
        let line = (!self.line.is_empty()).then_some(Ok(self.line));
        self.data.map(Bounded::end).or(line)
    }

    /// Takes in a part of a line.
    fn part(&mut self, part: &[u8]) {
        if self.in_data {
            if let Some(data) = &mut self.data {
                data.take(part);
            }
            return;
        }
        let room = MAX_FIELD.saturating_sub(self.line.len());
        let (head, tail) = part.split_at(part.len().min(room));
        self.line.extend_from_slice(head);
        // As soon as it is known to be data, it is handed on instead of collected.
        let Some(value) = self.line.strip_prefix(b"data:") else {
            return;
        };
        if value.is_empty() {
            return;
        }
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        self.begin_data();
        if let Some(data) = &mut self.data {
            data.take(&value);
            data.take(tail);
        }
    }

    fn begin_data(&mut self) {
        self.in_data = true;
        self.line.clear();
        match &mut self.data {
            Some(data) => data.take(b"\n"),
            None => self.data = Some(Bounded::new(self.limit)),
        }
    }

    fn line_end(&mut self) -> Option<SseEvent> {
        if std::mem::take(&mut self.in_data) {
            return None;
        }
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let data = self.data.take()?.end();
            let name = if name.is_empty() {
                "message".to_owned()
            } else {
                name
            };
            return Some(SseEvent { name, data });
        }
        if line == b"data" || line == b"data:" {
            self.begin_data();
            self.in_data = false;
        } else if let Some(name) = line.strip_prefix(b"event:") {
            String::from_utf8_lossy(name)
                .trim()
                .clone_into(&mut self.name);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&str], limit: usize) -> Vec<(String, Result<String, u64>)> {
        let mut events = Events::new(limit);
        chunks
            .iter()
            .flat_map(|chunk| events.take(chunk.as_bytes()))
            .map(|e| {
                let data = e.data.map(|d| String::from_utf8(d).unwrap());
                (e.name, data.map_err(|cut| cut.bytes))
            })
            .collect()
    }

    fn message(data: &str) -> (String, Result<String, u64>) {
        ("message".to_owned(), Ok(data.to_owned()))
    }

    #[test]
    fn events_end_at_blank_lines() {
        assert_eq!(events(&["data: a\n\n"], 99), [message("a")]);
        assert_eq!(
            events(&["data:a\r\n\r\ndata: b\r\r"], 99),
            [message("a"), message("b")]
        );
        assert_eq!(
            events(&["data: a\ndata:  b\ndata\n\n"], 99),
            [message("a\n b\n")]
        );
        assert_eq!(
            events(&["event: endpoint\nid: 1\n: comment\ndata: /x\n\n"], 99),
            [("endpoint".to_owned(), Ok("/x".to_owned()))]
        );
        assert_eq!(events(&["event: x\n\ndata: y\n\n"], 99), [message("y")]);
        assert_eq!(events(&["data: unfinished\n"], 99), []);
    }

    #[test]
    fn data_that_is_too_large_is_counted_and_the_next_is_read() {
        let large = format!("data: {}\n\ndata: ok\n\n", "x".repeat(1_000));
        assert_eq!(
            events(&[&large], 100),
            [("message".to_owned(), Err(1_000)), message("ok")]
        );
    }

    #[test]
    fn chunks_may_end_anywhere() {
        let text = "event: e\r\ndata: one\r\ndata: two\r\n\r\ndata:x\n\n: c\n\ndata\n\n";
        let expected = events(&[text], 99);
        assert_eq!(expected.len(), 3);
        for at in 0..=text.len() {
            assert_eq!(
                events(&[&text[..at], &text[at..]], 99),
                expected,
                "split at {at}"
            );
        }
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(events(&bytes, 99), expected);
    }
}

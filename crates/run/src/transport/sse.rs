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
    /// How much of a byte order mark has come, or all of it once something else has.
    mark: usize,
}

/// What a stream may start with, and what is no part of its first line.
const MARK: &[u8] = b"\xef\xbb\xbf";

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
            mark: 0,
        }
    }

    /// Takes in a chunk, and gives the events that it completes.
    pub(crate) fn take(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut found = Vec::new();
        let mut rest = self.without_mark(chunk);
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

    fn without_mark<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let mut rest = chunk;
        while let (Some(expected), Some(byte)) = (MARK.get(self.mark), rest.first()) {
            if byte != expected {
                self.line.extend_from_slice(&MARK[..self.mark]);
                self.mark = MARK.len();
                break;
            }
            self.mark += 1;
            rest = &rest[1..];
        }
        rest
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
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = "\u{feff}data: a\n\n\u{feff}data: b\n\n";
        assert_eq!(events(&[text], 99), [message("a")]);
        let cut = |text: &str| {
            let mut events = Events::new(99);
            let all = text.as_bytes().chunks(1);
            all.flat_map(|byte| events.take(byte)).count()
        };
        assert_eq!(cut(text), 1);
        let mut half = Events::new(99);
        assert_eq!(half.take(b"\xef\xbbdata: a\n\n"), []);
        assert_eq!(half.take(b"data: a\n\n").len(), 1);
    }

    #[test]
    fn what_is_left_at_the_end_is_told() {
        let rest = |text: &str| {
            let mut events = Events::new(5);
            events.take(text.as_bytes());
            events.end().map(|rest| rest.map_err(|cut| cut.bytes))
        };
        assert_eq!(rest("data: a\n\n"), None);
        assert_eq!(rest("data: a\n"), Some(Ok(b"a".to_vec())));
        assert_eq!(rest("data: a\ndata: b"), Some(Ok(b"a\nb".to_vec())));
        assert_eq!(rest("data: abcdef"), Some(Err(6)));
        assert_eq!(rest("even"), Some(Ok(b"even".to_vec())));
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

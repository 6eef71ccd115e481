//! Views of a text with decoded escapes.
//!
//! Any character of a secret may be escaped: `\u002B` in JSON, `%2b` in a URL, `\\u002B` in JSON
//! within JSON. A list of all spellings would be endless, so the text is decoded layer by layer,
//! and searched after each. [`Layer::origins`] maps a position in the decoded text back to the text
//! before.

use std::ops::Range;

/// How often escapes are decoded: enough for JSON in JSON in JSON, with an end for hostile text.
pub(super) const DEPTH: usize = 6;

/// Which escapes are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// Those of JSON, and `\xHH` and `\'` of programming languages.
    Json,
    /// The same, and percent-encoding. A space becomes `+`, since both are equivalent there.
    Percent,
    /// Only line breaks are removed, with the indentation of the next line, as encoders insert
    /// them.
    Wrapped,
}

/// A part of a text that decodes to this many bytes.
struct Escape {
    range: Range<usize>,
    length: usize,
}

impl Layer {
    /// The text with its escapes decoded once; `None` if it has none.
    pub(super) fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        let first = self.next_escape(text, 0)?.range.start;
        let mut out = Vec::with_capacity(text.len());
        out.extend_from_slice(&text[..first]);
        let mut at = first;
        while at < text.len() {
            // Escapes are often close together, where comparing is faster than searching.
            if !self.may_start(text[at]) {
                let end = self.next_start(text, at).unwrap_or(text.len());
                out.extend_from_slice(&text[at..end]);
                at = end;
                continue;
            }
            match escape(&text[at..]) {
                Some((bytes, 1, taken)) => {
                    out.push(bytes[0]);
                    at += taken;
                }
                Some((bytes, length, taken)) => {
                    out.extend_from_slice(&bytes[..length]);
                    at += taken;
                }
                None => {
                    out.push(text[at]);
                    at += 1;
                }
            }
        }
        if self == Self::Percent {
            fold_blanks(&mut out);
        }
        Some(out)
    }

    /// The text with its escapes decoded until there are none.
    pub(super) fn decode_all(self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..DEPTH {
            match self.decode(&text) {
                Some(decoded) => text = decoded,
                None => break,
            }
        }
        text
    }

    /// Maps ranges of the decoded text, ascending and disjoint, to ranges of `text`.
    pub(super) fn origins<'a>(
        self,
        text: &[u8],
        ranges: impl Iterator<Item = &'a mut Range<usize>>,
    ) {
        let mut walk = Walk::new(self, text);
        for range in ranges {
            *range = walk.origin(range.start, Side::Start)..walk.origin(range.end, Side::End);
        }
    }

    /// Extends ranges of `text`, ascending and disjoint, so that none starts or ends within an
    /// escape.
    pub(super) fn whole_escapes<'a>(
        self,
        text: &[u8],
        ranges: impl Iterator<Item = &'a mut Range<usize>>,
    ) {
        let mut next = self.next_escape(text, 0);
        let mut grow = |at: usize, side: Side| {
            while let Some(escape) = next.take_if(|escape| escape.range.end < at) {
                next = self.next_escape(text, escape.range.end);
            }
            match &next {
                Some(escape) if escape.range.start < at && at < escape.range.end => match side {
                    Side::Start => escape.range.start,
                    Side::End => escape.range.end,
                },
                _ => at,
            }
        };
        for range in ranges {
            *range = grow(range.start, Side::Start)..grow(range.end, Side::End);
        }
    }

    fn may_start(self, byte: u8) -> bool {
        match byte {
            b'\\' => self != Self::Wrapped,
            b'%' => self == Self::Percent,
            b'\n' | b'\r' => self == Self::Wrapped,
            _ => false,
        }
    }

    fn next_start(self, text: &[u8], from: usize) -> Option<usize> {
        /// How many bytes to compare one by one before starting a search.
        const NEAR: usize = 16;
        let rest = &text[from..];
        let near = &rest[..rest.len().min(NEAR)];
        if let Some(at) = near.iter().position(|byte| self.may_start(*byte)) {
            return Some(from + at);
        }
        let from = from + near.len();
        let found = match self {
            Self::Json => memchr::memchr(b'\\', &text[from..]),
            Self::Percent => memchr::memchr2(b'\\', b'%', &text[from..]),
            Self::Wrapped => memchr::memchr2(b'\n', b'\r', &text[from..]),
        };
        found.map(|at| from + at)
    }

    fn next_escape(self, text: &[u8], from: usize) -> Option<Escape> {
        let mut at = from;
        loop {
            let start = self.next_start(text, at)?;
            if let Some((_, length, taken)) = escape(&text[start..]) {
                return Some(Escape {
                    range: start..start + taken,
                    length,
                });
            }
            at = start + 1;
        }
    }
}

/// Whether the text has a percent-encoded byte (`%HH`).
pub(super) fn has_percent(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text).any(|at| hex(&text[at + 1..], 2).is_some())
}

/// Replaces spaces by `+`, as in forms.
pub(super) fn fold_blanks(text: &mut [u8]) {
    for byte in text {
        if *byte == b' ' {
            *byte = b'+';
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

/// Iterates over a text and its decoded form in parallel.
struct Walk<'a> {
    layer: Layer,
    text: &'a [u8],
    /// The start of the current unescaped bytes, in the text and in its decoded form.
    from: usize,
    decoded: usize,
    next: Option<Escape>,
}

impl<'a> Walk<'a> {
    fn new(layer: Layer, text: &'a [u8]) -> Self {
        Self {
            layer,
            text,
            from: 0,
            decoded: 0,
            next: layer.next_escape(text, 0),
        }
    }

    fn origin(&mut self, position: usize, side: Side) -> usize {
        while let Some(escape) = &self.next {
            let start = self.decoded + (escape.range.start - self.from);
            let end = start + escape.length;
            if position < start || (position == start && side == Side::End) {
                break;
            }
            match side {
                Side::Start if position < end => return escape.range.start,
                Side::End if position <= end => return escape.range.end,
                _ => {}
            }
            self.from = escape.range.end;
            self.decoded = end;
            self.next = self.layer.next_escape(self.text, self.from);
        }
        self.from + (position - self.decoded)
    }
}

/// Decodes the escape at the start of a text: the bytes, their number, and the length of the
/// escape.
fn escape(text: &[u8]) -> Option<([u8; 4], usize, usize)> {
    let one = |byte: u8, taken: usize| Some(([byte, 0, 0, 0], 1, taken));
    if text[0] == b'%' {
        return one(u8::try_from(hex(&text[1..], 2)?).ok()?, 3);
    }
    if matches!(text[0], b'\n' | b'\r') {
        let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace());
        return Some(([0; 4], 0, blank.count()));
    }
    match *text.get(1)? {
        b'n' => one(b'\n', 2),
        b'r' => one(b'\r', 2),
        b't' => one(b'\t', 2),
        b'b' => one(8, 2),
        b'f' => one(12, 2),
        byte @ (b'"' | b'\\' | b'/' | b'\'') => one(byte, 2),
        b'x' => one(u8::try_from(hex(&text[2..], 2)?).ok()?, 4),
        b'u' => unicode(text),
        _ => None,
    }
}

/// Decodes `\uXXXX`, or a surrogate pair. A lone surrogate becomes three bytes.
fn unicode(text: &[u8]) -> Option<([u8; 4], usize, usize)> {
    let unit = hex(&text[2..], 4)?;
    let low = || match text.get(6..8) {
        Some(b"\\u") => hex(&text[8..], 4).filter(|low| (0xDC00..0xE000).contains(low)),
        _ => None,
    };
    let (code, taken) = match unit {
        0xD800..0xDC00 => match low() {
            Some(low) => (0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00), 12),
            None => (unit, 6),
        },
        _ => (unit, 6),
    };
    let mut bytes = [0; 4];
    let length = if let Some(c) = char::from_u32(code) {
        c.encode_utf8(&mut bytes).len()
    } else {
        let low_bits = |shift: u32| (code >> shift & 0x3F).to_le_bytes()[0];
        bytes = [0xED, 0x80 | low_bits(6), 0x80 | low_bits(0), 0];
        3
    };
    Some((bytes, length, taken))
}

/// Parses the first `digits` bytes as hexadecimal.
fn hex(text: &[u8], digits: usize) -> Option<u32> {
    let digits = text.get(..digits)?.iter();
    digits.copied().try_fold(0, |number, digit| {
        Some(number * 16 + char::from(digit).to_digit(16)?)
    })
}
